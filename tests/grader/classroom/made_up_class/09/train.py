"""ResNet-9 on CIFAR-10, one network trained by all Horovod workers.

horovodrun -np 4 python train.py --data-dir D --output-dir O --epochs E --batch-size B --seed S
"""

import horovod.torch as hvd
import torch
from torch.nn import CrossEntropyLoss
from torch.optim import SGD
from torch.optim.lr_scheduler import LambdaLR

from cifar import cli, training, workers
from cifar.data import augment, load, normalise, shuffle, updates_per_epoch
from cifar.model import ResNet9

args = cli.parse(__doc__, epochs=8, batch_size=128, lr=0.1)

hvd.init()
rank = hvd.rank()
size = hvd.size()
device = workers.use_device(args.device, hvd.local_rank(), hvd.local_size())
torch.manual_seed(args.seed + rank)  # other crops and flips on each worker; the weights are made equal below

train, test = load(args.data_dir, device, args.images, args.test_images)
net = ResNet9(width=16).to(device)

# Everybody takes the weights (and the buffers) of worker 0, one tensor after the other.
state = net.state_dict()
names = list(state.keys())
i = 0
while i < len(names):
    tensor = state[names[i]]
    tensor.copy_(hvd.broadcast(tensor, root_rank=0, name="start." + names[i]))
    i += 1

# How the work is cut: worker r has the positions r, r + size, r + 2 * size, ... of each shuffle. All have equally many,
# the remainder of the division is dropped.
images_each = len(train) // size
positions = torch.arange(images_each) * size + rank
test_first = rank * len(test) // size
test_end = (rank + 1) * len(test) // size
my_test = torch.arange(test_first, test_end)

total_updates = args.epochs * updates_per_epoch(len(train), args.batch_size, size)
warmup_updates = total_updates // 5


def warmup(update):
    """Goes in a straight line from 1 to the number of workers, and stays there."""
    if update < warmup_updates:
        return 1 + (size - 1) * update / warmup_updates
    return float(size)


def rate_factor(update):
    """First the warmup, then from its end a linear decay to 0 at the last update."""
    if update < warmup_updates:
        return warmup(update)
    left = (total_updates - update) / (total_updates - warmup_updates)
    return warmup(update) * max(0.0, left)


sgd = SGD(net.parameters(), lr=args.lr, momentum=0.9, nesterov=True, weight_decay=5e-4)
optimizer = hvd.DistributedOptimizer(sgd, named_parameters=net.named_parameters(), op=hvd.Average)
scheduler = LambdaLR(optimizer, rate_factor)
criterion = CrossEntropyLoss(label_smoothing=0.1)


def train_one_epoch(mine):
    """Train on the images with the indices in `mine`, and return the mean loss on this worker."""
    net.train()
    loss_sum = torch.zeros((), device=device)
    start = 0
    while start < len(mine):
        end = min(start + args.batch_size, len(mine))
        images, labels = train.batch(mine[start:end])
        with workers.autocast(device):
            logits = net(normalise(augment(images)))
            loss = criterion(logits.float(), labels)
        optimizer.zero_grad()
        loss.backward()
        workers.wait_for_gradients(optimizer)
        optimizer.step()
        scheduler.step()
        loss_sum += loss.detach() * (end - start)
        start = end
    return loss_sum / len(mine)


def average_batch_norm():
    """Replace the running means and variances by their average over the workers."""
    statistics = training.running_statistics(net)
    j = 0
    while j < len(statistics):
        statistics[j].copy_(hvd.allreduce(statistics[j], name="norm.%d" % j, op=hvd.Average))
        j += 1


record = training.Record(args, write=(rank == 0))
epoch = 0
while epoch < args.epochs:
    order = shuffle(len(train), args.seed, epoch)  # the same order on all workers
    loss = train_one_epoch(order[positions])
    average_batch_norm()

    # one loss and one accuracy for all
    loss = hvd.allreduce(loss, name="loss", op=hvd.Average)
    correct = training.count_correct(net, test, my_test)
    correct = hvd.allreduce(correct, name="correct", op=hvd.Sum)
    record.add(scheduler.get_last_lr()[0], loss, correct / len(test), images_each * size)
    epoch += 1

if rank == 0:
    training.save(net, args.output_dir)
