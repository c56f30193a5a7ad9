"""Four workers train one ResNet-9 with Horovod. Gradients are averaged by hand, and so is the learning rate set.

    horovodrun -np 4 python train.py --data-dir D --output-dir O --epochs E --batch-size B --seed S

B is the number of images a worker uses for one update.
"""

import horovod.torch as hvd
import torch
from torch.nn import CrossEntropyLoss
from torch.optim import SGD

from cifar import cli, training, workers
from cifar.data import augment, batches, load, normalise, shard, shuffle, updates_per_epoch
from cifar.model import ResNet9


def learning_rate(update, total_updates, warmup, base, size):
    """Rate for an update (counted from 0): from base up to base * size, then linearly down towards 0."""
    if update < warmup:
        return base * (1 + (size - 1) * update / warmup)
    return base * size * (total_updates - update) / (total_updates - warmup)


def set_learning_rate(optimizer, rate):
    for group in optimizer.param_groups:
        group["lr"] = rate


def average_gradients(net):
    """Replace each gradient by its mean over all workers. All shards are equally long, so the plain mean is right."""
    for name, param in net.named_parameters():
        # a fixed name per parameter, so that every worker surely averages the same thing
        param.grad.copy_(hvd.allreduce(param.grad, name=f"grad.{name}", op=hvd.Average))


def average_batch_norm(net):
    """Running means and variances come from the worker's own images, so they must be made equal before testing."""
    for i, buffer in enumerate(training.running_statistics(net)):
        buffer.copy_(hvd.allreduce(buffer, name=f"batchnorm.{i}", op=hvd.Average))


# --- set-up ---------------------------------------------------------------------------------------------------------
args = cli.parse(__doc__, epochs=8, batch_size=128, lr=0.1)
hvd.init()
rank, size = hvd.rank(), hvd.size()
device = workers.use_device(args.device, hvd.local_rank(), hvd.local_size())
torch.manual_seed(args.seed + rank)  # every worker distorts its images in another way

train, test = load(args.data_dir, device, args.images, args.test_images)
net = ResNet9(width=16).to(device)
hvd.broadcast_parameters(net.state_dict(), root_rank=0)  # the seeds differ, so the first weights do too
criterion = CrossEntropyLoss(label_smoothing=0.1)
optimizer = SGD(net.parameters(), lr=args.lr, momentum=0.9, nesterov=True, weight_decay=5e-4)

total_updates = args.epochs * updates_per_epoch(len(train), args.batch_size, size)
warmup = min(max(1, total_updates // 5), total_updates - 1)  # the first fifth of the training

# --- training -------------------------------------------------------------------------------------------------------
record = training.Record(args, write=rank == 0)
update = 0
for epoch in range(args.epochs):
    # the same shuffle everywhere, of which each worker takes its own part
    my_images = shard(shuffle(len(train), args.seed, epoch), rank, size)

    net.train()
    loss_sum = torch.zeros((), device=device)
    for images, labels in batches(train, my_images, args.batch_size, augment):
        rate = learning_rate(update, total_updates, warmup, args.lr, size)
        set_learning_rate(optimizer, rate)

        optimizer.zero_grad()
        with workers.autocast(device):
            loss = criterion(net(normalise(images)).float(), labels)
        loss.backward()
        average_gradients(net)
        optimizer.step()

        loss_sum += loss.detach() * len(labels)
        update += 1

    # --- report for all workers together ---
    average_batch_norm(net)
    my_test = torch.arange(rank, len(test), size)
    correct = hvd.allreduce(training.count_correct(net, test, my_test), name="correct", op=hvd.Sum)
    mean_loss = hvd.allreduce(loss_sum / len(my_images), name="loss", op=hvd.Average)
    record.add(rate, mean_loss, correct / len(test), len(my_images) * size)

if rank == 0:
    training.save(net, args.output_dir)
