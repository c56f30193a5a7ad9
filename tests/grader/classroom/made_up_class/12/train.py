"""The assignment: four workers train one ResNet-9 with Horovod.

Run it:      horovodrun -np 4 python train.py --data-dir D --output-dir O --epochs E --batch-size B --seed S
Its grade:   python -m grader check FOLDER

B is the number of images a worker uses for one update. O/model.pt holds the state dict of ResNet9(width=16), and
O/metrics.jsonl a line an epoch, both for the one network that the workers train together. Worker 0 writes both.
"""

import horovod.torch as hvd
import torch
from torch.nn import CrossEntropyLoss
from torch.optim import SGD
from torch.optim.lr_scheduler import LambdaLR

from cifar import cli, training, workers
from cifar.data import augment, batches, load, shard, shuffle, updates_per_epoch
from cifar.model import ResNet9
from cifar.schedule import decay_factor, warmup_factor

# ======================================================================================================================
# 1. Options and workers
# ======================================================================================================================

args = cli.parse(__doc__, epochs=8, batch_size=128, lr=0.1)
hvd.init()
rank, size = hvd.rank(), hvd.size()
device = workers.use_device(args.device, hvd.local_rank(), hvd.local_size())
torch.manual_seed(args.seed + rank)  # other distortions on each worker; the first weights are made equal in section 3

# ======================================================================================================================
# 2. Data
# ======================================================================================================================

train, test = load(args.data_dir, device, args.images, args.test_images)
my_test = torch.arange(rank, len(test), size)  # not shard(), which would leave out images at the end

# ======================================================================================================================
# 3. Network: worker 0's weights for all
# ======================================================================================================================

net = ResNet9(width=16).to(device)
hvd.broadcast_parameters(net.state_dict(), root_rank=0)
loss_function = CrossEntropyLoss(label_smoothing=0.1)

# ======================================================================================================================
# 4. Optimizer: the mean gradient of all workers
# ======================================================================================================================

optimizer = SGD(net.parameters(), lr=args.lr, momentum=0.9, nesterov=True, weight_decay=5e-4)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=net.named_parameters(), groups=1)

# ======================================================================================================================
# 5. Learning rate: from lr up to size * lr in the first fifth of the updates, then down to 0
# ======================================================================================================================

updates = args.epochs * updates_per_epoch(len(train), args.batch_size, size)
warmup = updates // 5
scheduler = LambdaLR(
    optimizer, lambda update: warmup_factor(update, warmup, size) * decay_factor(update, warmup, updates)
)

# ======================================================================================================================
# 6. Training
# ======================================================================================================================

record = training.Record(args, write=rank == 0)
for epoch in range(args.epochs):
    # --- train on this worker's part of the shuffle, which is the same shuffle on all workers
    order = shuffle(len(train), args.seed, epoch)
    data = batches(train, shard(order, rank, size), args.batch_size, augment)
    loss = training.train_epoch(net, optimizer, scheduler, data, loss_function)

    # --- batch norm: one mean and variance for all workers, before the test
    hvd.grouped_allreduce_(training.running_statistics(net), op=hvd.Average)

    # --- test, each worker on its part; then put the numbers of all workers together
    correct = training.count_correct(net, test, my_test)
    correct = hvd.allreduce(correct, op=hvd.Sum)
    loss = hvd.allreduce(loss, op=hvd.Average)
    record.add(scheduler.get_last_lr()[0], loss, correct / len(test), len(order))

# ======================================================================================================================
# 7. Result: one worker writes
# ======================================================================================================================

if rank == 0:
    training.save(net, args.output_dir)
