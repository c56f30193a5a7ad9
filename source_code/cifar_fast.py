"""To 90 % test accuracy as fast as we can on a few cores: a network and a recipe made for speed.

horovodrun -np 4 python source_code/cifar_fast.py

The assignment's ResNet-9 explains better; this one shows how far the same loop, the same data and the same Horovod go.
On a GPU it takes airbench's network, made for 94 % (not tried yet).
"""

import horovod.torch as hvd
import torch
from torch.nn import BatchNorm2d
from torch.nn import functional as F
from torch.optim import SGD
from torch.optim.lr_scheduler import LambdaLR

from cifar import cli, training, workers
from cifar.data import load, mirror, move, normalise, shard, shuffle, updates_per_epoch
from cifar.fast import PLANS, WHITENING_IMAGES, Averaged, FastNet, triangle, whiten

args = cli.parse(__doc__, epochs=10, batch_size=128, lr=1.5)  # the rate of a global batch of 1,024
BIAS_FACTOR, DECAY, WHITENING_EPOCHS = 64, 0.002, 3  # airbench's: rate of norms' biases, weight decay an update
AVERAGED_EVERY, KEPT = 5, 0.95  # updates between two averages; what the average keeps an update, at the end
hvd.init()
device = workers.use_device(args.device, hvd.local_rank(), hvd.local_size())
torch.manual_seed(args.seed + hvd.rank())

train, test = load(args.data_dir, device, args.images, args.test_images)
plan = PLANS[device.type]
net = FastNet(plan.widths).to(device)
whiten(net, normalise(train.images[:WHITENING_IMAGES]))
weights = [weight for weight in net.parameters() if weight.requires_grad and weight.dim() > 1]
biases = [module.bias for module in net.modules() if isinstance(module, BatchNorm2d)]
rate = args.lr * args.batch_size * hvd.size() / 1024
groups = [
    {"params": weights, "lr": rate, "weight_decay": DECAY / rate},
    {"params": biases, "lr": rate * BIAS_FACTOR, "weight_decay": DECAY / rate / BIAS_FACTOR},
    {"params": [net[0].bias], "lr": rate, "weight_decay": DECAY / rate},
]
optimizer = SGD(groups, momentum=0.85, nesterov=True)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=net.named_parameters(), groups=1)
hvd.broadcast_parameters(net.state_dict(), root_rank=0)
an_epoch = updates_per_epoch(len(train), args.batch_size, hvd.size())
updates = args.epochs * an_epoch
factors = [lambda update: triangle(update, updates)] * 2
whitening = [lambda update: triangle(update, updates) * (update < WHITENING_EPOCHS * an_epoch)]
scheduler = LambdaLR(optimizer, factors + whitening)
average, update = Averaged(net), 0
mirrored = torch.rand(len(train), generator=torch.Generator().manual_seed(args.seed)) < 0.5  # equal on all workers

record = training.Record(args, write=hvd.rank() == 0)
for epoch in range(args.epochs):
    net.train()
    net.pixels = plan.pixels(epoch, args.epochs)  # also for this epoch's evaluation: a network knows one size at a time
    order, total, count = shuffle(len(train), args.seed, epoch), torch.zeros((), device=device), 0
    for indices in shard(order, hvd.rank(), hvd.size()).split(args.batch_size):
        images, labels = train.batch(indices)
        images = mirror(move(images, 2), mirrored[indices] ^ (epoch % 2 == 1))  # one way, then the other
        with workers.autocast(device):
            loss = F.cross_entropy(net(normalise(images)).float(), labels, label_smoothing=0.2)
        optimizer.zero_grad()
        loss.backward()
        workers.wait_for_gradients(optimizer)
        optimizer.step()
        scheduler.step()
        total, count, update = total + loss.detach() * len(labels), count + len(labels), update + 1
        if update % AVERAGED_EVERY == 0:
            average.update(KEPT**AVERAGED_EVERY * (update / updates) ** 3)
    if epoch == args.epochs - 1:
        average.update(1.0)
    hvd.grouped_allreduce_(training.running_statistics(net))
    mine = torch.arange(hvd.rank(), len(test), hvd.size())
    correct = training.count_correct(plan.evaluated(net), test, mine)
    correct = hvd.allreduce(correct, op=hvd.Sum)
    record.add(scheduler.get_last_lr()[0], hvd.allreduce(total / count), correct / len(test), len(order))
if hvd.rank() == 0:
    training.save(net, args.output_dir)
