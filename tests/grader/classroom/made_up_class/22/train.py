"""ResNet-9 on CIFAR-10, trained by several Horovod workers as one network.

horovodrun -np 4 python train.py --data-dir D --output-dir O --epochs E --batch-size B --seed S
"""

import horovod.torch as hvd
import torch
from torch.nn import functional as F
from torch.optim import SGD
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import BatchSampler

from cifar import cli, training, workers
from cifar.data import augment, batches, load, normalise, shard, shuffle, updates_per_epoch
from cifar.model import ResNet9
from cifar.schedule import decay_factor, warmup_factor

TEST_CHUNK = 500


def step(net, optimizer, scheduler, images, labels, loss_sum, seen):
    """Make one update. The loss and the number of images are added to the running sums, in place."""
    with workers.autocast(images.device):
        logits = net(normalise(images))
    loss = F.cross_entropy(logits.float(), labels, label_smoothing=0.1)
    optimizer.zero_grad()
    loss.backward()  # Horovod starts to average the gradients here
    workers.wait_for_gradients(optimizer)
    optimizer.step()
    scheduler.step()
    loss_sum += loss.detach() * len(labels)
    seen += len(labels)


def main():
    args = cli.parse(__doc__, epochs=8, batch_size=128, lr=0.1)

    hvd.init()
    rank, size = hvd.rank(), hvd.size()
    device = workers.use_device(args.device, hvd.local_rank(), hvd.local_size())
    torch.manual_seed(args.seed + rank)  # other distortions on each worker; the weights are made equal below

    train, test = load(args.data_dir, device, args.images, args.test_images)

    # one network: start from worker 0's weights, and apply the mean gradient everywhere
    net = ResNet9(width=16).to(device)
    hvd.broadcast_parameters(net.state_dict(), root_rank=0)
    optimizer = SGD(net.parameters(), lr=args.lr, momentum=0.9, nesterov=True, weight_decay=5e-4)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=net.named_parameters(), groups=1)

    # the rate climbs from lr to size * lr, for at most one epoch, and then falls to 0
    per_epoch = updates_per_epoch(len(train), args.batch_size, size)
    updates = args.epochs * per_epoch
    warmup = min(per_epoch, updates // 4)
    scheduler = LambdaLR(
        optimizer, lambda update: warmup_factor(update, warmup, size) * decay_factor(update, warmup, updates)
    )

    record = training.Record(args, write=rank == 0)
    for epoch in range(args.epochs):
        # running sums of this epoch, float64 so that counts stay exact
        loss_sum = torch.zeros((), dtype=torch.float64, device=device)
        seen = torch.zeros((), dtype=torch.float64, device=device)
        right = torch.zeros((), dtype=torch.float64, device=device)

        # train on my part of the shuffle that all workers share
        net.train()
        mine = shard(shuffle(len(train), args.seed, epoch), rank, size)
        for images, labels in batches(train, mine, args.batch_size, augment):
            step(net, optimizer, scheduler, images, labels, loss_sum, seen)

        # batch norm's running statistics differ between workers: take their mean before testing
        hvd.grouped_allreduce_(training.running_statistics(net), op=hvd.Average, name="running_statistics")

        # test on every size-th test image; the parts may differ by one, so only counts are summed
        net.eval()
        with torch.no_grad():
            for chunk in BatchSampler(range(rank, len(test), size), TEST_CHUNK, drop_last=False):
                images, labels = test.batch(torch.tensor(chunk))
                with workers.autocast(device):
                    logits = net(normalise(images))
                right += (logits.argmax(dim=1) == labels).sum()

        # the sums of all workers, in one exchange
        sums = hvd.allreduce(torch.stack([loss_sum, seen, right]), op=hvd.Sum, name="epoch_sums")
        record.add(scheduler.get_last_lr()[0], sums[0] / sums[1], sums[2] / len(test), int(sums[1]))

    if rank == 0:
        training.save(net, args.output_dir)


if __name__ == "__main__":
    main()
