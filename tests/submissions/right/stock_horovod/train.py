"""As in Horovod's own PyTorch example: wrap, broadcast parameters and optimizer state, step; nothing of the course's
training loop. On a fresh optimizer that broadcast makes one update with zero gradients first, on every worker."""

import json
import time

import horovod.torch as hvd
import torch
import torch.nn.functional as F

from cifar import cli
from cifar.data import augment, load, normalise
from cifar.model import ResNet9

args = cli.parse(__doc__, epochs=8, batch_size=128, lr=0.1)

hvd.init()
torch.manual_seed(args.seed + hvd.rank())
if torch.cuda.is_available():
    torch.cuda.set_device(hvd.local_rank() % torch.cuda.device_count())
device = "cuda" if torch.cuda.is_available() else "cpu"
torch.set_num_threads(1)

train, test = load(args.data_dir, device)
model = ResNet9(width=16).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr * hvd.size(), momentum=0.9, weight_decay=5e-4)
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
hvd.broadcast_optimizer_state(optimizer, root_rank=0)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())

sampler = torch.utils.data.DistributedSampler(train, num_replicas=hvd.size(), rank=hvd.rank(), seed=args.seed)
loader = torch.utils.data.BatchSampler(sampler, args.batch_size, drop_last=False)
steps = args.epochs * len(loader)
warmup = steps // 5


def adjust_learning_rate(step):
    climb = (1 + (hvd.size() - 1) * min(1, step / warmup)) / hvd.size()
    decay = min(1, (steps - step) / (steps - warmup))
    for group in optimizer.param_groups:
        group["lr"] = args.lr * hvd.size() * climb * decay


def train_epoch(epoch):
    model.train()
    sampler.set_epoch(epoch)
    mean = torch.zeros(())
    for number, indices in enumerate(loader):
        adjust_learning_rate(epoch * len(loader) + number)
        data, target = train.batch(torch.tensor(indices))
        optimizer.zero_grad()
        loss = F.cross_entropy(model(normalise(augment(data))), target, label_smoothing=0.1)
        loss.backward()
        optimizer.step()
        mean += loss.detach().cpu() / len(loader)
    return hvd.allreduce(mean, name="avg_loss").item()


def evaluate():
    """Every worker tests its share with its own BN statistics averaged in first."""
    for name, buffer in sorted(model.named_buffers()):
        if torch.is_floating_point(buffer):
            hvd.allreduce_(buffer, name=f"buffer.{name}")
    model.eval()
    correct = torch.zeros(())
    with torch.no_grad():
        for indices in torch.arange(hvd.rank(), len(test), hvd.size()).split(250):
            data, target = test.batch(indices)
            correct += model(normalise(data)).argmax(1).eq(target).sum().cpu()
    return hvd.allreduce(correct, name="correct", op=hvd.Sum).item() / len(test)


for epoch in range(args.epochs):
    start = time.time()
    loss, accuracy = train_epoch(epoch), evaluate()
    if hvd.rank() == 0:
        elapsed = time.time() - start
        print(f"epoch {epoch + 1}: loss {loss:.4f}, accuracy {accuracy:.4f}")
        with (args.output_dir / "metrics.jsonl").open("a") as f:
            entry = {"epoch": epoch + 1, "lr": optimizer.param_groups[0]["lr"], "train_loss": loss}
            entry |= {"test_accuracy": accuracy, "images_per_s": len(train) / elapsed, "seconds": elapsed}
            f.write(json.dumps(entry) + "\n")
if hvd.rank() == 0:
    torch.save(model.state_dict(), args.output_dir / "model.pt")
