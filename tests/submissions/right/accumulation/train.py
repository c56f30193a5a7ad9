"""Gradient accumulation: a worker's batch in two halves, one all-reduce and one update for both."""

import horovod.torch as hvd
import torch
from torch.nn.functional import cross_entropy
from torch.optim import SGD
from torch.optim.lr_scheduler import LambdaLR

from cifar import cli, training, workers
from cifar.data import augment, batches, load, normalise, shard, shuffle, updates_per_epoch
from cifar.model import ResNet9
from cifar.schedule import decay_factor, warmup_factor

PARTS = 2

args = cli.parse(__doc__, epochs=8, batch_size=128, lr=0.1)
hvd.init()
device = workers.use_device(args.device, hvd.local_rank(), hvd.local_size())
torch.manual_seed(args.seed + hvd.rank())
train, test = load(args.data_dir, device, args.images)
net = ResNet9(width=16).to(device)
optimizer = SGD(net.parameters(), lr=args.lr, momentum=0.9, nesterov=True, weight_decay=5e-4)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=net.named_parameters(), backward_passes_per_step=PARTS)
hvd.broadcast_parameters(net.state_dict(), root_rank=0)
updates = args.epochs * updates_per_epoch(len(train), args.batch_size, hvd.size())
warmup = updates // 5
scheduler = LambdaLR(
    optimizer, lambda update: warmup_factor(update, warmup, hvd.size()) * decay_factor(update, warmup, updates)
)


def accumulate(images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Backward over the parts of a batch; returns the batch's mean loss."""
    total = torch.zeros(())
    for part, wanted in zip(images.tensor_split(PARTS), labels.tensor_split(PARTS), strict=True):
        with workers.autocast(device):
            logits = net(normalise(part)).float()
        loss = cross_entropy(logits, wanted, label_smoothing=0.1, reduction="sum") / len(labels)
        loss.backward()  # adds to the gradients; only the last part's starts the all-reduce
        total += loss.detach().cpu()
    return total


record = training.Record(args, write=hvd.rank() == 0)
for epoch in range(args.epochs):
    net.train()
    losses = []
    mine = shard(shuffle(len(train), args.seed, epoch), hvd.rank(), hvd.size())
    for images, labels in batches(train, mine, args.batch_size, augment):
        optimizer.zero_grad()
        losses.append(accumulate(images, labels))
        workers.wait_for_gradients(optimizer)
        optimizer.step()
        scheduler.step()
    hvd.grouped_allreduce_(training.running_statistics(net))
    correct = training.count_correct(net, test, torch.arange(hvd.rank(), len(test), hvd.size()))
    correct = hvd.allreduce(correct, op=hvd.Sum)
    record.add(scheduler.get_last_lr()[0], hvd.allreduce(torch.stack(losses).mean()), correct / len(test), len(train))
if hvd.rank() == 0:
    training.save(net, args.output_dir)
