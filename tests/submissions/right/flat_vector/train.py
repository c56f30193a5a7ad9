"""All gradients as one flat vector: summed over the workers, divided by their number, and copied back."""

import horovod.torch as hvd
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from cifar import cli, training, workers
from cifar.data import augment, batches, load, normalise, shard, shuffle, updates_per_epoch
from cifar.model import ResNet9
from cifar.schedule import decay_factor, warmup_factor


def average_gradients(net: nn.Module) -> None:
    """One all-reduce: a sum, so that the division stands in plain sight."""
    gradients = [parameter.grad for parameter in net.parameters()]
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    flat = hvd.allreduce(flat, name="gradients", op=hvd.Sum) / hvd.size()
    for gradient, part in zip(gradients, flat.split([gradient.numel() for gradient in gradients]), strict=True):
        gradient.copy_(part.view_as(gradient))


def average_statistics(net: nn.Module) -> None:
    """The workers' BN statistics come from different images: one network has one set of them."""
    for name, buffer in net.named_buffers():
        if buffer.is_floating_point():
            buffer.copy_(hvd.allreduce(buffer, name=name))


def update(net: nn.Module, optimizer: torch.optim.Optimizer, images: Tensor, labels: Tensor) -> Tensor:
    """Forward, backward, average, step; returns this worker's loss."""
    with workers.autocast(images.device):
        loss = cross_entropy(net(normalise(images)).float(), labels, label_smoothing=0.1)
    optimizer.zero_grad()
    loss.backward()
    average_gradients(net)
    optimizer.step()
    return loss.detach()


args = cli.parse(__doc__, epochs=8, batch_size=128, lr=0.1)
hvd.init()
device = workers.use_device(args.device, hvd.local_rank(), hvd.local_size())
torch.manual_seed(args.seed + hvd.rank())
train, test = load(args.data_dir, device, args.images)
net = ResNet9(width=16).to(device)
hvd.broadcast_parameters(net.state_dict(), root_rank=0)
optimizer = torch.optim.SGD(net.parameters(), lr=args.lr, momentum=0.9, nesterov=True, weight_decay=5e-4)
updates = args.epochs * updates_per_epoch(len(train), args.batch_size, hvd.size())
warmup = updates // 5
scheduler = torch.optim.lr_scheduler.LambdaLR(
    optimizer, lambda step: warmup_factor(step, warmup, hvd.size()) * decay_factor(step, warmup, updates)
)

record = training.Record(args, write=hvd.rank() == 0)
for epoch in range(args.epochs):
    net.train()
    losses = []
    mine = shard(shuffle(len(train), args.seed, epoch), hvd.rank(), hvd.size())
    for images, labels in batches(train, mine, args.batch_size, augment):
        losses.append(update(net, optimizer, images, labels))
        scheduler.step()
    average_statistics(net)
    hits = training.count_correct(net, test, torch.arange(hvd.rank(), len(test), hvd.size()))
    accuracy = hvd.allreduce(hits, op=hvd.Sum) / len(test)
    record.add(scheduler.get_last_lr()[0], hvd.allreduce(torch.stack(losses).mean()), accuracy, len(train))
if hvd.rank() == 0:
    training.save(net, args.output_dir)
