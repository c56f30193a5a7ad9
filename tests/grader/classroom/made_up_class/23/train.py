"""The assignment: four workers train one network with Horovod. The Horovod parts are in distributed.py.

horovodrun -np 4 python train.py --data-dir D --output-dir O --epochs E --batch-size B --seed S

B is the number of images a worker uses for one update. O/model.pt holds the state dict of ResNet9(width=16), and
O/metrics.jsonl a line an epoch, both for the one network that the workers trained together.
"""

from torch.nn import CrossEntropyLoss
from torch.optim import SGD

import distributed
from cifar import cli, training
from cifar.data import augment, batches, load
from cifar.model import ResNet9

args = cli.parse(__doc__, epochs=8, batch_size=128, lr=0.1)
device = distributed.start(args)

train, test = load(args.data_dir, device, args.images, args.test_images)
net = ResNet9(width=16).to(device)
distributed.share_weights(net)
optimizer = SGD(net.parameters(), lr=args.lr, momentum=0.9, nesterov=True, weight_decay=5e-4)
optimizer = distributed.wrap(optimizer, net)
scheduler = distributed.make_scheduler(optimizer, len(train), args)

record = training.Record(args, write=distributed.is_first())
for epoch in range(args.epochs):
    part = distributed.train_part(len(train), args, epoch)
    data = batches(train, part, args.batch_size, augment)
    loss = training.train_epoch(net, optimizer, scheduler, data, CrossEntropyLoss(label_smoothing=0.1))
    distributed.average_batch_norm(net)  # before testing, and so before saving too
    correct = training.count_correct(net, test, distributed.test_part(len(test)))
    loss, correct = distributed.mean(loss), distributed.total(correct)
    record.add(scheduler.get_last_lr()[0], loss, correct / len(test), distributed.all_images(part))
if distributed.is_first():
    training.save(net, args.output_dir)
