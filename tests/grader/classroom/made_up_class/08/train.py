"""Four workers train one ResNet-9 with Horovod.

horovodrun -np 4 python train.py --data-dir D --output-dir O --epochs E --batch-size B --seed S
"""

import horovod.torch as hvd
import torch
from torch.nn import CrossEntropyLoss
from torch.optim import SGD
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR

from cifar import cli, training, workers
from cifar.data import augment, batches, load, normalise, shard, shuffle, updates_per_epoch
from cifar.model import ResNet9


def train(net, optimizer, scheduler, data, loss_function):
    """Train for one epoch on this worker's batches. Returns the mean loss over all workers."""
    net.train()
    total_loss, seen = 0.0, 0
    for images, labels in data:
        # 1. Forward pass
        with workers.autocast(images.device):
            outputs = net(normalise(images))
            loss = loss_function(outputs.float(), labels)

        # 2. Backward pass, Horovod starts to average the gradients
        optimizer.zero_grad()
        loss.backward()

        # 3. Update, once the gradients of all workers have arrived
        workers.wait_for_gradients(optimizer)
        optimizer.step()
        scheduler.step()

        # 4. Keep track of the loss
        total_loss += loss.detach() * len(labels)
        seen += len(labels)

    # 5. The shards are equally long, so the plain mean over the workers is right
    return hvd.allreduce(total_loss / seen, op=hvd.Average, name="train_loss")


def evaluate(net, test):
    """Test on all test images, each worker on its own part. Returns the accuracy (0 to 1) of the one network."""
    # 1. Batch norm: same running mean and variance on all workers
    hvd.grouped_allreduce_(training.running_statistics(net), op=hvd.Average, name="batch_norm")

    # 2. Count on this worker's part (the parts may differ in length by one)
    my_part = torch.arange(hvd.rank(), len(test), hvd.size())
    correct = training.count_correct(net, test, my_part)

    # 3. Add up the counts of all workers, and only then divide
    correct = hvd.allreduce(correct, op=hvd.Sum, name="correct")
    return correct / len(test)


def main():
    # 1. Options, Horovod and device
    args = cli.parse(__doc__, epochs=8, batch_size=128, lr=0.1)
    hvd.init()
    device = workers.use_device(args.device, hvd.local_rank(), hvd.local_size())

    # 2. A different seed for each worker, so that each one augments differently
    torch.manual_seed(args.seed + hvd.rank())

    # 3. Data
    train_set, test_set = load(args.data_dir, device, args.images, args.test_images)

    # 4. Network, everybody starts with the weights of worker 0
    net = ResNet9(width=16).to(device)
    hvd.broadcast_parameters(net.state_dict(), root_rank=0)
    loss_function = CrossEntropyLoss(label_smoothing=0.1)

    # 5. Optimizer with the scaled learning rate (it has no momentum yet, so there is no state to broadcast)
    optimizer = SGD(
        net.parameters(), lr=args.lr * hvd.size(), momentum=0.9, nesterov=True, weight_decay=5e-4
    )
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=net.named_parameters(), groups=1)

    # 6. Learning rate schedule, per update: warmup from lr to lr * size in the first fifth, then cosine to 0
    total_updates = args.epochs * updates_per_epoch(len(train_set), args.batch_size, hvd.size())
    warmup_updates = max(1, total_updates // 5)
    decay_updates = max(1, total_updates - warmup_updates)
    warmup = LinearLR(optimizer, start_factor=1 / hvd.size(), end_factor=1.0, total_iters=warmup_updates)
    cosine = CosineAnnealingLR(optimizer, T_max=decay_updates, eta_min=0.0)
    scheduler = SequentialLR(optimizer, schedulers=[warmup, cosine], milestones=[warmup_updates])

    # 7. Training loop, only worker 0 writes metrics.jsonl
    record = training.Record(args, write=hvd.rank() == 0)
    for epoch in range(args.epochs):
        # 7.1 The same shuffle on all workers, and then this worker's shard of it
        order = shuffle(len(train_set), args.seed, epoch)
        my_images = shard(order, hvd.rank(), hvd.size())
        data = batches(train_set, my_images, args.batch_size, augment)

        # 7.2 Train and evaluate
        train_loss = train(net, optimizer, scheduler, data, loss_function)
        accuracy = evaluate(net, test_set)

        # 7.3 Report
        record.add(scheduler.get_last_lr()[0], train_loss, accuracy, len(my_images) * hvd.size())

    # 8. Only worker 0 saves the network
    if hvd.rank() == 0:
        training.save(net, args.output_dir)


if __name__ == "__main__":
    main()
