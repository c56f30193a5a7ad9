"""My assignment: several Horovod workers train one ResNet-9 on CIFAR-10.

    horovodrun -np 4 python train.py --data-dir D --output-dir O --epochs E --batch-size B --seed S

The asserts say what I believe about shapes and rates. If one of them fails, I have misunderstood something.
"""

import math

import horovod.torch as hvd
import torch
from torch.nn import CrossEntropyLoss
from torch.optim import SGD
from torch.optim.lr_scheduler import LambdaLR

from cifar import cli, training, workers
from cifar.data import augment, batches, load, shard, shuffle, updates_per_epoch
from cifar.model import ResNet9


def checked(data, largest):
    """Pass the batches on, after a look at their shapes."""
    for images, labels in data:
        assert labels.ndim == 1 and 0 < len(labels) <= largest, labels.shape
        assert images.shape == (len(labels), 3, 32, 32), images.shape
        assert images.dtype == torch.uint8, images.dtype
        yield images, labels


args = cli.parse(__doc__, epochs=8, batch_size=128, lr=0.1)
hvd.init()
rank, size = hvd.rank(), hvd.size()
assert 0 <= rank < size
device = workers.use_device(args.device, hvd.local_rank(), hvd.local_size())

train, test = load(args.data_dir, device, args.images, args.test_images)
assert train.images.shape == (len(train), 3, 32, 32), train.images.shape
assert test.images.shape == (len(test), 3, 32, 32), test.images.shape

# The network: worker 0's weights go to everybody. The optimizer has no momentum yet, so there is nothing else to send.
torch.manual_seed(args.seed)
net = ResNet9(width=16).to(device)
hvd.broadcast_parameters(net.state_dict(), root_rank=0)
torch.manual_seed(args.seed + 1000 * (rank + 1))  # from here on random numbers are distortions: others on each worker

optimizer = SGD(net.parameters(), lr=args.lr, momentum=0.9, nesterov=True, weight_decay=5e-4)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=net.named_parameters())

# The rate: a line up from (0, 1) to (warmup, size), then a line down to (updates, 0). The lower of both lines counts.
per_epoch = updates_per_epoch(len(train), args.batch_size, size)
updates = args.epochs * per_epoch
warmup = max(1, updates // 5)
down = max(1, updates - warmup)
factor = lambda u: max(0.0, min(1 + (size - 1) * u / warmup, size * (updates - u) / down))  # noqa: E731
scheduler = LambdaLR(optimizer, factor)

assert factor(updates) == 0
assert all(0 <= factor(u) <= size + 1e-9 for u in range(updates + 1))
if updates > 1:  # with a single update there is no room to climb
    assert math.isclose(factor(0), 1), factor(0)
    assert math.isclose(factor(warmup), size), factor(warmup)
    assert math.isclose(scheduler.get_last_lr()[0], args.lr), scheduler.get_last_lr()

loss_function = CrossEntropyLoss(label_smoothing=0.1)
my_test_images = torch.arange(len(test))[rank::size]
record = training.Record(args, write=rank == 0)

for epoch in range(args.epochs):
    # All workers have the same order, and each takes its own part of it.
    order = shuffle(len(train), args.seed, epoch)
    mine = shard(order, rank, size)
    assert order.shape == (len(train),)
    assert mine.shape == (len(train) // size,), mine.shape

    data = checked(batches(train, mine, args.batch_size, augment), args.batch_size)
    loss = training.train_epoch(net, optimizer, scheduler, data, loss_function)
    done = (epoch + 1) * per_epoch
    rate = scheduler.get_last_lr()[0]
    assert scheduler.last_epoch == done, (scheduler.last_epoch, done)
    assert math.isclose(rate, args.lr * factor(done), abs_tol=1e-12), rate

    # Batch norm has seen other images on each worker: take the mean of what they saw.
    for i, statistic in enumerate(training.running_statistics(net)):
        hvd.allreduce_(statistic, name=f"statistic.{i}")  # the default is the average

    # The shards are equally long, so the mean of the losses is right. The test parts may not be, so sum their counts.
    loss = hvd.allreduce(loss, name="loss")
    correct = hvd.allreduce(training.count_correct(net, test, my_test_images), op=hvd.Sum, name="correct")
    assert loss.numel() == 1 and correct.numel() == 1, (loss.shape, correct.shape)
    assert 0 <= correct.item() <= len(test), correct
    record.add(rate, loss, correct / len(test), size * len(mine))

if rank == 0:
    training.save(net, args.output_dir)
