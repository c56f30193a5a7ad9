"""Trains and evaluates a network, and writes a run's metrics and weights.

It is the same with one worker and with many.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from cifar.data import Split, batches, normalise
from cifar.support import lane
from cifar.support.environment import stop
from cifar.workers import Arithmetic, autocast, wait_for_gradients


def train_epoch(
    net: nn.Module,
    optimizer: Optimizer,
    scheduler: LRScheduler,
    data: Iterable[tuple[Tensor, Tensor]],
    loss_function: Callable[[Tensor, Tensor], Tensor] = F.cross_entropy,
    wait: Callable[[Optimizer], None] = wait_for_gradients,
) -> Tensor:
    """Make one update per batch of uint8 images `(B, 3, 32, 32)` and labels `(B,)`. `scheduler` moves once per update.

    Returns the mean loss over this worker's images as a scalar tensor. Average it over the workers before printing it.
    `wait` is called before each step. At that moment the gradients may still be on their way.
    """
    net.train()
    total, count = torch.zeros(()), 0
    for images, labels in data:
        with autocast(images.device):
            loss = loss_function(net(normalise(images)).float(), labels)
        optimizer.zero_grad()
        loss.backward()
        wait(optimizer)
        optimizer.step()
        scheduler.step()
        lane.updated(loss.detach())  # for the live view, if there is one
        total, count = total.to(loss.device) + loss.detach() * len(labels), count + len(labels)
    return total / count


@torch.no_grad()
def count_correct(
    net: nn.Module, split: Split, indices: Tensor, batch_size: int = 500, arithmetic: Arithmetic = autocast
) -> Tensor:
    """Return how many of the images at `indices` the network classifies correctly, as a scalar int64 tensor.

    Counts can be summed over workers whose parts differ in size. Accuracies cannot.
    """
    lane.tell("testing")
    net.eval()
    correct = torch.zeros((), dtype=torch.int64)
    for images, labels in batches(split, indices, batch_size):
        with arithmetic(images.device):
            logits = net(normalise(images))
        correct = correct.to(logits.device) + (logits.argmax(dim=1) == labels).sum()
    return correct


def running_statistics(net: nn.Module) -> list[Tensor]:
    """Return the running means and variances of a network's batch normalisation. They differ from worker to worker."""
    return [buffer for buffer in net.buffers() if buffer.is_floating_point()]


class Record:
    """Write one line per epoch to `metrics.jsonl`, and one to the terminal. Only the worker with `write` does this."""

    def __init__(self, args: argparse.Namespace, write: bool = True):
        self.path, self.epochs, self.write = args.output_dir / "metrics.jsonl", args.epochs, write
        self.epoch, self.started = 0, time.perf_counter()
        if write:
            try:
                args.output_dir.mkdir(parents=True, exist_ok=True)
                self.path.write_text("")
            except OSError as error:
                stop(f"cannot write to {args.output_dir}: {error.strerror}. Name another folder with --output-dir.")

    def add(self, rate: float, train_loss: Tensor, test_accuracy: Tensor, images: int) -> None:
        """Record an epoch.

        `rate` is the learning rate at its end. `train_loss` and `test_accuracy` (0 to 1) are those of all workers.
        `images` is the number of images that all workers together have used. A loss that is infinite or not a number
        ends the program. All workers have the same averaged loss, so it ends all of them.
        """
        seconds, self.started = time.perf_counter() - self.started, time.perf_counter()
        self.epoch += 1
        lane.tell("computing" if self.epoch < self.epochs else "ending")  # for the live view, if there is one
        if not torch.isfinite(train_loss):
            stop(f"the training loss is {train_loss.item()} after epoch {self.epoch}: try a lower --lr.")
        if not self.write:
            return
        line = {
            "epoch": self.epoch, "lr": rate, "train_loss": train_loss.item(), "test_accuracy": test_accuracy.item(),
            "images_per_s": images / seconds, "seconds": seconds,
        }  # fmt: skip
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(
            f"epoch {self.epoch}/{self.epochs}  rate {rate:.5f}  training loss {line['train_loss']:.3f}  "
            f"test accuracy {line['test_accuracy']:.2%}  {line['images_per_s']:.0f} images/s  {seconds:.1f} s",
            flush=True,
        )


def save(net: nn.Module, folder: Path) -> None:
    """Write the network's state dict to `folder/model.pt`. The file appears whole or not at all.

    Its float32 tensors are on the CPU, so that a machine without a GPU can load them.
    """
    state = {name: tensor.detach().cpu().contiguous() for name, tensor in net.state_dict().items()}
    torch.save(state, folder / "model.pt.part")
    (folder / "model.pt.part").replace(folder / "model.pt")
