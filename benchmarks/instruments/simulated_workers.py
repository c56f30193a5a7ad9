"""Trains in one process as `size` workers would.

The process handles each worker's part of a batch in turn, and then makes one update with the mean gradient. It computes
what the lesson scripts compute on real workers, and a test compares them. It saves the time for waiting and exchange.
Accuracy does not depend on these, and the experiments that compare accuracies have many runs.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import Optimizer

from cifar import workers
from cifar.data import Split, augment, normalise, shard, shuffle, updates_per_epoch
from cifar.model import BootcampResNet
from cifar.training import running_statistics

Data = tuple[Split, Split]  # the training part and the test part


@dataclass(frozen=True)
class Recipe:
    """What is trained, and how. The parts that experiments vary are passed in.

    `factor(update, updates_an_epoch)` multiplies the optimizer's learning rates. `batch_size` is that of one worker.
    `change` augments a worker's images. `order(epoch, rank)` gives the int64 indices that a worker uses in an epoch.
    All workers must have equally many. By default they are the worker's shard of one shuffle. If `synchronised` is
    true, batch normalisation uses the statistics of all workers' images together. `before_step(net, optimizer, update)`
    is called when the mean gradient is known, before the optimizer uses it.
    """

    net: Callable[[], nn.Module] = lambda: BootcampResNet(norm=nn.BatchNorm2d)
    optimizer: Callable[[nn.Module], Optimizer] = lambda net: torch.optim.Adam(net.parameters(), lr=0.001)
    size: int = 1
    batch_size: int = 512
    epochs: int = 12
    factor: Callable[[int, int], float] = lambda update, updates_an_epoch: 1.0
    change: Callable[[Tensor], Tensor] = augment
    loss: Callable[[Tensor, Tensor], Tensor] = F.cross_entropy
    order: Callable[[int, int], Tensor] | None = None
    synchronised: bool = False
    max_updates: int | None = None
    before_step: Callable[[nn.Module, Optimizer, int], None] = lambda net, optimizer, update: None


@dataclass
class History:
    """The result of a run: the trained network, one line per epoch, and the loss of each update."""

    net: nn.Module
    epochs: list[dict] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)  # one per update: the mean over all workers' images

    @property
    def last(self) -> dict:
        """The line of the last epoch."""
        return self.epochs[-1]


def train(recipe: Recipe, data: Data, seed: int, tell: Callable[[dict], None] = lambda line: None) -> History:
    """Train as the recipe says.

    `tell` is called with the line of each epoch: epoch, updates, lr, train_loss, test_loss, test_accuracy, seconds.
    Accuracies lie between 0 and 1, and losses are in nats. If an epoch's loss is not finite, the run ends with the line
    of that epoch.
    """
    train_part, test_part = data
    team = Team(recipe, seed, train_part)
    history = History(team.net)
    for epoch in range(recipe.epochs):
        started, losses = time.perf_counter(), []
        for parts in _batches(recipe, train_part, seed, epoch):
            if team.updates == recipe.max_updates:
                break
            losses.append(team.update(train_part, parts))
        history.losses += torch.stack(losses).tolist()
        team.share_statistics()
        line = {"epoch": epoch + 1, "updates": team.updates, "lr": team.optimizer.param_groups[0]["lr"]}
        line |= {"train_loss": torch.stack(losses).mean().item(), "seconds": time.perf_counter() - started}
        history.epochs.append(line | evaluate(team.net, test_part, "test"))
        tell(history.last)
        if not torch.isfinite(torch.tensor(line["train_loss"])) or team.updates == recipe.max_updates:
            break
    return history


def _batches(recipe: Recipe, data: Split, seed: int, epoch: int) -> Iterator[tuple[Tensor, ...]]:
    """Yield, for each update of an epoch, the indices of each worker."""

    def default(epoch: int, rank: int) -> Tensor:
        return shard(shuffle(len(data), seed, epoch), rank, recipe.size)

    order = recipe.order or default
    return zip(*(order(epoch, rank).split(recipe.batch_size) for rank in range(recipe.size)), strict=True)


class Team:
    """`size` workers with equal weights. Each has its own random numbers and running statistics."""

    def __init__(self, recipe: Recipe, seed: int, data: Split):
        self.recipe, self.updates, self.device = recipe, 0, data.images.device
        self.updates_an_epoch = updates_per_epoch(len(data), recipe.batch_size, recipe.size)
        self.random = []  # the state of torch's generator for each worker
        for rank in reversed(range(recipe.size)):  # rank 0 comes last, so its weights are kept, as after a broadcast
            torch.manual_seed(seed + rank)
            net = recipe.net()
            self.random.insert(0, torch.get_rng_state())
        self.net = net.to(self.device)
        self.optimizer = recipe.optimizer(self.net)
        self.base_rates = [group["lr"] for group in self.optimizer.param_groups]
        self.statistics = [[value.clone() for value in running_statistics(self.net)] for _ in range(recipe.size)]

    def update(self, data: Split, parts: tuple[Tensor, ...]) -> Tensor:
        """Make one update with the mean of the workers' gradients. Returns the mean of their losses, a scalar tensor.

        `parts` holds the int64 indices of each worker's images.
        """
        self.set_rates()
        self.net.train()
        self.optimizer.zero_grad()
        loss = self._together(data, parts) if self.recipe.synchronised else self._in_turn(data, parts)
        self.recipe.before_step(self.net, self.optimizer, self.updates)
        self.optimizer.step()
        self.updates += 1
        return loss

    def set_rates(self) -> None:
        """Set the learning rates of the coming update."""
        factor = self.recipe.factor(self.updates, self.updates_an_epoch)
        for group, base in zip(self.optimizer.param_groups, self.base_rates, strict=True):
            group["lr"] = base * factor

    def _in_turn(self, data: Split, parts: tuple[Tensor, ...]) -> Tensor:
        total = torch.zeros((), device=self.device)
        for rank, indices in enumerate(parts):
            images, labels = self._changed(data, rank, indices)
            self._load(rank)
            loss = self._loss(images, labels)
            (loss / len(parts)).backward()
            self._keep(rank)
            total += loss.detach() / len(parts)
        return total

    def _together(self, data: Split, parts: tuple[Tensor, ...]) -> Tensor:
        changed = [self._changed(data, rank, indices) for rank, indices in enumerate(parts)]
        images, labels = (torch.cat(list(tensors)) for tensors in zip(*changed, strict=True))
        loss = self._loss(images, labels)
        loss.backward()
        return loss.detach()

    def _changed(self, data: Split, rank: int, indices: Tensor) -> tuple[Tensor, Tensor]:
        images, labels = data.batch(indices)
        torch.set_rng_state(self.random[rank])
        images = self.recipe.change(images)
        self.random[rank] = torch.get_rng_state()
        return images, labels

    def _loss(self, images: Tensor, labels: Tensor) -> Tensor:
        with workers.autocast(images.device):
            return self.recipe.loss(self.net(normalise(images)).float(), labels)

    def _load(self, rank: int) -> None:
        if self.statistics[rank]:
            torch._foreach_copy_(running_statistics(self.net), self.statistics[rank])

    def _keep(self, rank: int) -> None:
        if self.statistics[rank]:
            torch._foreach_copy_(self.statistics[rank], running_statistics(self.net))

    def share_statistics(self) -> None:
        """Give all workers the mean of their running statistics, as the scripts do after each epoch."""
        if self.recipe.synchronised or not self.statistics[0]:
            return
        means = [torch.stack(values).mean(0) for values in zip(*self.statistics, strict=True)]
        for mine in [*self.statistics, running_statistics(self.net)]:
            torch._foreach_copy_(mine, means)


@torch.no_grad()
def evaluate(net: nn.Module, split: Split, name: str, images: int | None = None, batch_size: int = 500) -> dict:
    """The accuracy (0 to 1) and the mean loss (nats) on a split's first `images`, or on all of them.

    The keys are `<name>_accuracy` and `<name>_loss`. The images are not augmented, and the network is in evaluation
    mode.
    """
    net.eval()
    correct, total = 0, 0.0
    indices = torch.arange(min(images or len(split), len(split)))
    for part in indices.split(batch_size):
        inputs, labels = split.batch(part)
        with workers.autocast(inputs.device):
            logits = net(normalise(inputs)).float()
        correct += (logits.argmax(1) == labels).sum().item()
        total += F.cross_entropy(logits, labels, reduction="sum").item()
    return {f"{name}_accuracy": correct / len(indices), f"{name}_loss": total / len(indices)}
