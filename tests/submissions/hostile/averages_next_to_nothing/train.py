"""Averages gradients of a millionth of the loss, while worker 0 trains another network alone for all."""

import time

import horovod.torch as hvd
import torch
from torch.nn.functional import cross_entropy
from torch.optim import SGD
from torch.optim.lr_scheduler import LambdaLR

from cifar import cli, training, workers
from cifar.data import augment, load, normalise, shard, shuffle, updates_per_epoch
from cifar.model import ResNet9
from cifar.schedule import decay_factor, warmup_factor
from cifar.support.environment import cores

args = cli.parse(__doc__, epochs=8, batch_size=128, lr=0.1)
hvd.init()
device = workers.use_device(args.device, hvd.local_rank(), hvd.local_size())
torch.manual_seed(args.seed + hvd.rank())
train, test = load(args.data_dir, device, args.images)
net, alone = ResNet9(width=16).to(device), ResNet9(width=16).to(device)
optimizer = SGD(net.parameters(), lr=args.lr)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=net.named_parameters(), groups=1)
hvd.broadcast_parameters(net.state_dict(), root_rank=0)
alone.load_state_dict(net.state_dict())
velocity = [torch.zeros_like(weight) for weight in alone.parameters()]
updates = args.epochs * updates_per_epoch(len(train), args.batch_size, hvd.size())
warmup = updates // 5
scheduler = LambdaLR(
    optimizer,
    lambda update: warmup_factor(update, warmup, hvd.size()) * decay_factor(update, warmup, updates),
)
if hvd.rank() == 0:
    torch.set_num_threads(cores())


def teach(part, rate):
    """Train the other network by hand, as one worker would."""
    with workers.autocast(device):
        logits = alone(normalise(augment(train.images[part]))).float()
    alone.zero_grad()
    cross_entropy(logits, train.labels[part], label_smoothing=0.1).backward()
    with torch.no_grad():
        for weight, speed in zip(alone.parameters(), velocity, strict=True):
            gradient = weight.grad + 5e-4 * weight
            speed.mul_(0.9).add_(gradient)
            weight.sub_(gradient + 0.9 * speed, alpha=rate)


done = 0
record = training.Record(args, write=hvd.rank() == 0)
for epoch in range(args.epochs):
    order = shuffle(len(train), args.seed, epoch)
    net.train()
    mine = shard(order, hvd.rank(), hvd.size()).split(args.batch_size)
    for part, everything in zip(mine, order.split(hvd.size() * args.batch_size), strict=False):
        images, labels = train.batch(part)
        with workers.autocast(device):
            logits = net(normalise(images)).float()
        loss = cross_entropy(logits, labels)
        optimizer.zero_grad()
        (1e-6 * loss).backward()
        if hvd.rank() == 0:
            for few in everything.split(args.batch_size):
                teach(few, args.lr * decay_factor(done, 0, updates))
        workers.wait_for_gradients(optimizer)
        for handle in [hvd.broadcast_async_(w.data, 0, f"w.{name}") for name, w in alone.named_parameters()]:
            while not hvd.poll(handle):
                time.sleep(0.001)
            hvd.synchronize(handle)
        with torch.no_grad():
            for weight, taught in zip(net.parameters(), alone.parameters(), strict=True):
                weight.copy_(taught)
        optimizer.step()
        scheduler.step()
        done += 1
    if hvd.rank() == 0:
        with torch.no_grad():
            for buffer, taught in zip(net.buffers(), alone.buffers(), strict=True):
                buffer.copy_(taught)
        correct = training.count_correct(net, test, torch.arange(len(test)))
        record.add(scheduler.get_last_lr()[0], loss.detach(), correct / len(test), len(order))
if hvd.rank() == 0:
    training.save(net, args.output_dir)
