"""The assignment: four workers train one network with Horovod. It began as the starter for one worker.

To run it:    horovodrun -np 4 python train.py --data-dir D --output-dir O --epochs E --batch-size B --seed S

B is the number of images a worker uses for one update. O/model.pt holds the state dict of ResNet9(width=16), and
O/metrics.jsonl a line an epoch, both for the one network that the workers trained together.
"""

# Horovod's interface for PyTorch. Everybody shortens it to hvd, also in the notebooks, so I do that too.
import horovod.torch as hvd

# NumPy is new against the starter. I make the order of the images and the shards with it, because I can think better
# in arrays with rows and columns than in slices of tensors.
import numpy as np

# From here on these are the imports of the starter. What is gone is "shuffle", because NumPy does that now, and what
# has come is "warmup_factor".
import torch
from torch.nn import CrossEntropyLoss
from torch.optim import SGD
from torch.optim.lr_scheduler import LambdaLR

from cifar import cli, training, workers
from cifar.data import augment, batches, load, updates_per_epoch
from cifar.model import ResNet9
from cifar.schedule import decay_factor, warmup_factor

# The options are those of the starter, with the same defaults. In particular lr=0.1 stays the base rate, which is the
# rate for ONE worker. It is scaled further down, in the schedule, and not here.
args = cli.parse(__doc__, epochs=8, batch_size=128, lr=0.1)

# Start Horovod. This has to come before every other call of hvd, because only after it a worker knows its rank, and the
# workers can talk to each other.
hvd.init()

# I need these two numbers in many lines, so I give them short names. The rank is the number of this worker (0 to 3 if
# there are four), and the size is how many workers there are. I never write the 4 itself, so it also runs with 2.
rank, size = hvd.rank(), hvd.size()

# Each worker takes the device that belongs to it. For this the *local* rank and the *local* size count, because on two
# machines the worker with rank 2 may be the first one of its machine. It also limits the threads to a fair share.
device = workers.use_device(args.device, hvd.local_rank(), hvd.local_size())

# Each worker gets another seed. The global generator draws the crops and flips in "augment", and if all had the same
# seed, all of them would distort their images in the same way. The first weights become different by this, too, but
# that does no harm because of the broadcast below.
torch.manual_seed(args.seed + rank)

# Every worker loads all images. The division into shards happens later, by index, in each epoch anew.
train, test = load(args.data_dir, device, args.images, args.test_images)

# The network of the starter. At this moment it is a different one on each worker, because of the different seeds.
net = ResNet9(width=16).to(device)

# The optimizer of the starter, with the base rate. The schedule multiplies this rate by its factor.
optimizer = SGD(net.parameters(), lr=args.lr, momentum=0.9, nesterov=True, weight_decay=5e-4)

# Wrap the optimizer, so that the gradients are averaged over all workers before each step. Averaging is the default. It
# needs the names to know which gradient belongs to which. With groups=1 all gradients travel together in one buffer,
# which costs less when the workers share the cores of one machine.
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=net.named_parameters(), groups=1)

# Now make the networks one: worker 0 sends its weights to all the others. I take the whole state dict and not only the
# parameters, so the buffers of batch norm are equal in the beginning as well. The optimizer has no momentum yet, its
# state is empty on all workers, so there is nothing to send for it.
hvd.broadcast_parameters(net.state_dict(), root_rank=0)

# How many updates there are in the whole run. The starter has size=1 here. With four workers an epoch has only a
# quarter of the updates, and if I forgot this the run would be over before the decay has really begun.
updates = args.epochs * updates_per_epoch(len(train), args.batch_size, size)

# The warmup takes the first fifth of all updates. I do not count it in epochs, because in a run of one epoch the warmup
# would then be the whole run, and nothing would be left for the decay.
warmup = updates // 5

# The schedule is the product of two factors. The first climbs from 1 to the number of workers in the warmup and stays
# there. The second is the linear decay of the starter, to 0 at the last update. It begins where the warmup ends, so
# that the rate really arrives at size * lr.
scheduler = LambdaLR(
    optimizer, lambda update: warmup_factor(update, warmup, size) * decay_factor(update, warmup, updates)
)

# Each worker counts right answers on its own part of the test images: worker 0 on 0, 4, 8, ..., worker 1 on 1, 5, 9 and
# so on. Together that is every test image exactly once. Here the parts may differ in length by one image, because
# counts are summed, and not averaged.
test_part = torch.from_numpy(np.arange(rank, len(test), size))

# Only worker 0 writes metrics.jsonl. All the others have a record, too, but theirs is silent.
record = training.Record(args, write=rank == 0)

# From here on it is the loop of the starter, with one round per epoch.
for epoch in range(args.epochs):
    # NumPy's generator is seeded with the seed and the epoch, and NOT with the rank. This is important: all workers
    # must have the same shuffle, or their shards would overlap. The modulo is there because NumPy takes no negative
    # seeds, and the option --seed allows them.
    generator = np.random.default_rng([args.seed % 2**32, epoch])

    # One shuffle of all image numbers. It is the same on each worker, and another one in each epoch.
    order = generator.permutation(len(train))

    # Cut off the few images at the end that cannot be divided by the number of workers (3 at most). Otherwise one
    # worker could have a batch more than the others, and it would wait for them for ever.
    order = order[: len(order) // size * size]

    # Deal the images like cards: the order becomes a table with one column for each worker, and each worker takes its
    # column. So the shards have nothing in common, and all are equally long. A column does not lie in one piece in
    # memory, therefore I let NumPy copy it.
    mine = np.ascontiguousarray(order.reshape(-1, size)[:, rank])

    # "batches" splits the indices with a method of tensors, so the shard must become an int64 tensor. The batch size
    # remains the B of the command line, because B is meant per worker.
    data = batches(train, torch.from_numpy(mine).long(), args.batch_size, augment)

    # Train for one epoch, just as in the starter. Inside, backward() starts the exchange of the gradients, and step()
    # applies their mean. The loss that comes back is only the one of this worker's images.
    loss = training.train_epoch(net, optimizer, scheduler, data, CrossEntropyLoss(label_smoothing=0.1))

    # The mean of the loss over all workers. The mean of the means is right here, because the shards are equally long.
    loss = hvd.allreduce(loss, name="loss")

    # The running means and variances of batch norm are no parameters, so no gradient keeps them equal, and each worker
    # has collected others from its own images. Replace them by their mean, in place, before the network is tested (and
    # before it is saved after the last epoch).
    hvd.grouped_allreduce_(training.running_statistics(net), name="running_statistics")

    # Count the right answers on this worker's part of the test images.
    correct = training.count_correct(net, test, test_part)

    # Add up the counts of all workers. The op must be Sum, because the default would be the mean.
    correct = hvd.allreduce(correct, name="correct", op=hvd.Sum)

    # All workers call this, but only worker 0 writes. The last number is how many images all workers together have
    # used, and that is the length of the order after cutting.
    record.add(scheduler.get_last_lr()[0], loss, correct / len(test), len(order))

# All workers have the same network now, so one of them is enough to write model.pt. If all four wrote, they would
# rename the file away from each other.
if rank == 0:
    training.save(net, args.output_dir)
