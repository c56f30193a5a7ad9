"""Trains half of the epochs, saves, and resumes: weights are broadcast, but the optimizer's momentum is rank 0's alone.

From the next update on the same averaged gradient moves each worker's weights differently.
"""

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
per_epoch = updates_per_epoch(len(train), args.batch_size, hvd.size())
updates = args.epochs * per_epoch
warmup = updates // 5
file = args.output_dir / "resume.pt"
record = training.Record(args, write=hvd.rank() == 0)


def new_optimizer(net: torch.nn.Module) -> torch.optim.Optimizer:
    weights = [{"params": net.parameters(), "initial_lr": args.lr}]  # as the scheduler leaves it in what is saved
    optimizer = SGD(weights, lr=args.lr, momentum=0.9, nesterov=True, weight_decay=5e-4)
    return hvd.DistributedOptimizer(optimizer, named_parameters=net.named_parameters(), groups=1)


def resume() -> tuple[ResNet9, torch.optim.Optimizer]:
    """Network and optimizer as they were saved, if they were."""
    net = ResNet9(width=16).to(device)
    optimizer = new_optimizer(net)
    if hvd.rank() == 0 and file.exists():
        saved = torch.load(file, weights_only=True)
        net.load_state_dict(saved["net"])
        optimizer.load_state_dict(saved["optimizer"])
    hvd.broadcast_parameters(net.state_dict(), root_rank=0)
    return net, optimizer


def train_epochs(first: int, last: int) -> None:
    """One session of training, from the saved state to the saved state."""
    net, optimizer = resume()
    for group in optimizer.param_groups:
        group["lr"] = group["initial_lr"] = args.lr
    scheduler = LambdaLR(
        optimizer,
        lambda update: (
            warmup_factor(update + first * per_epoch, warmup, hvd.size())
            * decay_factor(update + first * per_epoch, warmup, updates)
        ),
    )
    for epoch in range(first, last):
        order = shuffle(len(train), args.seed, epoch)
        data = batches(train, shard(order, hvd.rank(), hvd.size()), args.batch_size, augment)
        loss = training.train_epoch(net, optimizer, scheduler, data, CrossEntropyLoss(label_smoothing=0.1))
        hvd.grouped_allreduce_(training.running_statistics(net))
        correct = training.count_correct(net, test, torch.arange(hvd.rank(), len(test), hvd.size()))
        correct = hvd.allreduce(correct, op=hvd.Sum)
        record.add(scheduler.get_last_lr()[0], hvd.allreduce(loss), correct / len(test), len(order))
    if hvd.rank() == 0:
        torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict()}, file)
        training.save(net, args.output_dir)


train_epochs(0, args.epochs // 2)
train_epochs(args.epochs // 2, args.epochs)
