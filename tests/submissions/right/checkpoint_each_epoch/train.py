"""A checkpoint after every epoch, written whole or not at all, from which an interrupted run goes on."""

import os
from pathlib import Path

import horovod.torch as hvd
import torch
from torch.nn import CrossEntropyLoss
from torch.optim import SGD
from torch.optim.lr_scheduler import LambdaLR

from cifar import cli, training, workers
from cifar.data import augment, batches, load, shard, shuffle, updates_per_epoch
from cifar.model import ResNet9
from cifar.schedule import decay_factor, warmup_factor


def write(content: dict, path: Path) -> None:
    """Replace `path` by `content`: a reader sees the old file or the new one, also after a power cut."""
    part = path.with_name(f".{path.name}.tmp")
    with part.open("wb") as file:
        torch.save(content, file)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


args = cli.parse(__doc__, epochs=8, batch_size=128, lr=0.1)
hvd.init()
device = workers.use_device(args.device, hvd.local_rank(), hvd.local_size())
torch.manual_seed(args.seed + hvd.rank())
train, test = load(args.data_dir, device, args.images)
net = ResNet9(width=16).to(device)
optimizer = SGD(net.parameters(), lr=args.lr, momentum=0.9, nesterov=True, weight_decay=5e-4)
first, resume = 0, args.output_dir / "resume.pt"
if hvd.broadcast_object(resume.exists(), root_rank=0):
    if hvd.rank() == 0:
        saved = torch.load(resume, weights_only=True)
        net.load_state_dict(saved["net"])
        optimizer.load_state_dict(saved["optimizer"])
        first = saved["epoch"]
    first = hvd.broadcast_object(first, root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
hvd.broadcast_parameters(net.state_dict(), root_rank=0)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=net.named_parameters(), groups=1)

per_epoch = updates_per_epoch(len(train), args.batch_size, hvd.size())
updates = args.epochs * per_epoch
warmup = updates // 5


def factor(update: int) -> float:
    update += first * per_epoch
    return warmup_factor(update, warmup, hvd.size()) * decay_factor(update, warmup, updates)


scheduler = LambdaLR(optimizer, factor)
record = training.Record(args, write=hvd.rank() == 0)
for epoch in range(first, args.epochs):
    order = shuffle(len(train), args.seed, epoch)
    data = batches(train, shard(order, hvd.rank(), hvd.size()), args.batch_size, augment)
    loss = training.train_epoch(net, optimizer, scheduler, data, CrossEntropyLoss(label_smoothing=0.1))
    hvd.grouped_allreduce_(training.running_statistics(net))
    correct = training.count_correct(net, test, torch.arange(hvd.rank(), len(test), hvd.size()))
    correct = hvd.allreduce(correct, op=hvd.Sum)
    record.add(scheduler.get_last_lr()[0], hvd.allreduce(loss), correct / len(test), len(order))
    if hvd.rank() == 0:
        write({"net": net.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch + 1}, resume)
        write(net.state_dict(), args.output_dir / "model.pt")
