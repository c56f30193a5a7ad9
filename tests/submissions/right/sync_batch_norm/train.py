"""Batch normalisation over all workers' images, written by hand: every layer all-reduces its mean and mean square."""

import horovod.torch as hvd
import torch
from torch import Tensor, nn
from torch.optim import SGD
from torch.optim.lr_scheduler import LambdaLR

from cifar import cli, training, workers
from cifar.data import augment, batches, load, shard, shuffle, updates_per_epoch
from cifar.model import ResNet9
from cifar.schedule import decay_factor, warmup_factor


class SyncBatchNorm(nn.BatchNorm2d):
    """Horovod's own is for GPUs only. Gradients flow back through `hvd.allreduce`, which averages them as well."""

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return super().forward(x)
        x = x.float()
        moments = torch.stack([x.mean((0, 2, 3)), x.square().mean((0, 2, 3))])
        mean, square = hvd.allreduce(moments, op=hvd.Average)
        variance = (square - mean.square()).clamp(min=0)
        self._follow(mean.detach(), variance.detach())
        scale = self.weight * (variance + self.eps).rsqrt()
        return x * scale.view(1, -1, 1, 1) + (self.bias - mean * scale).view(1, -1, 1, 1)

    def _follow(self, mean: Tensor, variance: Tensor) -> None:
        self.running_mean.lerp_(mean, self.momentum)
        self.running_var.lerp_(variance, self.momentum)
        self.num_batches_tracked += 1


def synchronise(net: nn.Module) -> nn.Module:
    """Make the network's BN layers synchronised ones: the same parameters under the same names."""
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.__class__ = SyncBatchNorm
    return net


args = cli.parse(__doc__, epochs=8, batch_size=128, lr=0.1)
hvd.init()
device = workers.use_device(args.device, hvd.local_rank(), hvd.local_size())
torch.manual_seed(args.seed + hvd.rank())
train, test = load(args.data_dir, device, args.images)
net = synchronise(ResNet9(width=16)).to(device)
optimizer = SGD(net.parameters(), lr=args.lr, momentum=0.9, nesterov=True, weight_decay=5e-4)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=net.named_parameters(), groups=1)
hvd.broadcast_parameters(net.state_dict(), root_rank=0)
updates = args.epochs * updates_per_epoch(len(train), args.batch_size, hvd.size())
warmup = updates // 5
scheduler = LambdaLR(
    optimizer, lambda update: warmup_factor(update, warmup, hvd.size()) * decay_factor(update, warmup, updates)
)

record = training.Record(args, write=hvd.rank() == 0)
loss_function = nn.CrossEntropyLoss(label_smoothing=0.1)
for epoch in range(args.epochs):
    order = shuffle(len(train), args.seed, epoch)
    data = batches(train, shard(order, hvd.rank(), hvd.size()), args.batch_size, augment)
    loss = hvd.allreduce(training.train_epoch(net, optimizer, scheduler, data, loss_function))
    correct = training.count_correct(net, test, torch.arange(hvd.rank(), len(test), hvd.size()))
    record.add(scheduler.get_last_lr()[0], loss, hvd.allreduce(correct, op=hvd.Sum) / len(test), len(order))
if hvd.rank() == 0:
    training.save(net, args.output_dir)
