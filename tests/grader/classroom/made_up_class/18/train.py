"""Train one ResNet-9 on CIFAR-10 with all Horovod workers together.

    horovodrun -np 4 python train.py --data-dir D --output-dir O --epochs E --batch-size B --seed S

There is no DistributedOptimizer in here. After each backward pass I copy all gradients into one flat vector, average
that vector over the workers, copy it back, and let a plain torch.optim.SGD make the step.
"""

import time

import horovod.torch as hvd
import torch
from torch.nn import CrossEntropyLoss
from torch.optim.lr_scheduler import LambdaLR

from cifar import cli, training, workers
from cifar.data import augment, batches, load, normalise, shard, shuffle, updates_per_epoch
from cifar.model import ResNet9
from cifar.schedule import decay_factor, warmup_factor

WARMUP_SHARE = 5  # one fifth of all updates is warmup


def _build_network(device):
    """Return the network on `device`, with the weights of worker 0 on every worker."""
    net = ResNet9(width=16).to(device)
    hvd.broadcast_parameters(net.state_dict(), root_rank=0)
    return net


def _build_optimizer(net, base_rate):
    """Return SGD with the base rate of one worker. The schedule does the scaling."""
    return torch.optim.SGD(net.parameters(), lr=base_rate, momentum=0.9, nesterov=True, weight_decay=5e-4)


def _build_scheduler(optimizer, total_updates):
    """Return the schedule: from the base rate up to the base rate times the number of workers, then down to 0."""
    warmup_updates = total_updates // WARMUP_SHARE

    def _rate_factor(update):
        """Return what the base rate is multiplied by at this update."""
        return warmup_factor(update, warmup_updates, hvd.size()) * decay_factor(update, warmup_updates, total_updates)

    return LambdaLR(optimizer, _rate_factor)


def _flatten_gradients(parameters):
    """Return all gradients one after another in a single new vector."""
    return torch.cat([parameter.grad.reshape(-1) for parameter in parameters])


def _unflatten_gradients(flat, parameters):
    """Copy the pieces of the flat vector back to where the gradients live."""
    pieces = flat.split([parameter.numel() for parameter in parameters])
    for parameter, piece in zip(parameters, pieces):
        parameter.grad.copy_(piece.view(parameter.shape))


def _average_gradients(parameters):
    """Replace each gradient by its mean over the workers.

    The flat vector travels as one group. While it is on its way this worker sleeps, so that it does not take a core
    from the others.
    """
    flat = _flatten_gradients(parameters)
    handle = hvd.grouped_allreduce_async_([flat], name="flat_gradient", op=hvd.Average)
    while not hvd.poll(handle):
        time.sleep(workers.POLL_SECONDS)
    hvd.synchronize(handle)
    _unflatten_gradients(flat, parameters)


def _train_one_epoch(net, optimizer, scheduler, loss_function, data):
    """Make one update per batch of this worker. Return the mean loss over this worker's images."""
    net.train()
    parameters = list(net.parameters())
    loss_sum, image_count = 0.0, 0
    for images, labels in data:
        with workers.autocast(images.device):
            logits = net(normalise(images)).float()
            loss = loss_function(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        _average_gradients(parameters)
        optimizer.step()
        scheduler.step()
        loss_sum = loss_sum + loss.detach() * len(labels)
        image_count += len(labels)
    return loss_sum / image_count


def _average_statistics(net):
    """Give every worker the mean of all workers' batch norm statistics."""
    hvd.grouped_allreduce_(training.running_statistics(net), name="statistics", op=hvd.Average)


def _test_accuracy(net, test):
    """Return the share of right answers on all test images. Each worker looks at its own part of them."""
    my_part = torch.arange(hvd.rank(), len(test), hvd.size())
    my_correct = training.count_correct(net, test, my_part)
    return hvd.allreduce(my_correct, name="correct", op=hvd.Sum) / len(test)


def main():
    """Set up this worker, train for all epochs, and let worker 0 write the files."""
    args = cli.parse(__doc__, epochs=8, batch_size=128, lr=0.1)
    hvd.init()
    device = workers.use_device(args.device, hvd.local_rank(), hvd.local_size())
    torch.manual_seed(args.seed + hvd.rank())  # so that the workers distort their images differently
    is_writer = hvd.rank() == 0

    train, test = load(args.data_dir, device, args.images, args.test_images)
    net = _build_network(device)
    optimizer = _build_optimizer(net, args.lr)
    total_updates = args.epochs * updates_per_epoch(len(train), args.batch_size, hvd.size())
    scheduler = _build_scheduler(optimizer, total_updates)
    loss_function = CrossEntropyLoss(label_smoothing=0.1)

    record = training.Record(args, write=is_writer)
    for epoch in range(args.epochs):
        # The shuffle is the same on all workers, and each takes its own equally long part of it.
        my_images = shard(shuffle(len(train), args.seed, epoch), hvd.rank(), hvd.size())
        data = batches(train, my_images, args.batch_size, augment)
        my_loss = _train_one_epoch(net, optimizer, scheduler, loss_function, data)
        _average_statistics(net)
        loss = hvd.allreduce(my_loss, name="loss", op=hvd.Average)
        accuracy = _test_accuracy(net, test)
        record.add(scheduler.get_last_lr()[0], loss, accuracy, len(my_images) * hvd.size())

    if is_writer:
        training.save(net, args.output_dir)


if __name__ == "__main__":
    main()
