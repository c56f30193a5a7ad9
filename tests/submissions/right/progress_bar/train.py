"""Talks a lot: a progress bar and warnings on stderr, a log file for each worker, lines from all workers on stdout."""

import logging
import sys
import warnings

import horovod.torch as hvd
import torch
from torch.nn import CrossEntropyLoss
from torch.optim import SGD
from torch.optim.lr_scheduler import LambdaLR
from tqdm import tqdm

from cifar import cli, training, workers
from cifar.data import augment, batches, load, shard, shuffle, updates_per_epoch
from cifar.model import ResNet9
from cifar.schedule import decay_factor, warmup_factor

args = cli.parse(__doc__, epochs=8, batch_size=128, lr=0.1)
hvd.init()
diary = logging.FileHandler(args.output_dir / f"worker-{hvd.rank()}.log")  # a file of its own for each worker
logging.basicConfig(level=logging.INFO, handlers=[diary, logging.StreamHandler(sys.stderr)])
log = logging.getLogger(f"worker {hvd.rank()}")
device = workers.use_device(args.device, hvd.local_rank(), hvd.local_size())
torch.manual_seed(args.seed + hvd.rank())

train, test = load(args.data_dir, device, args.images)
log.info("%d training images, %d test images, on %s", len(train), len(test), device)
warnings.warn("Error: this is only a warning that sounds like an error", stacklevel=1)
net = ResNet9(width=16).to(device)
optimizer = SGD(net.parameters(), lr=args.lr, momentum=0.9, nesterov=True, weight_decay=5e-4)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=net.named_parameters(), groups=1)
hvd.broadcast_parameters(net.state_dict(), root_rank=0)
updates = args.epochs * updates_per_epoch(len(train), args.batch_size, hvd.size())
warmup = updates // 5
scheduler = LambdaLR(
    optimizer, lambda update: warmup_factor(update, warmup, hvd.size()) * decay_factor(update, warmup, updates)
)

record = training.Record(args, write=hvd.rank() == 0)
for epoch in range(args.epochs):
    order = shuffle(len(train), args.seed, epoch)
    mine = shard(order, hvd.rank(), hvd.size())
    count = updates_per_epoch(len(train), args.batch_size, hvd.size())
    data = tqdm(batches(train, mine, args.batch_size, augment), f"epoch {epoch + 1}", count, disable=hvd.rank() != 0)
    loss = training.train_epoch(net, optimizer, scheduler, data, CrossEntropyLoss(label_smoothing=0.1))
    log.info("my loss in epoch %d: %.3f", epoch + 1, loss)
    loss = hvd.allreduce(loss)
    hvd.grouped_allreduce_(training.running_statistics(net))
    correct = training.count_correct(net, test, torch.arange(hvd.rank(), len(test), hvd.size()))
    print(f"worker {hvd.rank()}: {correct} of my test images are right")
    correct = hvd.allreduce(correct, op=hvd.Sum)
    record.add(scheduler.get_last_lr()[0], loss, correct / len(test), len(order))
if hvd.rank() == 0:
    training.save(net, args.output_dir)
log.info("done")
