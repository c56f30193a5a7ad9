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

DEFAULTS = {"epochs": 10, "batch_size": 128, "lr": 1.5}  # of the options; with four workers the global batch is 512


@dataclass(frozen=True)
class Settings:
    """What no option changes."""

    rate_batch: int = 1024  # images: the global batch to which the option --lr belongs
    momentum: float = 0.85  # of SGD, in Nesterov's form
    bias_factor: float = 64  # how many times the weights' rate batch normalisation's biases have
    decay: float = 0.002  # weight decay of one update at the full rate
    label_smoothing: float = 0.2  # share of a label that is spread over all classes
    crop_shift: int = 2  # pixels: how far a crop is shifted at most
    whitening_epochs: int = 3  # epochs in which the bias of the whitening convolution is trained
    lookahead_every: int = 5  # updates between two updates of the average
    lookahead_kept: float = 0.95  # share of itself that the average keeps per update, at the end of training


SETTINGS = Settings()


def train(
    args: argparse.Namespace, plans: dict[str, Plan] = PLANS, arithmetic: workers.Arithmetic = workers.autocast
) -> None:
    """Train with the options of `cifar.cli`. `plans` holds a plan for each type of device."""
    hvd.init()
    device = workers.use_device(args.device, hvd.local_rank(), hvd.local_size())
    torch.manual_seed(args.seed + hvd.rank())
    train, test = load(args.data_dir, device, args.images, args.test_images)
    plan = plans[device.type]
    net = FastNet(plan.widths).to(device)
    whiten(net, normalise(train.images[:WHITENING_IMAGES]))
    optimizer = _optimizer(net, args.lr * args.batch_size * hvd.size() / SETTINGS.rate_batch)
    hvd.broadcast_parameters(net.state_dict(), root_rank=0)
    updates_an_epoch = updates_per_epoch(len(train), args.batch_size, hvd.size())
    updates = args.epochs * updates_an_epoch
    scheduler = _scheduler(optimizer, updates_an_epoch, updates)
    lookahead, update = Lookahead(net), 0
    flipped = torch.rand(len(train), generator=torch.Generator().manual_seed(args.seed)) < 0.5  # equal on all workers

    record = training.Record(args, write=hvd.rank() == 0)
    for epoch in range(args.epochs):
        net.train()
        net.pixels = plan.pixels(epoch, args.epochs)  # for this epoch's evaluation too: the network knows one size only
        order, total, count = shuffle(len(train), args.seed, epoch), torch.zeros((), device=device), 0
        for indices in shard(order, hvd.rank(), hvd.size()).split(args.batch_size):
            images, labels = train.batch(indices)
            images = flip(crop(images, SETTINGS.crop_shift), flipped[indices] ^ (epoch % 2 == 1))  # alternating flip
            with arithmetic(device):
                logits = net(normalise(images)).float()
                loss = F.cross_entropy(logits, labels, label_smoothing=SETTINGS.label_smoothing)
            optimizer.zero_grad()
            loss.backward()
            workers.wait_for_gradients(optimizer)
            optimizer.step()
            scheduler.step()
            total, count, update = total + loss.detach() * len(labels), count + len(labels), update + 1
            if update % SETTINGS.lookahead_every == 0:
                lookahead.update(SETTINGS.lookahead_kept**SETTINGS.lookahead_every * (update / updates) ** 3)
        if epoch == args.epochs - 1:
            lookahead.update(1.0)
        hvd.grouped_allreduce_(training.running_statistics(net))
        mine = torch.arange(hvd.rank(), len(test), hvd.size())
        correct = training.count_correct(plan.evaluated(net), test, mine, arithmetic=arithmetic)
        correct = hvd.allreduce(correct, op=hvd.Sum)
        record.add(scheduler.get_last_lr()[0], hvd.allreduce(total / count), correct / len(test), len(order))
    if hvd.rank() == 0:
        training.save(net, args.output_dir)


def _optimizer(net: FastNet, rate: float) -> Optimizer:
    """SGD for weights, batch normalisation's biases and the whitening convolution's bias, each with its own rate."""
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
    """The triangular schedule for all three groups. The whitening convolution's bias is frozen after some epochs."""

    def whitening(update: int) -> float:
        return triangular_schedule(update, updates) * (update < SETTINGS.whitening_epochs * updates_an_epoch)

    factors = [lambda update: triangular_schedule(update, updates)] * 2
    return LambdaLR(optimizer, [*factors, whitening])
