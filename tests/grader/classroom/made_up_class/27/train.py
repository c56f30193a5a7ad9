"""The assignment: four workers train one ResNet-9 with Horovod.

    horovodrun -np 4 python train.py --data-dir D --output-dir O --epochs E --batch-size B --seed S

B is the number of images that one worker uses for one update. Worker 0 alone writes O/model.pt and O/metrics.jsonl.
"""

import horovod.torch as hvd
import torch
from torch.nn import CrossEntropyLoss
from torch.optim import SGD
from torch.optim.lr_scheduler import LambdaLR

from cifar import cli, training, workers
from cifar.data import augment, batches, load, shard, shuffle, updates_per_epoch
from cifar.model import ResNet9
from cifar.schedule import decay_factor, warmup_factor

# Defaults of the options
EPOCHS = 8
BATCH_SIZE = 128
BASE_LR = 0.1

# Network and optimizer
WIDTH = 16
MOMENTUM = 0.9
WEIGHT_DECAY = 5e-4
LABEL_SMOOTHING = 0.1

# Part of all updates in which the rate climbs from lr to size * lr
WARMUP_PART = 0.2

# The rank that owns the first weights and all files
ROOT = 0

# Distance between the seed of the weights and those of the distortions
AUGMENT_SEED_OFFSET = 1000


def check_setup(train, test, size):
    """Raise ValueError if there is not at least one image per worker in both splits."""
    if size < 1:
        raise ValueError(f"Horovod reports {size} workers")
    if len(train) < size:
        raise ValueError(f"{len(train)} training images are too few for {size} workers")
    if len(test) < size:
        raise ValueError(f"{len(test)} test images are too few for {size} workers")


def make_scheduler(optimizer, total_updates, size):
    """Warm up from the base rate to size times that, then decay linearly to 0. It must be stepped once per update."""
    if total_updates < 1:
        raise ValueError(f"total_updates must be 1 or more, not {total_updates}")
    # The warmup has to end before the last update, also in very short runs, or decay_factor raises.
    warmup_updates = min(max(1, int(WARMUP_PART * total_updates)), total_updates - 1)

    def factor(update):
        return warmup_factor(update, warmup_updates, size) * decay_factor(update, warmup_updates, total_updates)

    return LambdaLR(optimizer, factor)


def average_batch_norm(net):
    """Replace the running means and variances by their averages over all workers."""
    for i, buffer in enumerate(training.running_statistics(net)):
        hvd.allreduce_(buffer, op=hvd.Average, name=f"batch_norm.{i}")


def count_all_correct(net, test, rank, size):
    """Return how many of all test images are classified correctly. Every worker tests its own part of them."""
    if not 0 <= rank < size:
        raise ValueError(f"rank {rank} is not in 0 .. {size - 1}")
    # Not shard(): it would leave out images at the end. Parts of different length are fine here, as counts are summed.
    part = torch.arange(len(test))[rank::size]
    correct = training.count_correct(net, test, part)
    return hvd.allreduce(correct, op=hvd.Sum, name="correct")


def run(args):
    rank = hvd.rank()
    size = hvd.size()
    device = workers.use_device(args.device, hvd.local_rank(), hvd.local_size())

    train, test = load(args.data_dir, device, args.images, args.test_images)
    check_setup(train, test, size)

    torch.manual_seed(args.seed)
    net = ResNet9(width=WIDTH).to(device)
    optimizer = SGD(net.parameters(), lr=args.lr, momentum=MOMENTUM, nesterov=True, weight_decay=WEIGHT_DECAY)

    # All workers start with the weights of one. The optimizer has no state yet, so there is none to broadcast.
    hvd.broadcast_parameters(net.state_dict(), root_rank=ROOT)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=net.named_parameters(), op=hvd.Average)

    # From here on random numbers are only used for distortions, which should differ from worker to worker.
    torch.manual_seed(args.seed + AUGMENT_SEED_OFFSET + rank)

    total_updates = args.epochs * updates_per_epoch(len(train), args.batch_size, size)
    scheduler = make_scheduler(optimizer, total_updates, size)
    loss_function = CrossEntropyLoss(label_smoothing=LABEL_SMOOTHING)

    if rank == 0:
        print(f"{size} workers, {total_updates} updates of {size} x {args.batch_size} images", flush=True)

    record = training.Record(args, write=rank == ROOT)
    for epoch in range(args.epochs):
        # The shuffle is the same on all workers, the shard is not.
        order = shuffle(len(train), args.seed, epoch)
        mine = shard(order, rank, size)
        if len(mine) != len(train) // size:
            raise RuntimeError(f"worker {rank} has {len(mine)} images, and others have {len(train) // size}")

        data = batches(train, mine, args.batch_size, augment)
        loss = training.train_epoch(net, optimizer, scheduler, data, loss_function)

        # The shards are equally long, so the plain mean of the losses is the mean over all images.
        loss = hvd.allreduce(loss, op=hvd.Average, name="loss")
        average_batch_norm(net)
        correct = count_all_correct(net, test, rank, size)

        # All workers call this, because a loss that is not finite has to end all of them. Only ROOT writes.
        record.add(scheduler.get_last_lr()[0], loss, correct / len(test), len(mine) * size)

    if rank == 0:
        training.save(net, args.output_dir)


def main():
    args = cli.parse(__doc__, epochs=EPOCHS, batch_size=BATCH_SIZE, lr=BASE_LR)
    hvd.init()
    try:
        run(args)
    finally:
        # If one worker fails, this also tells the others, which would otherwise wait for it.
        hvd.shutdown()


if __name__ == "__main__":
    main()
