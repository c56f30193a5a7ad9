"""The recipe of `cifar_fast.py`: its settings, and the training of one network on all workers.

Most settings are those of Keller Jordan's airbench (2024, arXiv:2404.00498).
"""

import argparse
from dataclasses import dataclass

import horovod.torch as hvd
import torch
from torch import nn
from torch.nn import functional as F
from torch.optim import SGD, Optimizer
from torch.optim.lr_scheduler import LambdaLR

from cifar import training, workers
from cifar.data import crop, flip, load, normalise, shard, shuffle, updates_per_epoch
from cifar.fast import PLANS, WHITENING_IMAGES, FastNet, Lookahead, Plan, triangular_schedule, whiten
from cifar.support import lane

# These are the defaults of the options. `batch_size` is per worker, so four workers have a global batch of 512 images.
DEFAULTS = {"epochs": 10, "batch_size": 128, "lr": 1.5}


@dataclass(frozen=True)
class Settings:
    """These settings have no option on the command line."""

    rate_batch: int = 1024  # images: the option --lr is the learning rate for this global batch
    momentum: float = 0.85  # the momentum of SGD in Nesterov's form
    bias_factor: float = 64  # the learning rate of batch normalisation's biases, divided by that of the weights
    decay: float = 0.002  # weight decay times the full learning rate, before momentum
    label_smoothing: float = 0.2  # the share of a label that is spread over all classes
    crop_shift: int = 2  # pixels: the largest shift of a crop
    whitening_epochs: int = 3  # epochs: after these, the bias of the whitening convolution is no longer trained
    lookahead_every: int = 5  # updates: after each of these intervals, the average of lookahead is updated
    lookahead_kept: float = 0.95  # the share of itself that the average keeps per update at the end of training


SETTINGS = Settings()


def train(
    args: argparse.Namespace, plans: dict[str, Plan] = PLANS, arithmetic: workers.Arithmetic = workers.autocast
) -> None:
    """Train one network on all workers with the options of `cifar.cli`, and save it.

    `plans` has a plan for each type of device. `arithmetic` gives the number format to compute in.
    """
    hvd.init()
    device = workers.use_device(args.device, hvd.local_rank(), hvd.local_size())
    torch.manual_seed(args.seed + hvd.rank())
    train_set, test_set = load(args.data_dir, device, args.images, args.test_images)
    plan = plans[device.type]
    net = FastNet(plan.widths).to(device)
    whiten(net, normalise(train_set.images[:WHITENING_IMAGES]))
    optimizer = _optimizer(net, args.lr * args.batch_size * hvd.size() / SETTINGS.rate_batch)
    hvd.broadcast_parameters(net.state_dict(), root_rank=0)
    updates_an_epoch = updates_per_epoch(len(train_set), args.batch_size, hvd.size())
    updates = args.epochs * updates_an_epoch
    scheduler = _scheduler(optimizer, updates_an_epoch, updates)
    lookahead, update = Lookahead(net), 0
    # Each worker draws the same flips, because the generator has the same seed on all workers.
    flipped = torch.rand(len(train_set), generator=torch.Generator().manual_seed(args.seed)) < 0.5

    record = training.Record(args, write=hvd.rank() == 0)
    for epoch in range(args.epochs):
        net.train()
        net.pixels = plan.pixels(
            epoch, args.epochs
        )  # The epoch's evaluation uses this size too: a network knows one at a time.
        order, total, count = shuffle(len(train_set), args.seed, epoch), torch.zeros((), device=device), 0
        for indices in shard(order, hvd.rank(), hvd.size()).split(args.batch_size):
            images, labels = train_set.batch(indices)
            # An image that is flipped in one epoch is not flipped in the next one (airbench's "alternating flip").
            images = flip(crop(images, SETTINGS.crop_shift), flipped[indices] ^ (epoch % 2 == 1))
            with arithmetic(device):
                logits = net(normalise(images)).float()
                loss = F.cross_entropy(logits, labels, label_smoothing=SETTINGS.label_smoothing)
            optimizer.zero_grad()
            loss.backward()
            workers.wait_for_gradients(optimizer)
            optimizer.step()
            scheduler.step()
            lane.updated(loss.detach())
            total, count, update = total + loss.detach() * len(labels), count + len(labels), update + 1
            if update % SETTINGS.lookahead_every == 0:
                lookahead.update(SETTINGS.lookahead_kept**SETTINGS.lookahead_every * (update / updates) ** 3)
        if epoch == args.epochs - 1:
            lookahead.update(1.0)
        hvd.grouped_allreduce_(training.running_statistics(net))
        mine = torch.arange(hvd.rank(), len(test_set), hvd.size())
        correct = training.count_correct(plan.evaluated(net), test_set, mine, arithmetic=arithmetic)
        correct = hvd.allreduce(correct, op=hvd.Sum)
        record.add(scheduler.get_last_lr()[0], hvd.allreduce(total / count), correct / len(test_set), len(order))
    if hvd.rank() == 0:
        training.save(net, args.output_dir)


def _optimizer(net: FastNet, rate: float) -> Optimizer:
    """Return SGD over three groups, each with its own learning rate and weight decay.

    The groups are the weights, the biases of batch normalisation, and the bias of the whitening convolution.
    """
    weights = [weight for weight in net.parameters() if weight.requires_grad and weight.dim() > 1]
    biases = [module.bias for module in net.modules() if isinstance(module, nn.BatchNorm2d)]
    decay, factor = SETTINGS.decay / rate, SETTINGS.bias_factor
    groups = [
        {"params": weights, "lr": rate, "weight_decay": decay},
        {"params": biases, "lr": rate * factor, "weight_decay": decay / factor},
        {"params": [net[0].bias], "lr": rate, "weight_decay": decay},
    ]
    optimizer = SGD(groups, momentum=SETTINGS.momentum, nesterov=True)
    return hvd.DistributedOptimizer(optimizer, named_parameters=net.named_parameters(), groups=1)


def _scheduler(optimizer: Optimizer, updates_an_epoch: int, updates: int) -> LambdaLR:
    """Return the triangular schedule for all groups. The whitening convolution's bias is frozen after some epochs."""

    def whitening(update: int) -> float:
        return triangular_schedule(update, updates) * (update < SETTINGS.whitening_epochs * updates_an_epoch)

    factors = [lambda update: triangular_schedule(update, updates)] * 2
    return LambdaLR(optimizer, [*factors, whitening])
