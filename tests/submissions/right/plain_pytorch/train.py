"""Plain PyTorch from end to end: own options, own distortion, bfloat16, own test, own files; only data and network
come from the course."""

import argparse
import json
import time

import horovod.torch as hvd
import torch
import torch.nn.functional as F

from cifar.data import load
from cifar.model import ResNet9

parser = argparse.ArgumentParser()
parser.add_argument("--data-dir", required=True)
parser.add_argument("--output-dir", required=True)
parser.add_argument("--epochs", type=int, default=8)
parser.add_argument("--batch-size", type=int, default=128)
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()

hvd.init()
rank, size = hvd.rank(), hvd.size()
torch.set_num_threads(1)
torch.manual_seed(args.seed + rank)
train, test = load(args.data_dir)
per_worker = len(train) // size
steps = -(-per_worker // args.batch_size)
total, warm = args.epochs * steps, max(1, args.epochs * steps // 5)

net = ResNet9(width=16)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=5e-4)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=net.named_parameters())
hvd.broadcast_parameters(net.state_dict(), root_rank=0)

mean = torch.tensor([0.4914, 0.4822, 0.4465]).view(1, 3, 1, 1)
std = torch.tensor([0.2470, 0.2435, 0.2616]).view(1, 3, 1, 1)


def to_input(x):
    x = (x.float() / 255 - mean) / std  # as `cifar.data.normalise` does it
    return x.to(memory_format=torch.channels_last)


def distort(x):
    """Mirror every image with probability 1/2, then shift the whole batch by up to two pixels."""
    flip = torch.rand(len(x), 1, 1, 1) < 0.5
    x = torch.where(flip, x.flip(3), x)
    down, right = torch.randint(-2, 3, (2,)).tolist()
    return torch.roll(x, (down, right), (2, 3))


def rate(step):
    if step < warm:
        return 0.1 * (1 + (size - 1) * step / warm)
    return 0.1 * size * (total - step) / (total - warm)


step = 0
for epoch in range(args.epochs):
    start = time.time()
    shuffled = torch.randperm(len(train), generator=torch.Generator().manual_seed(args.seed * 999 + epoch))
    mine = shuffled[rank * per_worker : (rank + 1) * per_worker]

    net.train()
    loss_sum = 0.0
    for i in range(steps):
        x, y = train.batch(mine[i * args.batch_size : (i + 1) * args.batch_size])
        optimizer.param_groups[0]["lr"] = rate(step)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = F.cross_entropy(net(to_input(distort(x))).float(), y, label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss_sum += loss.item() * len(y)
        step += 1

    for name, buffer in net.named_buffers():
        if buffer.dtype == torch.float32:
            hvd.allreduce_(buffer, name=f"bn.{name}")

    net.eval()
    hits = 0
    with torch.no_grad():
        for part in torch.arange(rank, len(test), size).split(256):
            x, y = test.batch(part)
            hits += int((net(to_input(x)).argmax(1) == y).sum())
    hits = hvd.allreduce(torch.tensor(hits), op=hvd.Sum, name="hits").item()
    loss = hvd.allreduce(torch.tensor(loss_sum / per_worker), name="loss").item()
    seconds = time.time() - start
    if rank == 0:
        line = {"epoch": epoch + 1, "lr": rate(step), "train_loss": loss, "test_accuracy": hits / len(test)}
        line |= {"images_per_s": size * per_worker / seconds, "seconds": seconds}
        with open(f"{args.output_dir}/metrics.jsonl", "a") as f:  # noqa: PTH123
            f.write(json.dumps(line) + "\n")
        print(line)

if rank == 0:
    torch.save(net.state_dict(), f"{args.output_dir}/model.pt")
