"""Four workers train one ResNet-9 together with Horovod.

horovodrun -np 4 python train.py --data-dir D --output-dir O --epochs E --batch-size B --seed S
"""

import horovod.torch as hvd
import torch
from torch.nn import CrossEntropyLoss
from torch.optim import SGD
from torch.optim.lr_scheduler import LRScheduler
from torch.utils.data import BatchSampler, Sampler

from cifar import cli, training, workers
from cifar.data import augment, load, shuffle
from cifar.model import ResNet9

WARMUP_SHARE = 5  # one fifth of all updates is warmup


class ShardSampler(Sampler):
    """Gives this worker's indices of the epoch's shuffle. Every worker gets the same number of them."""

    def __init__(self, count, seed, rank, size):
        self.count, self.seed, self.rank, self.size = count, seed, rank, size
        self.epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return self.count // self.size

    def __iter__(self):
        # The shuffle is the same on all workers (no rank in its seed). What does not divide evenly is left out.
        order = shuffle(self.count, self.seed, self.epoch)
        usable = len(self) * self.size
        return iter(order[self.rank : usable : self.size].tolist())


class WarmupLinearLR(LRScheduler):
    """Climbs from the base rate to `size` times the base rate, then falls in a straight line to 0.

    step() is called after every update, so last_epoch counts updates here, not epochs.
    """

    def __init__(self, optimizer, size, warmup, updates, last_epoch=-1):
        # The parent's __init__ already calls get_lr, so these must be there before it.
        self.size, self.warmup, self.updates = size, warmup, updates
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        update = self.last_epoch
        if update < self.warmup:
            factor = 1 + (self.size - 1) * update / self.warmup
        else:
            factor = self.size * max(0, self.updates - update) / (self.updates - self.warmup)
        return [base_lr * factor for base_lr in self.base_lrs]


def read_batches(split, batch_sampler):
    for indices in batch_sampler:
        images, labels = split.batch(torch.tensor(indices))
        yield augment(images), labels


def evaluate(net, test):
    """Accuracy on all test images. Each worker counts on its part."""
    hvd.grouped_allreduce_(training.running_statistics(net), op=hvd.Average)  # one batch norm for all
    part = torch.arange(hvd.rank(), len(test), hvd.size())
    correct = hvd.allreduce(training.count_correct(net, test, part), op=hvd.Sum)
    return correct / len(test)


def main():
    args = cli.parse(__doc__, epochs=8, batch_size=128, lr=0.1)
    hvd.init()
    rank, size = hvd.rank(), hvd.size()
    device = workers.use_device(args.device, hvd.local_rank(), hvd.local_size())
    torch.manual_seed(args.seed + rank)  # different distortions on each worker

    train, test = load(args.data_dir, device, args.images, args.test_images)
    sampler = ShardSampler(len(train), args.seed, rank, size)
    batch_sampler = BatchSampler(sampler, args.batch_size, drop_last=False)

    net = ResNet9(width=16).to(device)
    hvd.broadcast_parameters(net.state_dict(), root_rank=0)
    optimizer = SGD(net.parameters(), lr=args.lr, momentum=0.9, nesterov=True, weight_decay=5e-4)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=net.named_parameters(), groups=1)
    updates = args.epochs * len(batch_sampler)
    scheduler = WarmupLinearLR(optimizer, size, updates // WARMUP_SHARE, updates)
    criterion = CrossEntropyLoss(label_smoothing=0.1)

    record = training.Record(args, write=rank == 0)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        loss = training.train_epoch(net, optimizer, scheduler, read_batches(train, batch_sampler), criterion)
        loss = hvd.allreduce(loss, op=hvd.Average)
        record.add(scheduler.get_last_lr()[0], loss, evaluate(net, test), len(sampler) * size)
    if rank == 0:
        training.save(net, args.output_dir)


if __name__ == "__main__":
    main()
