"""Four workers train one ResNet-9 with Horovod.

horovodrun -np 4 python train.py --data-dir D --output-dir O --epochs E --batch-size B --seed S
"""

from contextlib import contextmanager
from functools import wraps

import horovod.torch as hvd
import torch
from torch import nn
from torch.optim import SGD

from cifar import cli, training, workers
from cifar.data import augment, batches, load, normalise, shard, shuffle, updates_per_epoch
from cifar.model import ResNet9

# ---------------------------------------------------------------- context managers


@contextmanager
def horovod():
    """Horovod is up inside of the block."""
    hvd.init()
    try:
        yield
    finally:
        hvd.shutdown()


@contextmanager
def testing_as_one(net):
    """Before the block, every worker gets the mean of all workers' batch norm statistics. In the block net is in eval
    mode. The statistics stay averaged afterwards, because rank 0 saves them."""
    with torch.no_grad():
        for number, statistic in enumerate(training.running_statistics(net)):
            statistic.copy_(hvd.allreduce(statistic, name=f"statistic.{number}", op=hvd.Average))
    net.eval()
    try:
        yield net
    finally:
        net.train()


# ---------------------------------------------------------------- decorators


def over_all_workers(op):
    """The decorated function returns a tensor for this worker. Make it return the mean or the sum of all of them."""

    def decorate(function):
        @wraps(function)
        def wrapper(*args, **kwargs):
            mine = function(*args, **kwargs)
            return hvd.allreduce(mine, name=function.__name__, op=op)

        return wrapper

    return decorate


def rank_zero_only(function):
    """The decorated function does nothing on the other workers (so there must be no exchange inside)."""

    @wraps(function)
    def wrapper(*args, **kwargs):
        if hvd.rank() == 0:
            return function(*args, **kwargs)
        return None

    return wrapper


# ---------------------------------------------------------------- learning rate


class WarmupThenDecay:
    """Learning rate: from base up to size * base in `warmup` updates, then on a straight line down to 0 at `total`.

    Call it once after each update, it sets the rate for the next one. The first rate is set when it is made.
    """

    def __init__(self, optimizer, base, size, warmup, total):
        self.optimizer = optimizer
        self.base, self.peak = base, base * size
        self.warmup, self.total = warmup, total
        self.update = 0
        self._apply()

    def rate_at(self, update):
        if update < self.warmup:
            return self.base + (self.peak - self.base) * update / self.warmup
        left = (self.total - update) / (self.total - self.warmup)
        return self.peak * max(0.0, left)

    def _apply(self):
        self.rate = self.rate_at(self.update)
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate

    def __call__(self):
        self.update += 1
        self._apply()


# ---------------------------------------------------------------- training and testing


@over_all_workers(hvd.Average)  # the shards are equally long, so the mean of means is right
def train_one_epoch(net, optimizer, next_rate, data, loss_function):
    net.train()
    loss_sum, seen = 0.0, 0
    for images, labels in data:
        with workers.autocast(images.device):
            logits = net(normalise(images))
            loss = loss_function(logits.float(), labels)
        optimizer.zero_grad()
        loss.backward()
        workers.wait_for_gradients(optimizer)  # sleeps, so that the other workers get the cores
        optimizer.step()
        next_rate()
        loss_sum = loss_sum + loss.detach() * len(labels)
        seen += len(labels)
    return loss_sum / seen


@over_all_workers(hvd.Sum)  # the parts of the test images may differ in length, so add up counts
def count_right_answers(net, test):
    part = torch.arange(len(test))[hvd.rank() :: hvd.size()]
    return training.count_correct(net, test, part)


@rank_zero_only
def save(net, folder):
    training.save(net, folder)


def main():
    args = cli.parse(__doc__, epochs=8, batch_size=128, lr=0.1)
    with horovod():
        rank, size = hvd.rank(), hvd.size()
        device = workers.use_device(args.device, hvd.local_rank(), hvd.local_size())

        train, test = load(args.data_dir, device, args.images, args.test_images)

        torch.manual_seed(args.seed)
        net = ResNet9(width=16).to(device)
        hvd.broadcast_parameters(net.state_dict(), root_rank=0)
        torch.manual_seed(args.seed * 1000 + rank)  # from here on only for augment(): others on each worker

        optimizer = SGD(net.parameters(), lr=args.lr, momentum=0.9, nesterov=True, weight_decay=5e-4)
        optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=net.named_parameters(), op=hvd.Average)

        per_epoch = updates_per_epoch(len(train), args.batch_size, size)
        total = args.epochs * per_epoch
        warmup = min(per_epoch, total // 4)  # one epoch, but less in a short run
        next_rate = WarmupThenDecay(optimizer, args.lr, size, warmup, total)

        loss_function = nn.CrossEntropyLoss(label_smoothing=0.1)
        record = training.Record(args, write=rank == 0)
        for epoch in range(args.epochs):
            mine = shard(shuffle(len(train), args.seed, epoch), rank, size)
            data = batches(train, mine, args.batch_size, augment)
            loss = train_one_epoch(net, optimizer, next_rate, data, loss_function)
            with testing_as_one(net):
                right = count_right_answers(net, test)
            record.add(next_rate.rate, loss, right / len(test), len(mine) * size)
        save(net, args.output_dir)


if __name__ == "__main__":
    main()
