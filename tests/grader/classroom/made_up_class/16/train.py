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

# Passo 1: avviare Horovod, prendere il dispositivo di questo processo, un seme diverso per ognuno
hvd.init()
rango = hvd.rank()
quanti = hvd.size()
device = workers.use_device(args.device, hvd.local_rank(), hvd.local_size())
torch.manual_seed(args.seed + rango)

train, test = load(args.data_dir, device, args.images, args.test_images)
net = ResNet9(width=16).to(device)
optimizer = SGD(net.parameters(), lr=args.lr, momentum=0.9, nesterov=True, weight_decay=5e-4)

# Passo 2: una sola rete. Tutti partono dai pesi del processo 0 e usano la media dei gradienti
hvd.broadcast_parameters(net.state_dict(), root_rank=0)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=net.named_parameters())

# Passo 4: il passo di apprendimento sale da lr a lr * quanti, poi scende a zero come nello starter
updates = args.epochs * updates_per_epoch(len(train), args.batch_size, size=quanti)
riscaldamento = updates // 5  # sempre meno di updates, anche con una sola epoca


def fattore(update):
    salita = warmup_factor(update, riscaldamento, quanti)
    discesa = decay_factor(update, riscaldamento, updates)
    return salita * discesa


scheduler = LambdaLR(optimizer, fattore)

# Passo 6: scrive solo il processo 0
scrivo_io = rango == 0
record = training.Record(args, write=scrivo_io)
for epoch in range(args.epochs):
    order = shuffle(len(train), args.seed, epoch)  # qui il seme e' uguale per tutti
    # Passo 3: la mia parte delle immagini, lunga uguale per tutti
    mia_parte = shard(order, rango, quanti)
    data = batches(train, mia_parte, args.batch_size, augment)
    loss = training.train_epoch(net, optimizer, scheduler, data, CrossEntropyLoss(label_smoothing=0.1))

    # Passo 5: le statistiche della batch norm diventano uguali prima del test
    for statistica in training.running_statistics(net):
        hvd.allreduce_(statistica, op=hvd.Average)

    # Passo 6: media della perdita, somma delle risposte giuste
    mie_prove = torch.arange(rango, len(test), quanti)
    correct = training.count_correct(net, test, mie_prove)
    giuste = hvd.allreduce(correct, op=hvd.Sum)
    perdita_media = hvd.allreduce(loss, op=hvd.Average)
    immagini_usate = len(mia_parte) * quanti
    record.add(scheduler.get_last_lr()[0], perdita_media, giuste / len(test), immagini_usate)

if scrivo_io:
    training.save(net, args.output_dir)
