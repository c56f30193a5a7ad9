"""The common recipe for CIFAR-10, on several workers: ResNet-18, SGD with momentum, crops and flips, a cosine.

As in the much copied pytorch-cifar repository (He et al. 2015, arXiv:1512.03385, with a 3x3 stem and no first pooling):
rate 0.1 for a batch of 128 images, momentum 0.9, weight decay 5e-4. The global batch stays 128, so the rate does.

    horovodrun -np 4 python -m benchmarks.speed.rivals.resnet18
"""

import math

import horovod.torch as hvd
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import SGD
from torch.optim.lr_scheduler import LambdaLR

from cifar import cli, training, workers
from cifar.data import augment, batches, load, shard, shuffle, updates_per_epoch


class Block(nn.Module):
    """Two 3x3 convolutions beside a shortcut. The shortcut is a 1x1 convolution where the shape changes."""

    def __init__(self, inputs: int, outputs: int, stride: int):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs),
        )  # fmt: skip
        same = stride == 1 and inputs == outputs
        project = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
        self.shortcut = nn.Identity() if same else nn.Sequential(project, nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.main(x) + self.shortcut(x))


def resnet18() -> nn.Module:
    """The network with 11.2 million parameters. Inputs are `(B, 3, 32, 32)`, and outputs are logits `(B, 10)`."""
    layers = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    inputs = 64
    for outputs, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [Block(inputs, outputs, stride), Block(outputs, outputs, 1)]
        inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


def main() -> None:
    """Train. The options are those of the lesson scripts."""
    args = cli.parse(__doc__, epochs=200, batch_size=32, lr=0.1)
    hvd.init()
    device = workers.use_device(args.device, hvd.local_rank(), hvd.local_size())
    torch.manual_seed(args.seed + hvd.rank())
    train, test = load(args.data_dir, device, args.images, args.test_images)
    net = resnet18().to(device)
    optimizer = SGD(net.parameters(), lr=args.lr, momentum=0.9, weight_decay=5e-4)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=net.named_parameters(), groups=1)
    hvd.broadcast_parameters(net.state_dict(), root_rank=0)
    updates = args.epochs * updates_per_epoch(len(train), args.batch_size, hvd.size())
    scheduler = LambdaLR(optimizer, lambda update: (1 + math.cos(math.pi * update / updates)) / 2)
    record = training.Record(args, write=hvd.rank() == 0)
    for epoch in range(args.epochs):
        order = shuffle(len(train), args.seed, epoch)
        data = batches(train, shard(order, hvd.rank(), hvd.size()), args.batch_size, augment)
        loss = hvd.allreduce(training.train_epoch(net, optimizer, scheduler, data))
        hvd.grouped_allreduce_(training.running_statistics(net))
        correct = training.count_correct(net, test, torch.arange(hvd.rank(), len(test), hvd.size()))
        correct = hvd.allreduce(correct, op=hvd.Sum)
        record.add(scheduler.get_last_lr()[0], loss, correct / len(test), len(order))


if __name__ == "__main__":
    main()
