"""AdamW with the rate scaled by the number of workers; every worker draws its first weights from the same seed."""

import horovod.torch as hvd
import torch
from torch.nn.functional import cross_entropy
from torch.optim import AdamW
from torch.optim.lr_scheduler import LambdaLR

from cifar import cli, training, workers
from cifar.data import augment, batches, load, shard, shuffle, updates_per_epoch
from cifar.model import ResNet9

args = cli.parse(__doc__, epochs=8, batch_size=128, lr=0.003)
hvd.init()
device = workers.use_device(args.device, hvd.local_rank(), hvd.local_size())
train, test = load(args.data_dir, device, args.images)

torch.manual_seed(args.seed)
net = ResNet9(width=16).to(device)  # the same on all workers without a broadcast
torch.manual_seed(args.seed * 1000 + hvd.rank())  # from here on each worker distorts its images differently

decayed = [parameter for parameter in net.parameters() if parameter.dim() > 1]
others = [parameter for parameter in net.parameters() if parameter.dim() <= 1]
optimizer = AdamW([{"params": decayed, "weight_decay": 0.05}, {"params": others, "weight_decay": 0}], lr=args.lr)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=net.named_parameters(), groups=1)
updates = args.epochs * updates_per_epoch(len(train), args.batch_size, hvd.size())
peak = updates // 4


def factor(update: int) -> float:
    """A triangle: from 1 to the number of workers, and down to nothing."""
    if update < peak:
        return 1 + (hvd.size() - 1) * update / peak
    return hvd.size() * (updates - update) / (updates - peak)


scheduler = LambdaLR(optimizer, factor)
record = training.Record(args, write=hvd.rank() == 0)
for epoch in range(args.epochs):
    data = batches(
        train, shard(shuffle(len(train), args.seed, epoch), hvd.rank(), hvd.size()), args.batch_size, augment
    )
    loss = hvd.allreduce(training.train_epoch(net, optimizer, scheduler, data, cross_entropy))
    hvd.grouped_allreduce_(training.running_statistics(net))
    correct = training.count_correct(net, test, torch.arange(hvd.rank(), len(test), hvd.size()))
    record.add(scheduler.get_last_lr()[0], loss, hvd.allreduce(correct, op=hvd.Sum) / len(test), len(train))
if hvd.rank() == 0:
    training.save(net, args.output_dir)
