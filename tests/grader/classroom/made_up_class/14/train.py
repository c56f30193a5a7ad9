"""CIFAR-10 with ResNet-9 on Horovod, laid out like Horovod's PyTorch MNIST example.

horovodrun -np 4 python train.py --data-dir D --output-dir O --epochs E --batch-size B --seed S
"""

import horovod.torch as hvd
import torch
import torch.nn.functional as F
import torch.optim as optim
import torch.utils.data
import torch.utils.data.distributed

from cifar import cli, training, workers
from cifar.data import augment, load, normalise
from cifar.model import ResNet9

# Training settings
args = cli.parse(__doc__, epochs=8, batch_size=128, lr=0.1)
args.test_batch_size = 500
args.momentum = 0.9
args.wd = 5e-4
args.label_smoothing = 0.1

# Horovod: initialize library.
hvd.init()

# Horovod: pin GPU to local rank / limit # of CPU threads to be used per worker.
device = workers.use_device(args.device, hvd.local_rank(), hvd.local_size())

# A different seed on each worker, so that they don't all augment alike. The weights that
# come out of this differ too; the broadcast below takes care of that.
torch.manual_seed(args.seed + hvd.rank())

train_dataset, test_dataset = load(args.data_dir, device, args.images, args.test_images)


def collate_train(indices):
    data, target = train_dataset.batch(torch.tensor(indices))
    return normalise(augment(data)), target


def collate_test(indices):
    data, target = test_dataset.batch(torch.tensor(indices))
    return normalise(data), target


# Horovod: use DistributedSampler to partition the training data. drop_last, because otherwise
# it pads the shards with images that another worker has already.
train_sampler = torch.utils.data.distributed.DistributedSampler(
    train_dataset, num_replicas=hvd.size(), rank=hvd.rank(), shuffle=True, seed=args.seed, drop_last=True)
# The images are in memory as one tensor, so the loader only deals in indices and the collate
# function fetches the whole batch. No loader processes (num_workers=0).
train_loader = torch.utils.data.DataLoader(
    range(len(train_dataset)), batch_size=args.batch_size, sampler=train_sampler, collate_fn=collate_train)

# Horovod: partition the test data. No DistributedSampler here: it would pad or drop, and every
# test image has to be counted exactly once. Shards of unequal length do no harm in test().
test_sampler = range(hvd.rank(), len(test_dataset), hvd.size())
test_loader = torch.utils.data.DataLoader(
    range(len(test_dataset)), batch_size=args.test_batch_size, sampler=test_sampler, collate_fn=collate_test)

model = ResNet9(width=16).to(device)

# Horovod: scale learning rate by the number of workers.
optimizer = optim.SGD(model.parameters(), lr=args.lr * hvd.size(),
                      momentum=args.momentum, nesterov=True, weight_decay=args.wd)

# Horovod: broadcast parameters. I leave out broadcast_optimizer_state: we never resume from a
# checkpoint, so there is no state yet, and to create some it would do a step() with zero gradients
# (which is not a no-op with weight decay).
hvd.broadcast_parameters(model.state_dict(), root_rank=0)

# Horovod: wrap optimizer with DistributedOptimizer.
optimizer = hvd.DistributedOptimizer(optimizer,
                                     named_parameters=model.named_parameters(),
                                     op=hvd.Average)

# len(train_loader) is already the number of batches per worker.
total_batches = args.epochs * len(train_loader)
# One epoch of warmup, but never more than a quarter of a short run.
warmup_batches = min(len(train_loader), total_batches // 4)


# Horovod: using `lr = base_lr * hvd.size()` from the very beginning leads to worse final
# accuracy. Scale the learning rate `lr = base_lr` ---> `lr = base_lr * hvd.size()` during
# the first epoch. See https://arxiv.org/abs/1706.02677 for details.
# After the warmup reduce the learning rate linearly to 0 over the rest of the run.
def adjust_learning_rate(epoch, batch_idx):
    batches_done = epoch * len(train_loader) + batch_idx
    if batches_done < warmup_batches:
        lr_adj = 1. / hvd.size() * (batches_done * (hvd.size() - 1) / warmup_batches + 1)
    else:
        lr_adj = (total_batches - batches_done) / (total_batches - warmup_batches)
    for param_group in optimizer.param_groups:
        param_group['lr'] = args.lr * hvd.size() * lr_adj


# Horovod: average metrics from distributed training.
def metric_average(val, name):
    tensor = torch.tensor(val)
    return hvd.allreduce(tensor, name=name, op=hvd.Average)


def train(epoch):
    model.train()
    # Horovod: set epoch to sampler for shuffling.
    train_sampler.set_epoch(epoch)
    train_loss = 0.
    for batch_idx, (data, target) in enumerate(train_loader):
        adjust_learning_rate(epoch, batch_idx)
        optimizer.zero_grad()
        with workers.autocast(device):
            output = model(data)
            loss = F.cross_entropy(output.float(), target, label_smoothing=args.label_smoothing)
        loss.backward()
        # Horovod: sleep until the allreduces are done, instead of spinning in synchronize().
        workers.wait_for_gradients(optimizer)
        optimizer.step()
        train_loss += loss.item() * len(target)

    # Horovod: use train_sampler to determine the number of examples in this worker's partition.
    # The partitions are equally long, so the mean of the means is right.
    train_loss /= len(train_sampler)
    return metric_average(train_loss, 'avg_train_loss')


# Horovod: the running mean and variance of batch norm are not parameters, so nobody averages them.
def average_batch_norm():
    for i, buf in enumerate(training.running_statistics(model)):
        hvd.allreduce_(buf, name='batch_norm.%d' % i, op=hvd.Average)


@torch.no_grad()
def test():
    model.eval()
    correct = torch.tensor(0)
    for data, target in test_loader:
        with workers.autocast(device):
            output = model(data)
        # get the index of the max log-probability
        pred = output.max(1)[1]
        correct += pred.eq(target).sum().cpu()

    # Horovod: sum up the counts (no metric_average, the test shards may differ by an image).
    correct = hvd.allreduce(correct, name='sum_correct', op=hvd.Sum)
    return correct / len(test_dataset)


# Horovod: print and write logs only on first rank.
record = training.Record(args, write=hvd.rank() == 0)

for epoch in range(args.epochs):
    train_loss = train(epoch)
    average_batch_norm()
    test_accuracy = test()
    record.add(optimizer.param_groups[0]['lr'], train_loss, test_accuracy, len(train_sampler) * hvd.size())

# Horovod: save checkpoints only on worker 0 to prevent other workers from corrupting them.
if hvd.rank() == 0:
    training.save(model, args.output_dir)
