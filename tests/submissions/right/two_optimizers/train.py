"""Two optimizers a worker, each under a DistributedOptimizer: weights are decayed, biases and BN parameters are not."""

import horovod.torch as hvd
import torch
from torch.nn.functional import cross_entropy
from torch.optim import SGD
from torch.optim.lr_scheduler import LambdaLR

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
hvd.broadcast_parameters(net.state_dict(), root_rank=0)
updates = args.epochs * updates_per_epoch(len(train), args.batch_size, hvd.size())
warmup = updates // 5


def optimizer_of(named: list[tuple[str, torch.nn.Parameter]], weight_decay: float) -> tuple[SGD, LambdaLR]:
    """A distributed optimizer for some parameters, and its schedule."""
    sgd = SGD([weight for _, weight in named], lr=args.lr, momentum=0.9, nesterov=True, weight_decay=weight_decay)
    optimizer = hvd.DistributedOptimizer(sgd, named_parameters=named)
    return optimizer, LambdaLR(
        optimizer, lambda update: warmup_factor(update, warmup, hvd.size()) * decay_factor(update, warmup, updates)
    )


decayed = [(name, weight) for name, weight in net.named_parameters() if weight.dim() > 1]
others = [(name, weight) for name, weight in net.named_parameters() if weight.dim() <= 1]
pairs = [optimizer_of(decayed, 5e-4), optimizer_of(others, 0.0)]

record = training.Record(args, write=hvd.rank() == 0)
for epoch in range(args.epochs):
    net.train()
    losses = []
    mine = shard(shuffle(len(train), args.seed, epoch), hvd.rank(), hvd.size())
    for images, labels in batches(train, mine, args.batch_size, augment):
        with workers.autocast(device):
            loss = cross_entropy(net(normalise(images)).float(), labels, label_smoothing=0.1)
        net.zero_grad()
        loss.backward()
        for optimizer, scheduler in pairs:
            optimizer.step()
            scheduler.step()
        losses.append(loss.detach())
    hvd.grouped_allreduce_(training.running_statistics(net))
    correct = training.count_correct(net, test, torch.arange(hvd.rank(), len(test), hvd.size()))
    correct = hvd.allreduce(correct, op=hvd.Sum)
    rate = pairs[0][1].get_last_lr()[0]
    record.add(rate, hvd.allreduce(torch.stack(losses).mean()), correct / len(test), len(train))
if hvd.rank() == 0:
    training.save(net, args.output_dir)
