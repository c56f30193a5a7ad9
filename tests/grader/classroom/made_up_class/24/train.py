"""Assignment 08: four workers train one ResNet-9 with Horovod.

    horovodrun -np 4 python train.py --data-dir D --output-dir O --epochs E --batch-size B --seed S

Plan of the program:
  1. every worker takes its device, and gets worker 0's weights
  2. each epoch: train on my shard, make batch norm's statistics equal, test on my part of the test images
  3. gather everybody's numbers, check that everybody still has the same weights, write one line
"""

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import LambdaLR

from cifar import cli, training, workers
from cifar.data import Split, augment, batches, load, shard, shuffle, updates_per_epoch
from cifar.model import ResNet9
from cifar.schedule import warmup_factor
from cifar.support.environment import stop
from cifar.support.fingerprint import fingerprint

import horovod.torch as hvd

MOMENTUM = 0.9
WEIGHT_DECAY = 5e-4
SMOOTHING = 0.1
WARMUP_PART = 0.2  # this part of all updates is warmup
DECAY_POWER = 1.0  # we are asked to keep the starter's decay, and that is the polynomial of power 1


# ---------------------------------------------------------------- learning rate


def polynomial_decay(update: int, begin: int, end: int, power: float = DECAY_POWER) -> float:
    """(what is left / all) ** power: 1 up to update `begin`, 0 from update `end` on."""
    left = (end - update) / (end - begin)
    left = min(max(left, 0.0), 1.0)
    return left**power


def make_scheduler(optimizer, total_updates: int) -> LambdaLR:
    """Base rate -> base rate * workers during the warmup, then polynomially down to 0."""
    warmup_updates = int(WARMUP_PART * total_updates)

    def factor(update: int) -> float:
        up = warmup_factor(update, warmup_updates, hvd.size())
        down = polynomial_decay(update, warmup_updates, total_updates)
        return up * down

    return LambdaLR(optimizer, factor)


# ---------------------------------------------------------------- talking to the other workers


def gather(value, dtype: torch.dtype, name: str) -> Tensor:
    """One number of each worker, as a CPU tensor with `size` entries, ordered by rank. All workers get all of it."""
    # allgather joins along the first dimension, so a scalar has to become a vector of length 1
    mine = torch.tensor([value], dtype=dtype)
    return hvd.allgather(mine, name=name)


def gathered_loss(loss: Tensor, images: int) -> Tensor:
    """Mean training loss over the images of all workers."""
    losses = gather(loss.item(), torch.float64, "metric.loss")
    counts = gather(images, torch.int64, "metric.images")
    return (losses * counts).sum() / counts.sum()


def gathered_accuracy(correct: Tensor, tested: int) -> Tensor:
    """Right answers of all workers / test images of all workers (the parts may differ by one image)."""
    all_correct = gather(correct.item(), torch.int64, "metric.correct")
    all_tested = gather(tested, torch.int64, "metric.tested")
    return all_correct.sum() / all_tested.sum()


def share_batch_norm(net: nn.Module) -> None:
    """Replace running means and variances by their averages over the workers."""
    for i, statistic in enumerate(training.running_statistics(net)):
        hvd.allreduce_(statistic, op=hvd.Average, name=f"batch_norm.{i}")


def check_equal_weights(net: nn.Module, epoch: int) -> None:
    """End the run if the workers' weights have drifted apart. All see the same numbers, so all end, or none."""
    prints = gather(fingerprint(net.parameters()), torch.int64, "check.weights").tolist()
    if len(set(prints)) > 1:
        stop(f"after epoch {epoch + 1} the workers have different weights: {prints}")


# ---------------------------------------------------------------- the training


def my_images(train: Split, seed: int, epoch: int) -> Tensor:
    """My quarter of this epoch's shuffle. The shuffle is the same on all workers, and all quarters are equally long."""
    return shard(shuffle(len(train), seed, epoch), hvd.rank(), hvd.size())


def main() -> None:
    args = cli.parse(__doc__, epochs=8, batch_size=128, lr=0.1)
    hvd.init()
    rank, size = hvd.rank(), hvd.size()
    device = workers.use_device(args.device, hvd.local_rank(), hvd.local_size())

    train, test = load(args.data_dir, device, args.images, args.test_images)
    my_test = torch.arange(rank, len(test), size)

    # another seed on each worker, so that they distort their images differently ...
    torch.manual_seed(args.seed * size + rank)
    net = ResNet9(width=16).to(device)
    # ... which makes the first weights differ too. Here they become those of worker 0.
    hvd.broadcast_parameters(net.state_dict(), root_rank=0)

    sgd = torch.optim.SGD(
        net.parameters(), lr=args.lr, momentum=MOMENTUM, nesterov=True, weight_decay=WEIGHT_DECAY
    )
    # The momentum is still empty everywhere, so there is no optimizer state to send.
    optimizer = hvd.DistributedOptimizer(sgd, named_parameters=net.named_parameters(), op=hvd.Average)
    scheduler = make_scheduler(optimizer, args.epochs * updates_per_epoch(len(train), args.batch_size, size))
    criterion = nn.CrossEntropyLoss(label_smoothing=SMOOTHING)

    record = training.Record(args, write=rank == 0)
    for epoch in range(args.epochs):
        mine = my_images(train, args.seed, epoch)
        loss = training.train_epoch(
            net, optimizer, scheduler, batches(train, mine, args.batch_size, augment), criterion
        )
        check_equal_weights(net, epoch)

        share_batch_norm(net)
        correct = training.count_correct(net, test, my_test)

        record.add(
            rate=scheduler.get_last_lr()[0],
            train_loss=gathered_loss(loss, len(mine)),
            test_accuracy=gathered_accuracy(correct, len(my_test)),
            images=len(mine) * size,
        )

    if rank == 0:  # all have the same network, one is enough to write it
        training.save(net, args.output_dir)


if __name__ == "__main__":
    main()
