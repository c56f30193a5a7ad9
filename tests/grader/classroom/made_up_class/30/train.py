"""Student 30. Data-parallel ResNet-9 on CIFAR: Horovod splits the epoch over the processes that horovodrun launches.

Usage example (four processes on one machine):

    horovodrun -np 4 python train.py --data-dir DATA --output-dir RESULT --epochs 8 --batch-size 128 --seed 1
"""

import horovod.torch as hvd
import torch
from torch.nn import CrossEntropyLoss
from torch.optim import SGD
from torch.optim.lr_scheduler import LambdaLR

from cifar import cli, training, workers
from cifar.data import augment, batches, load, normalise, shard, shuffle, updates_per_epoch
from cifar.model import ResNet9
from cifar.schedule import decay_factor, warmup_factor

# Command line first, then join the group of processes.
args = cli.parse(__doc__, epochs=8, batch_size=128, lr=0.1)

hvd.init()
rank = hvd.rank()
size = hvd.size()

if rank == 0:
    print("[setup] hvd.init() returned", flush=True)
    print(f"[setup] running with {size} process(es)", flush=True)
    print(f"[setup] called with {args}", flush=True)

# Hardware is per host, hence local_rank/local_size. Adding the rank to the seed decorrelates the augmentation between
# processes; the differing initialisation that results is overwritten by the broadcast further down.
device = workers.use_device(args.device, hvd.local_rank(), hvd.local_size())
torch.manual_seed(args.seed + rank)

if rank == 0:
    print("[device] hardware chosen, generator seeded", flush=True)
    print(f"[device] root process computes on {device} with seed {args.seed + rank}", flush=True)

# The complete data set is loaded everywhere; splitting happens through indices.
train, test = load(args.data_dir, device, args.images, args.test_images)

# Strided split of the test set: nothing is dropped, even if its length is not a multiple of the process count. Unequal
# pieces are harmless since evaluation communicates just once, at its end.
my_test_indices = torch.arange(len(test))[rank::size]

if rank == 0:
    print("[data] loading done", flush=True)
    print(f"[data] {len(train)} pictures to learn from, {len(test)} to evaluate on", flush=True)
    print(f"[data] the root process evaluates {len(my_test_indices)} pictures", flush=True)

# Model replicas have to begin identical, so rank 0's state (buffers included) is copied to everyone. Afterwards the
# wrapped SGD keeps them identical by averaging gradients. SGD's momentum buffers do not exist before the first update,
# therefore broadcasting the optimizer would be pointless. lr is unscaled here; see rate_factor.
net = ResNet9(width=16).to(device)
hvd.broadcast_parameters(net.state_dict(), root_rank=0)

optimizer = SGD(net.parameters(), lr=args.lr, momentum=0.9, nesterov=True, weight_decay=5e-4)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=net.named_parameters())

loss_function = CrossEntropyLoss(label_smoothing=0.1)

if rank == 0:
    number_of_weights = sum(parameter.numel() for parameter in net.parameters())
    print("[model] replicas synchronised", flush=True)
    print(f"[model] ResNet-9, parameter count {number_of_weights}, copied from the root process", flush=True)

# Schedule, measured in optimizer updates. Scaling by the process count makes for a larger peak rate, which is reached
# gradually over 20 percent of the run; a linear decline to zero follows.
updates_in_epoch = updates_per_epoch(len(train), args.batch_size, size=size)
total_updates = args.epochs * updates_in_epoch
warmup_updates = total_updates // 5


def rate_factor(update):
    """Multiplier for LambdaLR: product of the warmup ramp and the decay, of which only one varies at a time."""
    warmup = warmup_factor(update, warmup_updates, size)
    decay = decay_factor(update, warmup_updates, total_updates)
    return warmup * decay


scheduler = LambdaLR(optimizer, rate_factor)

if rank == 0:
    print("[schedule] ready", flush=True)
    print(f"[schedule] {updates_in_epoch} per epoch, {total_updates} overall, ramp {warmup_updates}", flush=True)
    print(f"[schedule] lr starts from {scheduler.get_last_lr()[0]:.4f} and peaks near {args.lr * size:.4f}", flush=True)

# A single writer for the metrics file, so lines from different processes cannot collide.
record = training.Record(args, write=(rank == 0))

if rank == 0:
    print("[train] entering the main loop", flush=True)

for epoch in range(args.epochs):
    # One permutation shared by the whole group (note: no rank in this seed), cut into non-overlapping shards of the
    # same length. Different lengths would cause a deadlock in the collective operations.
    order = shuffle(len(train), args.seed, epoch)
    my_indices = shard(order, rank, size)

    if rank == 0:
        print(f"[train] starting epoch {epoch + 1}/{args.epochs}, shard length {len(my_indices)}", flush=True)

    # Evaluation left the model in eval mode, switch back.
    net.train()

    loss_sum = torch.zeros((), device=device)
    image_count = 0

    for number, (images, labels) in enumerate(batches(train, my_indices, args.batch_size, augment)):
        # Clearing must not happen while Horovod is still reducing, so do it at the very start of the iteration.
        optimizer.zero_grad()

        # Mixed precision for the network where available, full precision for the cross entropy. The uint8 input is
        # converted on the fly.
        with workers.autocast(device):
            logits = net(normalise(images))
            loss = loss_function(logits.float(), labels)

        # Backpropagation overlaps with the communication, layer by layer.
        loss.backward()

        # Block without spinning, to leave the CPU to the other processes on this host.
        workers.wait_for_gradients(optimizer)

        # Every replica performs the identical update.
        optimizer.step()

        # LambdaLR counts iterations here, so advance it inside the inner loop.
        scheduler.step()

        # Bookkeeping: accumulate a size-weighted loss outside of autograd.
        loss_sum += loss.detach() * len(labels)
        image_count += len(labels)

        if rank == 0 and number % 20 == 0:
            print(
                f"[train] iteration {number + 1} of {updates_in_epoch}, batch of {len(labels)}, "
                f"root's batch loss = {loss.item():.3f}, lr now {scheduler.get_last_lr()[0]:.4f}",
                flush=True,
            )

    # BatchNorm buffers get no gradient, so the replicas have drifted apart in them. An in-place all-reduce brings them
    # back together ahead of evaluation and saving.
    for number, statistic in enumerate(training.running_statistics(net)):
        hvd.allreduce_(statistic, op=hvd.Average, name=f"running_statistic_{number}")
    if rank == 0:
        print("[train] BatchNorm buffers merged across processes", flush=True)

    # Shards have the same length, which makes an unweighted average over processes exact.
    my_loss = loss_sum / image_count
    mean_loss = hvd.allreduce(my_loss, op=hvd.Average, name="mean_loss")
    if rank == 0:
        print(f"[train] epoch loss: root only {my_loss.item():.4f}, whole group {mean_loss.item():.4f}", flush=True)

    # Accuracy: add up the hits of all processes, relative to the full test set.
    my_correct = training.count_correct(net, test, my_test_indices)
    all_correct = hvd.allreduce(my_correct, op=hvd.Sum, name="all_correct")
    accuracy = all_correct / len(test)
    if rank == 0:
        print(f"[eval] hits in root's piece: {my_correct.item()}/{len(my_test_indices)}", flush=True)
        print(f"[eval] hits altogether: {all_correct.item()}/{len(test)}", flush=True)

    # Sanity check of replica consistency: compare a checksum. It is a collective call, so it stands outside the if.
    weight_sum = sum(parameter.detach().double().sum().item() for parameter in net.parameters())
    all_weight_sums = hvd.allgather(torch.tensor([weight_sum], dtype=torch.float64), name="weight_sums")
    if rank == 0:
        print(f"[check] parameter checksums by rank: {all_weight_sums.tolist()}", flush=True)

    # Called everywhere because add() also stops a diverged run in each process; the file is touched by rank 0 alone.
    record.add(scheduler.get_last_lr()[0], mean_loss, accuracy, len(my_indices) * size)

# Replicas are interchangeable by now, the root one goes to disk.
if rank == 0:
    print("[save] writing the trained model", flush=True)
    training.save(net, args.output_dir)
    print(f"[save] stored as {args.output_dir / 'model.pt'}", flush=True)
    print("[save] all done", flush=True)
