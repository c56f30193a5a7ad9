"""PyTorch's own schedules: LinearLR from the base rate to the scaled rate, then CosineAnnealingLR to zero."""

import horovod.torch as hvd
import torch
from torch.nn import CrossEntropyLoss
from torch.optim import SGD
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR

from cifar import cli, training, workers
from cifar.data import augment, batches, load, shuffle, updates_per_epoch
from cifar.model import ResNet9

args = cli.parse(__doc__, epochs=8, batch_size=128, lr=0.1)
hvd.init()
device = workers.use_device(args.device, hvd.local_rank(), hvd.local_size())
torch.manual_seed(args.seed + hvd.rank())

train, test = load(args.data_dir, device, args.images)
net = ResNet9(width=16).to(device)
hvd.broadcast_parameters(net.state_dict(), root_rank=0)
optimizer = hvd.DistributedOptimizer(
    SGD(net.parameters(), lr=args.lr * hvd.size(), momentum=0.9, nesterov=True, weight_decay=5e-4),
    named_parameters=net.named_parameters(),
)
updates = args.epochs * updates_per_epoch(len(train), args.batch_size, hvd.size())
warmup = updates // 5
climb = LinearLR(optimizer, start_factor=1 / hvd.size(), total_iters=warmup)
anneal = CosineAnnealingLR(optimizer, T_max=updates - warmup)
scheduler = SequentialLR(optimizer, [climb, anneal], milestones=[warmup])

record = training.Record(args, write=hvd.rank() == 0)
for epoch in range(args.epochs):
    order = shuffle(len(train), args.seed, epoch)
    mine = order.chunk(hvd.size())[hvd.rank()]  # a block of the shuffle, not every fourth image of it
    data = batches(train, mine, args.batch_size, augment)
    loss = training.train_epoch(net, optimizer, scheduler, data, CrossEntropyLoss(label_smoothing=0.1))
    hvd.grouped_allreduce_(training.running_statistics(net))
    correct = training.count_correct(net, test, torch.arange(len(test)))  # every worker tests all: the same count
    record.add(scheduler.get_last_lr()[0], hvd.allreduce(loss), correct / len(test), len(order))
if hvd.rank() == 0:
    training.save(net, args.output_dir)
