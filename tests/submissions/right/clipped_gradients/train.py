"""Gradients clipped after they are averaged: synchronize by hand, clip, step without synchronising again."""

import horovod.torch as hvd
import torch
from torch.nn import CrossEntropyLoss
from torch.nn.utils import clip_grad_norm_
from torch.optim import SGD

from cifar import cli, training, workers
from cifar.data import augment, batches, load, normalise, shard, shuffle, updates_per_epoch
from cifar.model import ResNet9
from cifar.schedule import decay_factor, warmup_factor

args = cli.parse(__doc__, epochs=8, batch_size=128, lr=0.1)
hvd.init()
device = workers.use_device(args.device, hvd.local_rank(), hvd.local_size())
torch.manual_seed(args.seed + hvd.rank())
train, test = load(args.data_dir, device, args.images)
net = ResNet9(width=16).to(device)
optimizer = SGD(net.parameters(), lr=args.lr, momentum=0.9, nesterov=True, weight_decay=5e-4)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=net.named_parameters(), groups=1)
hvd.broadcast_parameters(net.state_dict(), root_rank=0)
loss_function = CrossEntropyLoss(label_smoothing=0.1)
last = args.epochs * updates_per_epoch(len(train), args.batch_size, hvd.size())
warmup = last // 5


def rates():
    """The rate of one update after another."""
    for update in range(last):
        yield args.lr * warmup_factor(update, warmup, hvd.size()) * decay_factor(update, warmup, last)


rate = rates()
record = training.Record(args, write=hvd.rank() == 0)
for epoch in range(args.epochs):
    net.train()
    losses = []
    mine = shard(shuffle(len(train), args.seed, epoch), hvd.rank(), hvd.size())
    for images, labels in batches(train, mine, args.batch_size, augment):
        optimizer.zero_grad()
        with workers.autocast(device):
            loss = loss_function(net(normalise(images)).float(), labels)
        loss.backward()
        workers.wait_for_gradients(optimizer)
        optimizer.synchronize()
        clip_grad_norm_(net.parameters(), max_norm=1.0)
        optimizer.param_groups[0]["lr"] = next(rate)
        with optimizer.skip_synchronize():
            optimizer.step()
        losses.append(loss.detach())
    hvd.grouped_allreduce_(training.running_statistics(net))
    correct = training.count_correct(net, test, torch.arange(hvd.rank(), len(test), hvd.size()))
    correct = hvd.allreduce(correct, op=hvd.Sum)
    loss = hvd.allreduce(torch.stack(losses).mean())
    record.add(optimizer.param_groups[0]["lr"], loss, correct / len(test), len(train))
if hvd.rank() == 0:
    training.save(net, args.output_dir)
