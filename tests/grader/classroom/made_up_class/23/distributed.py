"""Everything of the assignment that needs Horovod. train.py stays nearly the starter, and calls these functions."""

import horovod.torch as hvd
import torch
from torch.optim.lr_scheduler import LambdaLR

from cifar import training, workers
from cifar.data import shard, shuffle, updates_per_epoch
from cifar.schedule import decay_factor, warmup_factor

WARMUP_SHARE = 0.2  # of all updates


def start(args):
    """Start Horovod, seed this worker differently from the others, and return its device."""
    hvd.init()
    device = workers.use_device(args.device, hvd.local_rank(), hvd.local_size())
    torch.manual_seed(args.seed + hvd.rank())
    return device


def is_first():
    """Only the first worker writes files."""
    return hvd.rank() == 0


def share_weights(net):
    """Every worker was seeded differently, so all of them take the weights of worker 0."""
    hvd.broadcast_parameters(net.state_dict(), root_rank=0)


def wrap(optimizer, net):
    """From now on step() applies the mean gradient of all workers. One buffer, because workers share the cores."""
    return hvd.DistributedOptimizer(optimizer, named_parameters=net.named_parameters(), groups=1)


def make_scheduler(optimizer, images, args):
    """The rate climbs from the base rate to size() times that, and then falls linearly to 0."""
    size = hvd.size()
    updates = args.epochs * updates_per_epoch(images, args.batch_size, size)
    warmup = int(WARMUP_SHARE * updates)

    def factor(update):
        return warmup_factor(update, warmup, size) * decay_factor(update, warmup, updates)

    return LambdaLR(optimizer, factor)


def train_part(images, args, epoch):
    """This worker's training images in an epoch. The shuffle is the same everywhere, and all parts are equally long."""
    return shard(shuffle(images, args.seed, epoch), hvd.rank(), hvd.size())


def test_part(images):
    """This worker's test images. No image is left out, so the parts may differ in length by one."""
    return torch.arange(hvd.rank(), images, hvd.size())


def average_batch_norm(net):
    """Give all workers the mean of their running means and variances."""
    hvd.grouped_allreduce_(training.running_statistics(net), op=hvd.Average)


def mean(value):
    return hvd.allreduce(value, op=hvd.Average)


def total(value):
    return hvd.allreduce(value, op=hvd.Sum)


def all_images(part):
    """How many images all workers have used together, when this one has used `part`."""
    return len(part) * hvd.size()
