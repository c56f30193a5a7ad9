"""Assignment of student 03: four workers train ONE ResNet-9 together, with Horovod.

Start it with:

    horovodrun -np 4 python train.py --data-dir D --output-dir O --epochs E --batch-size B --seed S

I wrote the training loop out by hand (zero_grad, forward, backward, step), because I want to see every step of it.
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

# ----------------------------------------------------------------------------------------------------------------------
# STEP 0: the options, and Horovod.
# After hvd.init() this process knows that it is one of several: rank() is its number among all workers, size() is how
# many there are, and local_rank() / local_size() are the same, but only for the workers on this machine.
# ----------------------------------------------------------------------------------------------------------------------
args = cli.parse(__doc__, epochs=8, batch_size=128, lr=0.1)

hvd.init()
rank = hvd.rank()
size = hvd.size()

if rank == 0:
    print("=== step 0: Horovod has started ===", flush=True)
    print(f"number of workers: {size}", flush=True)
    print(f"options: {args}", flush=True)

# ----------------------------------------------------------------------------------------------------------------------
# STEP 1: the device, and the seed.
# The device depends on the LOCAL rank, because the GPUs and cores that we divide are those of this machine.
# The seed is another one on each worker. The random numbers are used for the distortions (crop and flip), and if all
# workers had the same seed, then they would all distort in the same way. The initial weights differ because of this,
# too, but that is repaired in step 3, where everybody gets the weights of worker 0.
# ----------------------------------------------------------------------------------------------------------------------
device = workers.use_device(args.device, hvd.local_rank(), hvd.local_size())
torch.manual_seed(args.seed + rank)

if rank == 0:
    print("=== step 1: device and seed ===", flush=True)
    print(f"device of worker 0: {device}, seed of worker 0: {args.seed + rank}", flush=True)

# ----------------------------------------------------------------------------------------------------------------------
# STEP 2: the images. Every worker has all of them in memory. Which of them it uses is decided in each epoch.
# ----------------------------------------------------------------------------------------------------------------------
train, test = load(args.data_dir, device, args.images, args.test_images)

# The test images are divided as well. I take every size-th one, from my rank on. Here the parts may differ in length by
# one image, and this is no problem, because there is no exchange per batch in testing, and the counts are only summed.
# (shard() would leave out the last few images if the number cannot be divided by the number of workers.)
my_test_indices = torch.arange(len(test))[rank::size]

if rank == 0:
    print("=== step 2: images ===", flush=True)
    print(f"training images: {len(train)}, test images: {len(test)}", flush=True)
    print(f"test images of worker 0: {len(my_test_indices)}", flush=True)

# ----------------------------------------------------------------------------------------------------------------------
# STEP 3: the network and the optimizer.
# broadcast_parameters sends everything in the state dict (weights and batch norm's buffers) from worker 0 to all.
# DistributedOptimizer starts an all-reduce for each gradient as soon as backward() has computed it, and its step() only
# goes on when the mean gradients are there. Equal weights + equal gradients = equal weights after each update.
# The optimizer has no state yet (the momentum only appears in the first step), so there is no state to send.
# The optimizer begins with the base rate, args.lr. The scheduler in step 4 multiplies it.
# ----------------------------------------------------------------------------------------------------------------------
net = ResNet9(width=16).to(device)
hvd.broadcast_parameters(net.state_dict(), root_rank=0)

optimizer = SGD(net.parameters(), lr=args.lr, momentum=0.9, nesterov=True, weight_decay=5e-4)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=net.named_parameters())

loss_function = CrossEntropyLoss(label_smoothing=0.1)

if rank == 0:
    number_of_weights = sum(parameter.numel() for parameter in net.parameters())
    print("=== step 3: network ===", flush=True)
    print(f"the network has {number_of_weights} weights, all workers now have those of worker 0", flush=True)

# ----------------------------------------------------------------------------------------------------------------------
# STEP 4: the learning rate.
# With `size` workers an epoch has only 1/size of the updates, so they have to be counted with size=size.
# First the rate climbs from the base rate to size * base rate (warmup), during the first fifth of all updates. From
# there on it falls linearly to 0, as in the starter. During warmup the decay factor is 1, and after warmup the warmup
# factor stays at size, so I can simply multiply both.
# ----------------------------------------------------------------------------------------------------------------------
updates_in_epoch = updates_per_epoch(len(train), args.batch_size, size=size)
total_updates = args.epochs * updates_in_epoch
warmup_updates = total_updates // 5


def rate_factor(update):
    """Return the number that the base rate is multiplied by at this update."""
    warmup = warmup_factor(update, warmup_updates, size)
    decay = decay_factor(update, warmup_updates, total_updates)
    return warmup * decay


scheduler = LambdaLR(optimizer, rate_factor)

if rank == 0:
    print("=== step 4: learning rate ===", flush=True)
    print(f"updates in an epoch: {updates_in_epoch}, in all: {total_updates}, warmup: {warmup_updates}", flush=True)
    print(f"rate at the beginning: {scheduler.get_last_lr()[0]:.4f}, highest rate: {args.lr * size:.4f}", flush=True)

# ----------------------------------------------------------------------------------------------------------------------
# STEP 5: training.
# Only worker 0 may write metrics.jsonl, otherwise four processes write into the same file.
# ----------------------------------------------------------------------------------------------------------------------
record = training.Record(args, write=(rank == 0))

if rank == 0:
    print("=== step 5: training ===", flush=True)

for epoch in range(args.epochs):
    # The shuffle depends on the seed and the epoch only, so here it must be args.seed, WITHOUT the rank: all workers
    # have the same order. Then everybody takes another part of it. The parts are disjoint and equally long. If one
    # worker had a batch more than the others, it would wait for ever in its last all-reduce.
    order = shuffle(len(train), args.seed, epoch)
    my_indices = shard(order, rank, size)

    if rank == 0:
        print(f"--- epoch {epoch + 1} of {args.epochs}: worker 0 uses {len(my_indices)} images ---", flush=True)

    # In training mode batch norm normalises with the statistics of the batch. count_correct() below sets eval mode, so
    # this has to be said again in each epoch.
    net.train()

    loss_sum = torch.zeros((), device=device)
    image_count = 0

    for number, (images, labels) in enumerate(batches(train, my_indices, args.batch_size, augment)):
        # (a) Forget the gradients of the last update. This has to come before backward(), because Horovod does not
        #     allow it between backward() and step(): the gradients are on their way then.
        optimizer.zero_grad()

        # (b) Forward: the images are bytes, so they are normalised first. autocast computes in bfloat16 where the
        #     hardware has it. The loss itself is computed in float32.
        with workers.autocast(device):
            logits = net(normalise(images))
            loss = loss_function(logits.float(), labels)

        # (c) Backward: computes the gradients of this worker's batch. Horovod begins to exchange them meanwhile.
        loss.backward()

        # (d) Wait, asleep, until the mean gradients are there. step() would wait too, but it would keep a core busy
        #     which the other workers need.
        workers.wait_for_gradients(optimizer)

        # (e) Step: all workers apply the same mean gradient to the same weights.
        optimizer.step()

        # (f) The rate moves once per update, and not once per epoch.
        scheduler.step()

        # (g) For the report: the sum of the losses of my images. The last batch may be smaller, so I weight with the
        #     number of images. detach(), because the graph is not needed any more.
        loss_sum += loss.detach() * len(labels)
        image_count += len(labels)

        if rank == 0 and number % 20 == 0:
            print(
                f"    update {number + 1}/{updates_in_epoch}: {len(labels)} images, "
                f"loss of worker 0 {loss.item():.3f}, next rate {scheduler.get_last_lr()[0]:.4f}",
                flush=True,
            )

    # The running means and variances of batch norm are no parameters and have no gradients, so nobody has made them
    # equal: each worker has only those of its own images. Average them before testing. This is in place, so the
    # network itself has the averages afterwards.
    for number, statistic in enumerate(training.running_statistics(net)):
        hvd.allreduce_(statistic, op=hvd.Average, name=f"running_statistic_{number}")
    if rank == 0:
        print("    batch norm's running statistics are averaged", flush=True)

    # The loss: the mean over my images, then the mean over the workers. All have equally many images, so the mean of
    # the means is the mean of all.
    my_loss = loss_sum / image_count
    mean_loss = hvd.allreduce(my_loss, op=hvd.Average, name="mean_loss")
    if rank == 0:
        print(f"    loss of worker 0: {my_loss.item():.4f}, of all workers: {mean_loss.item():.4f}", flush=True)

    # The test: each worker counts the right answers in its part, and the counts are SUMMED. Then I divide by the number
    # of all test images.
    my_correct = training.count_correct(net, test, my_test_indices)
    all_correct = hvd.allreduce(my_correct, op=hvd.Sum, name="all_correct")
    accuracy = all_correct / len(test)
    if rank == 0:
        print(f"    right answers of worker 0: {my_correct.item()} of {len(my_test_indices)}", flush=True)
        print(f"    right answers of all workers: {all_correct.item()} of {len(test)}", flush=True)

    # A look whether the workers really hold the same weights. All of them have to call allgather, one of them prints.
    weight_sum = sum(parameter.detach().double().sum().item() for parameter in net.parameters())
    all_weight_sums = hvd.allgather(torch.tensor([weight_sum], dtype=torch.float64), name="weight_sums")
    if rank == 0:
        print(f"    sum of the weights on each worker: {all_weight_sums.tolist()}", flush=True)

    # All workers call add(), because it also ends the program on all of them if the loss is not a number any more. It
    # only writes on worker 0. The number of images is that of all workers together.
    record.add(scheduler.get_last_lr()[0], mean_loss, accuracy, len(my_indices) * size)

# ----------------------------------------------------------------------------------------------------------------------
# STEP 6: save the network. All workers have the same one, and worker 0 writes it.
# ----------------------------------------------------------------------------------------------------------------------
if rank == 0:
    print("=== step 6: saving ===", flush=True)
    training.save(net, args.output_dir)
    print(f"the network is in {args.output_dir / 'model.pt'}", flush=True)
    print("finished", flush=True)
