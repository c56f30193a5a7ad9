"""Assignment 08: four Horovod workers train one ResNet-9 on CIFAR-10.

horovodrun -np 4 python train.py --data-dir D --output-dir O --epochs E --batch-size B --seed S
"""

import horovod.torch as hvd
import torch
from torch.optim.lr_scheduler import LambdaLR
from torch.optim import SGD
from torch import nn

from cifar import cli, training, workers
from cifar.schedule import decay_factor, warmup_factor
from cifar.model import ResNet9
from cifar.data import augment, batches, load, normalise, shard, shuffle, updates_per_epoch


def save(config, net):
    """Write model.pt, on worker 0 only."""
    if config["rank"] == 0:
        training.save(net, config["output_dir"])


@torch.no_grad()
def test(config, net, test_loader):
    """Return the accuracy on the whole test set. Each worker looks at its part."""
    net.eval()
    correct = torch.zeros((), dtype=torch.int64, device=config["device"])

    for images, labels in test_loader:
        with workers.autocast(config["device"]):
            logits = net(normalise(images))
        correct += (logits.argmax(dim=1) == labels).sum()

    correct = hvd.allreduce(correct, op=hvd.Sum, name="test_correct")
    return correct / len(config["test_set"])


def average_batch_norm(net):
    """Make the running means and variances equal on all workers."""
    for name, buffer in net.named_buffers():
        if buffer.is_floating_point():  # not num_batches_tracked, which is the same everywhere
            hvd.allreduce_(buffer, name=f"batch_norm.{name}")


def make_loaders(config, epoch):
    """Return this worker's training batches of an epoch, its test batches, and the number of images all train on."""
    # here the parts may differ in length by one: every test image has to be counted once
    test_mine = torch.arange(config["rank"], len(config["test_set"]), config["size"])
    test_loader = batches(config["test_set"], test_mine, config["test_batch_size"])

    # the shuffle is the same on all workers, and the shards are equally long
    order = shuffle(len(config["train_set"]), config["seed"], epoch)
    mine = shard(order, config["rank"], config["size"])
    train_loader = batches(config["train_set"], mine, config["batch_size"], augment)

    return train_loader, test_loader, len(mine) * config["size"]


def train_one_epoch(config, net, optimizer, scheduler, train_loader):
    """Train on this worker's shard. Return the mean loss over all workers."""
    net.train()
    seen = 0
    loss_sum = torch.zeros((), device=config["device"])
    criterion = nn.CrossEntropyLoss(label_smoothing=config["label_smoothing"])

    for images, labels in train_loader:
        seen += len(labels)
        with workers.autocast(config["device"]):
            logits = net(normalise(images))
            loss = criterion(logits.float(), labels)
        loss_sum += loss.detach() * len(labels)

        optimizer.zero_grad()
        loss.backward()
        workers.wait_for_gradients(optimizer)
        optimizer.step()
        scheduler.step()

    # all shards are equally long, so the plain mean over workers is right
    return hvd.allreduce(loss_sum / seen, name="train_loss")


def setup(config):
    """Start Horovod, read the options, load the data, and build network, optimizer and schedule."""
    args = cli.parse(__doc__, epochs=8, batch_size=128, lr=0.1)
    hvd.init()

    config = {**config, **vars(args), "args": args}
    config["device"] = workers.use_device(args.device, hvd.local_rank(), hvd.local_size())
    config["size"] = hvd.size()
    config["rank"] = hvd.rank()

    # another seed on each worker, so that they distort their images differently
    torch.manual_seed(config["seed"] + config["rank"])

    config["train_set"], config["test_set"] = load(
        config["data_dir"], config["device"], config["images"], config["test_images"]
    )

    # schedule: lr -> size * lr in the warmup, then linearly down to 0
    updates = config["epochs"] * updates_per_epoch(len(config["train_set"]), config["batch_size"], config["size"])
    warmup = int(config["warmup_fraction"] * updates)

    def factor(update):
        return warmup_factor(update, warmup, config["size"]) * decay_factor(update, warmup, updates)

    # network: different on each worker because of the seed, so worker 0's weights are sent to all
    net = ResNet9(width=config["width"]).to(config["device"])
    hvd.broadcast_parameters(net.state_dict(), root_rank=0)

    # optimizer: starts at the base rate, the schedule does the scaling
    optimizer = SGD(
        net.parameters(),
        lr=config["lr"],
        momentum=config["momentum"],
        nesterov=config["nesterov"],
        weight_decay=config["weight_decay"],
    )
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=net.named_parameters(), groups=1)

    scheduler = LambdaLR(optimizer, factor)
    return config, net, optimizer, scheduler


# Everything that has no command line option. setup() adds the options and what Horovod knows.
CONFIG = {
    "test_batch_size": 500,
    "width": 16,
    "label_smoothing": 0.1,
    "warmup_fraction": 0.2,  # share of all updates
    "weight_decay": 5e-4,
    "momentum": 0.9,
    "nesterov": True,
}


def main():
    config, net, optimizer, scheduler = setup(CONFIG)
    record = training.Record(config["args"], write=config["rank"] == 0)

    for epoch in range(config["epochs"]):
        train_loader, test_loader, images = make_loaders(config, epoch)
        loss = train_one_epoch(config, net, optimizer, scheduler, train_loader)
        average_batch_norm(net)
        accuracy = test(config, net, test_loader)
        record.add(scheduler.get_last_lr()[0], loss, accuracy, images)

    save(config, net)


if __name__ == "__main__":
    main()
