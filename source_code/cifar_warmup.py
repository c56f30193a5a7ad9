"""cifar_scalelr.py with gradual warmup: the rate climbs to its scaled value over the first three epochs.

horovodrun -np 4 python source_code/cifar_warmup.py --epochs 12
"""

import horovod.torch as hvd
import torch
from torch.nn import BatchNorm2d
from torch.optim import Adam
from torch.optim.lr_scheduler import LambdaLR

from cifar import cli, training, workers
from cifar.data import augment, batches, load, shard, shuffle, updates_per_epoch
from cifar.model import BootcampResNet
from cifar.schedule import warmup_factor

args = cli.parse(__doc__, epochs=12, batch_size=512, lr=0.001)
hvd.init()
device = workers.use_device(args.device, hvd.local_rank(), hvd.local_size())
torch.manual_seed(args.seed + hvd.rank())  # each worker augments its images differently

train, test = load(args.data_dir, device, args.images, args.test_images)
net = BootcampResNet(norm=BatchNorm2d).to(device)
optimizer = Adam(net.parameters(), lr=args.lr)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=net.named_parameters())
hvd.broadcast_parameters(net.state_dict(), root_rank=0)  # a fresh optimizer has no state to broadcast
warmup = 3 * updates_per_epoch(len(train), args.batch_size, hvd.size())
scheduler = LambdaLR(optimizer, lambda update: warmup_factor(update, warmup, hvd.size()))

record = training.Record(args, write=hvd.rank() == 0)
for epoch in range(args.epochs):
    order = shuffle(len(train), args.seed, epoch)  # the same seed on all workers: one shuffle, divided
    data = batches(train, shard(order, hvd.rank(), hvd.size()), args.batch_size, augment)
    loss = hvd.allreduce(training.train_epoch(net, optimizer, scheduler, data))
    hvd.grouped_allreduce_(training.running_statistics(net))
    correct = training.count_correct(net, test, torch.arange(hvd.rank(), len(test), hvd.size()))
    correct = hvd.allreduce(correct, op=hvd.Sum)
    record.add(scheduler.get_last_lr()[0], loss, correct / len(test), len(order))
if hvd.rank() == 0:
    training.save(net, args.output_dir)
