"""cifar_warmup.py, but the run goes on when a worker dies, and takes in new workers.

horovodrun -np 4 --min-np 2 --host-discovery-script source_code/answering_hosts.sh python source_code/cifar_elastic.py
"""

import horovod.torch as hvd
import torch
from torch.nn import BatchNorm2d
from torch.nn import functional as F
from torch.optim import Adam

from cifar import cli, training, workers
from cifar.data import augment, load, normalise
from cifar.elastic import Journal
from cifar.model import BootcampResNet
from cifar.schedule import warmup_factor

COMMIT = 10  # updates between two commits; a failure costs at most these

args = cli.parse(__doc__, epochs=12, batch_size=512, lr=0.001)
hvd.init()
device = workers.use_device(args.device, hvd.local_rank(), hvd.local_size())
torch.manual_seed(args.seed + hvd.rank())

train, test = load(args.data_dir, device, args.images, args.test_images)
net = BootcampResNet(norm=BatchNorm2d).to(device)
optimizer = Adam(net.parameters(), lr=args.lr)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=net.named_parameters())
sampler = hvd.elastic.ElasticSampler(train, seed=args.seed)  # divides what is left of an epoch among the workers
state = hvd.elastic.TorchState(net, optimizer, sampler=sampler, epoch=0)  # what a new worker gets from the others
state.register_reset_callbacks([sampler.reset])  # Horovod itself does not do this if hosts have only gone away.
journal, record = Journal(args.output_dir), training.Record(args, write=hvd.rank() == 0)


def finish_epoch() -> torch.Tensor:
    """Train on the images of this epoch that are left. Returns the mean loss over this worker's images."""
    if len(sampler) == 0:  # The workers have changed after the last update of an epoch.
        return torch.zeros((), device=device)
    net.train()
    losses = []
    for number, indices in enumerate(torch.tensor(list(sampler)).split(args.batch_size), start=1):
        done = state.epoch * len(train) + sampler.processed_num  # images since the run began
        rate = args.lr * warmup_factor(done, 3 * len(train), hvd.size())  # follows the number of workers
        for group in optimizer.param_groups:
            group["lr"] = rate
        images, labels = train.batch(indices)
        with workers.autocast(device):
            loss = F.cross_entropy(net(normalise(augment(images))).float(), labels)
        optimizer.zero_grad()
        loss.backward()
        workers.wait_for_gradients(optimizer)
        optimizer.step()
        losses.append(loss.detach())
        journal.update(state.epoch, sampler.processed_num, rate, indices.tolist())
        sampler.record_batch(number, len(indices))
        if number % COMMIT == 0:
            state.commit()  # raises HostsUpdatedInterrupt if workers can be added or must leave
    return torch.stack(losses).mean()


@hvd.elastic.run
def train_all_epochs(state) -> None:
    """Train to the end. Horovod calls this again, with the state of the last commit, whenever the workers change."""
    journal.begin(state.epoch, sampler.processed_num, net)
    record.write, record.epoch = hvd.rank() == 0, state.epoch
    while state.epoch < args.epochs:
        loss = hvd.allreduce(finish_epoch())
        hvd.grouped_allreduce_(training.running_statistics(net))
        correct = training.count_correct(net, test, torch.arange(hvd.rank(), len(test), hvd.size()))
        correct = hvd.allreduce(correct, op=hvd.Sum)
        record.add(optimizer.param_groups[0]["lr"], loss, correct / len(test), len(train))
        state.epoch += 1
        sampler.set_epoch(state.epoch)
        state.commit()


train_all_epochs(state)
if hvd.rank() == 0:
    training.save(net, args.output_dir)
