"""Four workers train one ResNet-9 with Horovod and the course's LAMB.

horovodrun -np 4 python train.py --data-dir D --output-dir O --epochs E --batch-size B --seed S
"""

import horovod.torch as hvd
import torch
from torch.nn import CrossEntropyLoss
from torch.optim.lr_scheduler import LambdaLR

from cifar import cli, training, workers
from cifar.data import augment, batches, load, shard, shuffle, updates_per_epoch
from cifar.lamb import Lamb, parameter_groups
from cifar.model import ResNet9
from cifar.schedule import decay_factor, warmup_factor

args = cli.parse(__doc__, epochs=8, batch_size=128, lr=0.0075)  # LAMB's rate, for one worker
hvd.init()
rank, size = hvd.rank(), hvd.size()
device = workers.use_device(args.device, hvd.local_rank(), hvd.local_size())
torch.manual_seed(args.seed + rank)

train, test = load(args.data_dir, device, args.images, args.test_images)
net = ResNet9(width=16).to(device)
optimizer = Lamb(parameter_groups(net, weight_decay=0.01), lr=args.lr)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=net.named_parameters(), groups=1)
# LAMB has no state before its first step, so the weights are all there is to send.
hvd.broadcast_parameters(net.state_dict(), root_rank=0)

updates = args.epochs * updates_per_epoch(len(train), args.batch_size, size)
warmup = updates // 5
scheduler = LambdaLR(optimizer, lambda u: warmup_factor(u, warmup, size) * decay_factor(u, warmup, updates))

record = training.Record(args, write=rank == 0)
for epoch in range(args.epochs):
    order = shuffle(len(train), args.seed, epoch)
    data = batches(train, shard(order, rank, size), args.batch_size, augment)
    loss = training.train_epoch(net, optimizer, scheduler, data, CrossEntropyLoss(label_smoothing=0.1))
    hvd.grouped_allreduce_(training.running_statistics(net))
    correct = training.count_correct(net, test, torch.arange(rank, len(test), size))  # shard() would drop some
    accuracy = hvd.allreduce(correct, op=hvd.Sum) / len(test)
    record.add(scheduler.get_last_lr()[0], hvd.allreduce(loss), accuracy, len(order))
if rank == 0:
    training.save(net, args.output_dir)
