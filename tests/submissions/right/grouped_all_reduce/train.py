"""One grouped all-reduce an update for all gradients together; rank 0 tests alone, with its own BN statistics."""

import horovod.torch as hvd
import torch
from torch.nn.functional import cross_entropy

from cifar import cli, training, workers
from cifar.data import augment, batches, load, normalise, shard, shuffle, updates_per_epoch
from cifar.model import ResNet9
from cifar.schedule import decay_factor, warmup_factor


def main() -> None:
    args = cli.parse(__doc__, epochs=8, batch_size=128, lr=0.1)
    hvd.init()
    device = workers.use_device(args.device, hvd.local_rank(), hvd.local_size())
    torch.manual_seed(args.seed + hvd.rank())
    train, test = load(args.data_dir, device, args.images)
    net = ResNet9(width=16).to(device)
    hvd.broadcast_parameters(net.state_dict(), root_rank=0)
    optimizer = torch.optim.SGD(net.parameters(), lr=args.lr, momentum=0.9, nesterov=True, weight_decay=5e-4)
    updates = args.epochs * updates_per_epoch(len(train), args.batch_size, hvd.size())

    def factor(update: int) -> float:
        return warmup_factor(update, updates // 5, hvd.size()) * decay_factor(update, updates // 5, updates)

    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
    record = training.Record(args, write=hvd.rank() == 0)
    for epoch in range(args.epochs):
        indices = shard(shuffle(len(train), args.seed, epoch), hvd.rank(), hvd.size())
        loss = train_epoch(net, optimizer, scheduler, batches(train, indices, args.batch_size, augment))
        loss = hvd.allreduce(loss, name="loss")
        if hvd.rank() == 0:  # the others go on, and wait for it at the next all-reduce
            correct = training.count_correct(net, test, torch.arange(len(test)))
            record.add(scheduler.get_last_lr()[0], loss, correct / len(test), len(train))
    if hvd.rank() == 0:
        training.save(net, args.output_dir)


def train_epoch(net, optimizer, scheduler, data) -> torch.Tensor:
    """One pass over this worker's batches; the mean of their losses."""
    net.train()
    losses = []
    for images, labels in data:
        with workers.autocast(images.device):
            loss = cross_entropy(net(normalise(images)).float(), labels, label_smoothing=0.1)
        net.zero_grad()
        loss.backward()
        hvd.grouped_allreduce_([parameter.grad for parameter in net.parameters()], op=hvd.Average)
        optimizer.step()
        scheduler.step()
        losses.append(loss.detach())
    return torch.stack(losses).mean()


if __name__ == "__main__":
    main()
