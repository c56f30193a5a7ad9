"""The assignment's starter: one worker, plain PyTorch. Make four workers train one network with Horovod.

One worker:    python source_code/assignment/train.py
Your version:  horovodrun -np 4 python train.py --data-dir D --output-dir O --epochs E --batch-size B --seed S
Its grade:     python -m grader check FOLDER

B is the number of images a worker uses for one update. O/model.pt must hold the state dict of ResNet9(width=16), and
O/metrics.jsonl a line an epoch, both for the one network that the workers trained together.
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

args = cli.parse(__doc__, epochs=8, batch_size=128, lr=0.1)
hvd.init()
device = workers.use_device(args.device, hvd.local_rank(), hvd.local_size())
torch.manual_seed(args.seed + hvd.rank())

train, test = load(args.data_dir, device, args.images, args.test_images)
net = ResNet9(width=16).to(device)
optimizer = SGD(net.parameters(), lr=args.lr, momentum=0.9, nesterov=True, weight_decay=5e-4)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=net.named_parameters())
hvd.broadcast_parameters(net.state_dict(), root_rank=0)
updates = args.epochs * updates_per_epoch(len(train), args.batch_size, size=hvd.size())
warmup = updates // 5
scheduler = LambdaLR(
    optimizer, lambda update: warmup_factor(update, warmup, hvd.size()) * decay_factor(update, warmup, updates)
)

record = training.Record(args, write=hvd.rank() == 0)
for epoch in range(args.epochs):
    order = shuffle(len(train), args.seed, epoch)
    data = batches(train, shard(order, hvd.rank(), hvd.size()), args.batch_size, augment)
    loss = training.train_epoch(net, optimizer, scheduler, data, CrossEntropyLoss(label_smoothing=0.1))
    for statistic in training.running_statistics(net):
        hvd.allreduce_(statistic)
    correct = training.count_correct(net, test, torch.arange(hvd.rank(), len(test), hvd.size()))
    correct = hvd.allreduce(correct, op=hvd.Sum)
    record.add(scheduler.get_last_lr()[0], hvd.allreduce(loss), correct / len(test), len(order))
if hvd.rank() == 0:
    training.save(net, args.output_dir)
