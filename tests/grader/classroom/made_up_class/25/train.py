"""Four workers train one ResNet-9 together, with Horovod.

Start it with:

    horovodrun -np 4 python train.py --data-dir D --output-dir O --epochs E --batch-size B --seed S

The program has four phases, and each phase is one function:

1. prepare:    start Horovod, find the device, load the images, build the network
2. distribute: make the workers equal, wrap the optimizer, plan the learning rate
3. train:      one epoch on this worker's part of the images
4. report:     test together, average the numbers, write them down once
"""

from argparse import Namespace
from dataclasses import dataclass

import horovod.torch as hvd
import torch
from torch import Tensor, nn
from torch.nn import CrossEntropyLoss
from torch.optim import SGD, Optimizer
from torch.optim.lr_scheduler import LambdaLR

from cifar import cli, training, workers
from cifar.data import Split, augment, batches, load, shard, shuffle, updates_per_epoch
from cifar.model import ResNet9
from cifar.schedule import decay_factor, warmup_factor

WRITER = 0  # This worker gives its weights to the others, and it alone writes files.
WARMUP_PART = 5  # The warmup takes one fifth of all updates.


@dataclass
class Setup:
    """Everything that one worker has after the first phase."""

    train_images: Split
    test_images: Split
    net: nn.Module


def is_writer() -> bool:
    """Tell whether this worker may write files."""
    return hvd.rank() == WRITER


# Phase 1: prepare


def prepare(args: Namespace) -> Setup:
    """Choose the device, load the images and build the network."""
    device = workers.use_device(args.device, hvd.local_rank(), hvd.local_size())

    # Each worker has another seed, so each one distorts its images in its own way.
    # The first weights differ too, but the next phase makes them equal.
    worker_seed = args.seed + hvd.rank()
    torch.manual_seed(worker_seed)

    train_images, test_images = load(args.data_dir, device, args.images, args.test_images)
    net = ResNet9(width=16).to(device)
    return Setup(train_images, test_images, net)


# Phase 2: distribute


def distribute(args: Namespace, setup: Setup) -> tuple[Optimizer, LambdaLR]:
    """Turn many workers into one team: equal weights, mean gradients, and a rate for all of them."""
    # Step 1: all workers start with the weights of one worker.
    hvd.broadcast_parameters(setup.net.state_dict(), root_rank=WRITER)

    # Step 2: the optimizer waits for the mean gradient of all workers.
    # With one group, all gradients travel together in one buffer.
    local_optimizer = SGD(setup.net.parameters(), lr=args.lr, momentum=0.9, nesterov=True, weight_decay=5e-4)
    optimizer = hvd.DistributedOptimizer(
        local_optimizer,
        named_parameters=setup.net.named_parameters(),
        groups=1,
    )

    # Step 3: the schedule counts the updates that this team makes.
    updates_each_epoch = updates_per_epoch(len(setup.train_images), args.batch_size, hvd.size())
    all_updates = args.epochs * updates_each_epoch
    scheduler = plan_rate(optimizer, all_updates)
    return optimizer, scheduler


def plan_rate(optimizer: Optimizer, all_updates: int) -> LambdaLR:
    """Climb from the base rate to the scaled rate, then fall to zero on a straight line."""
    warmup_updates = all_updates // WARMUP_PART

    def factor(update: int) -> float:
        climb = warmup_factor(update, warmup_updates, hvd.size())
        fall = decay_factor(update, warmup_updates, all_updates)
        return climb * fall

    return LambdaLR(optimizer, factor)


# Phase 3: train


def train(args: Namespace, setup: Setup, optimizer: Optimizer, scheduler: LambdaLR, epoch: int) -> tuple[Tensor, int]:
    """Train for one epoch. Return this worker's loss, and how many images all workers used."""
    # All workers make the same shuffle, and each one takes its own part of it.
    order = shuffle(len(setup.train_images), args.seed, epoch)
    my_part = shard(order, hvd.rank(), hvd.size())

    my_batches = batches(setup.train_images, my_part, args.batch_size, augment)
    loss_function = CrossEntropyLoss(label_smoothing=0.1)
    my_loss = training.train_epoch(setup.net, optimizer, scheduler, my_batches, loss_function)

    # All parts are equally long.
    images_used = len(my_part) * hvd.size()
    return my_loss, images_used


# Phase 4: report


def report(setup: Setup, record: training.Record, rate: float, my_loss: Tensor, images_used: int) -> None:
    """Test the network with all workers, and record the epoch for the whole team."""
    average_batch_norm(setup.net)

    accuracy = test_together(setup.net, setup.test_images)
    mean_loss = hvd.allreduce(my_loss, op=hvd.Average, name="mean_loss")
    record.add(rate, mean_loss, accuracy, images_used)


def average_batch_norm(net: nn.Module) -> None:
    """Replace the running means and variances by their average over the workers."""
    # First start all the exchanges, then wait for each of them.
    handles = [
        hvd.allreduce_async_(statistic, op=hvd.Average, name=f"batch_norm.{number}")
        for number, statistic in enumerate(training.running_statistics(net))
    ]
    for handle in handles:
        hvd.synchronize(handle)


def test_together(net: nn.Module, test_images: Split) -> Tensor:
    """Return the accuracy on all test images. Each worker tests its part."""
    # Parts may differ by one image here, so we add counts and do not average accuracies.
    my_indices = torch.arange(hvd.rank(), len(test_images), hvd.size())
    my_correct = training.count_correct(net, test_images, my_indices)
    all_correct = hvd.allreduce(my_correct, op=hvd.Sum, name="all_correct")
    return all_correct / len(test_images)


def main() -> None:
    """Go through the phases."""
    args = cli.parse(__doc__, epochs=8, batch_size=128, lr=0.1)
    hvd.init()

    setup = prepare(args)
    optimizer, scheduler = distribute(args, setup)
    if is_writer():
        print(f"{hvd.size()} workers, rate {args.lr} for one and {args.lr * hvd.size()} for all", flush=True)

    record = training.Record(args, write=is_writer())
    for epoch in range(args.epochs):
        my_loss, images_used = train(args, setup, optimizer, scheduler, epoch)
        rate = scheduler.get_last_lr()[0]
        report(setup, record, rate, my_loss, images_used)

    # All workers hold the same network now, so one file is enough.
    if is_writer():
        training.save(setup.net, args.output_dir)


if __name__ == "__main__":
    main()
