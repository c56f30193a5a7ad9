"""PyTorch's own DataLoader and DistributedSampler over indices; a batch's images are fetched by one call."""

import horovod.torch as hvd
import torch
from torch.nn import CrossEntropyLoss
from torch.optim import SGD
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, DistributedSampler

from cifar import cli, training, workers
from cifar.data import augment, load
from cifar.model import ResNet9
from cifar.schedule import decay_factor, warmup_factor

args = cli.parse(__doc__, epochs=8, batch_size=128, lr=0.1)
hvd.init()
device = workers.use_device(args.device, hvd.local_rank(), hvd.local_size())
torch.manual_seed(args.seed + hvd.rank())
train, test = load(args.data_dir, device, args.images)


def collate(indices: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
    images, labels = train.batch(torch.tensor(indices))
    return augment(images), labels


numbers = range(len(train))
sampler = DistributedSampler(
    numbers, num_replicas=hvd.size(), rank=hvd.rank(), shuffle=True, seed=args.seed, drop_last=True
)
loader = DataLoader(numbers, batch_size=args.batch_size, sampler=sampler, collate_fn=collate)

net = ResNet9(width=16).to(device)
optimizer = SGD(net.parameters(), lr=args.lr * hvd.size(), momentum=0.9, nesterov=True, weight_decay=5e-4)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=net.named_parameters(), groups=1)
hvd.broadcast_parameters(net.state_dict(), root_rank=0)
updates = args.epochs * len(loader)
warmup = updates // 5
scheduler = LambdaLR(
    optimizer,
    lambda update: warmup_factor(update, warmup, hvd.size()) / hvd.size() * decay_factor(update, warmup, updates),
)

record = training.Record(args, write=hvd.rank() == 0)
for epoch in range(args.epochs):
    sampler.set_epoch(epoch)
    loss = training.train_epoch(net, optimizer, scheduler, loader, CrossEntropyLoss(label_smoothing=0.1))
    hvd.grouped_allreduce_(training.running_statistics(net))
    hits = training.count_correct(net, test, torch.arange(hvd.rank(), len(test), hvd.size()))
    hits = hvd.allreduce(hits, op=hvd.Sum)
    record.add(scheduler.get_last_lr()[0], hvd.allreduce(loss), hits / len(test), len(train))
if hvd.rank() == 0:
    training.save(net, args.output_dir)
