"""Gradients averaged by hand: every parameter's gradient is all-reduced before the step, no DistributedOptimizer."""

import horovod.torch as hvd
import torch
from torch import nn
from torch.nn import functional as F

from cifar import cli, training, workers
from cifar.data import augment, batches, load, normalise, shard, shuffle, updates_per_epoch
from cifar.model import ResNet9
from cifar.schedule import decay_factor, warmup_factor


def average_gradients(net: nn.Module) -> None:
    """Begin all all-reduces, then wait for them: Horovod fuses those that are under way at the same time."""
    handles = [hvd.allreduce_async_(weight.grad, name=name) for name, weight in net.named_parameters()]
    for handle in handles:
        hvd.synchronize(handle)


args = cli.parse(__doc__, epochs=8, batch_size=128, lr=0.1)
hvd.init()
device = workers.use_device(args.device, hvd.local_rank(), hvd.local_size())
torch.manual_seed(args.seed + hvd.rank())
train, test = load(args.data_dir, device, args.images)
net = ResNet9(width=16).to(device)
hvd.broadcast_parameters(net.state_dict(), root_rank=0)
optimizer = torch.optim.SGD(net.parameters(), lr=args.lr, momentum=0.9, nesterov=True, weight_decay=5e-4)

last = args.epochs * updates_per_epoch(len(train), args.batch_size, hvd.size())
climb = last // 5
update = 0
record = training.Record(args, write=hvd.rank() == 0)
for epoch in range(args.epochs):
    net.train()
    losses = []
    mine = shard(shuffle(len(train), args.seed, epoch), hvd.rank(), hvd.size())
    for images, labels in batches(train, mine, args.batch_size, augment):
        rate = args.lr * warmup_factor(update, climb, hvd.size()) * decay_factor(update, climb, last)
        optimizer.param_groups[0]["lr"] = rate
        with workers.autocast(device):
            logits = net(normalise(images)).float()
        loss = F.cross_entropy(logits, labels, label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        average_gradients(net)
        optimizer.step()
        update += 1
        losses.append(loss.detach())
    for statistic in training.running_statistics(net):
        hvd.allreduce_(statistic)
    hits = training.count_correct(net, test, torch.arange(hvd.rank(), len(test), hvd.size()))
    hits = hvd.allreduce(hits, op=hvd.Sum)
    record.add(rate, hvd.allreduce(torch.stack(losses).mean()), hits / len(test), len(train))
if hvd.rank() == 0:
    training.save(net, args.output_dir)
