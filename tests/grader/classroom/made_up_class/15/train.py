import horovod.torch as hvd
import torch
from torch import nn, optim

from cifar import cli, training, workers
from cifar.data import augment, batches, load, shard, shuffle, updates_per_epoch
from cifar.model import ResNet9
from cifar.schedule import decay_factor, warmup_factor

args = cli.parse("ResNet-9 on Horovod", epochs=8, batch_size=128, lr=0.1)
hvd.init()
boss = (rank := hvd.rank()) == 0
dev = workers.use_device(args.device, hvd.local_rank(), hvd.local_size())
torch.manual_seed(args.seed + rank)

train, test = load(args.data_dir, dev, args.images, args.test_images)
hvd.broadcast_parameters((net := ResNet9(width=16).to(dev)).state_dict(), root_rank=0)
sgd = optim.SGD(net.parameters(), lr=args.lr, momentum=0.9, nesterov=True, weight_decay=5e-4)
opt = hvd.DistributedOptimizer(sgd, named_parameters=net.named_parameters(), groups=1)
warm = (last := args.epochs * updates_per_epoch(len(train), args.batch_size, size := hvd.size())) // 5
sched = optim.lr_scheduler.LambdaLR(opt, lambda u: warmup_factor(u, warm, size) * decay_factor(u, warm, last))
loss_fn, exam = nn.CrossEntropyLoss(label_smoothing=0.1), torch.arange(rank, len(test), size)

rec = training.Record(args, write=boss)
for e in range(args.epochs):
    data = batches(train, mine := shard(shuffle(len(train), args.seed, e), rank, size), args.batch_size, augment)
    loss = hvd.allreduce(training.train_epoch(net, opt, sched, data, loss_fn), name="loss")
    _ = [hvd.allreduce_(b, name=f"bn.{n}") for n, b in net.named_buffers() if b.is_floating_point()]
    hits = hvd.allreduce(training.count_correct(net, test, exam), name="hits", op=hvd.Sum)
    rec.add(sched.get_last_lr()[0], loss, hits / len(test), len(mine) * size)
boss and training.save(net, args.output_dir)
