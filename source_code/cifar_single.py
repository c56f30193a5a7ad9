"""One worker trains the bootcamp's small ResNet on CIFAR-10: plain PyTorch, the starting point of the lessons.

python source_code/cifar_single.py --epochs 12
"""

import torch
from torch.optim import Adam
from torch.optim.lr_scheduler import LambdaLR

from cifar import cli, training, workers
from cifar.data import augment, batches, load, shuffle
from cifar.model import BootcampResNet, no_norm

args = cli.parse(__doc__, epochs=12, batch_size=512, lr=0.001)
device = workers.use_device(args.device)
torch.manual_seed(args.seed)

train, test = load(args.data_dir, device, args.images, args.test_images)
net = BootcampResNet(norm=no_norm).to(device)
optimizer = Adam(net.parameters(), lr=args.lr)
scheduler = LambdaLR(optimizer, lambda update: 1)

record = training.Record(args)
for epoch in range(args.epochs):
    order = shuffle(len(train), args.seed, epoch)
    data = batches(train, order, args.batch_size, augment)
    loss = training.train_epoch(net, optimizer, scheduler, data)
    correct = training.count_correct(net, test, torch.arange(len(test)))
    record.add(scheduler.get_last_lr()[0], loss, correct / len(test), len(order))
training.save(net, args.output_dir)
