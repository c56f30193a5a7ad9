import torch
import torch.nn.functional as F
import horovod.torch as hvd

from cifar import cli, training, workers
from cifar.data import augment, load, normalise, shard, shuffle, updates_per_epoch
from cifar.model import ResNet9

args = cli.parse("ResNet-9 on CIFAR-10 with Horovod", epochs=8, batch_size=128, lr=0.1)

hvd.init()
r, n = hvd.rank(), hvd.size()
dev = workers.use_device(args.device, hvd.local_rank(), hvd.local_size())
torch.manual_seed(args.seed + r)

train, test = load(args.data_dir, dev, args.images, args.test_images)
net = ResNet9(width=16).to(dev)
opt = torch.optim.SGD(net.parameters(), lr=args.lr, momentum=0.9, nesterov=True, weight_decay=5e-4)
opt = hvd.DistributedOptimizer(opt, named_parameters=net.named_parameters())
hvd.broadcast_parameters(net.state_dict(), root_rank=0)

last = args.epochs * updates_per_epoch(len(train), args.batch_size, n)
warm = last // 5
u = 0

rec = training.Record(args, write=r == 0)
for ep in range(args.epochs):
    net.train()
    mine = shard(shuffle(len(train), args.seed, ep), r, n)
    tot = torch.zeros((), device=dev)
    for idx in mine.split(args.batch_size):
        # lr -> n * lr, then down to 0
        if u < warm:
            lr = args.lr * (1 + (n - 1) * u / warm)
        else:
            lr = args.lr * n * (last - u) / (last - warm)
        for g in opt.param_groups:
            g["lr"] = lr

        x, y = train.batch(idx)
        x = normalise(augment(x))
        with workers.autocast(dev):
            out = net(x).float()
            loss = F.cross_entropy(out, y, label_smoothing=0.1)
        opt.zero_grad()
        loss.backward()
        workers.wait_for_gradients(opt)
        opt.step()
        tot += loss.detach() * len(y)
        u += 1

    # batch norm statistics: same on all workers
    for b in net.buffers():
        if b.is_floating_point():
            hvd.allreduce_(b)

    loss = hvd.allreduce(tot / len(mine))
    ok = training.count_correct(net, test, torch.arange(r, len(test), n))
    ok = hvd.allreduce(ok, op=hvd.Sum)
    rec.add(lr, loss, ok / len(test), len(mine) * n)

if r == 0:
    training.save(net, args.output_dir)
