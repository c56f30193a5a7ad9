"""Writes one line per update of the program's optimizers."""

import dataclasses
import inspect
from collections.abc import Callable, Iterable

import torch

from .batch_watcher import BatchWatcher
from .gradient_probe import GradientProbe
from .horovod_state import horovod_size
from .log_format import PROJECTIONS, End, First, Update
from .log_writer import LogWriter
from .network_watcher import NetworkWatcher
from .output_watcher import OutputWatcher
from .weights_keeper import WeightsKeeper


class UpdateProbe:
    """Follows the steps of all optimizers. `after_update` is called with the number of each update."""

    def __init__(
        self, log: LogWriter, output: OutputWatcher, batches: BatchWatcher, keeper: WeightsKeeper,
        after_update: Callable[[int], None],
    ):  # fmt: skip
        self.log, self.output, self.keeper, self.after_update = log, output, keeper, after_update
        self.batches, self.gradients = batches, GradientProbe()
        self.networks = NetworkWatcher(self.gradients, keeper)
        self.first: First | None = None  # until it is written; a closure may compute the gradients within the step
        self.updates = 0
        self.depth = 0  # Horovod's optimizer calls step() of the optimizer that it wraps: one update, not two
        self.applied: torch.Tensor | None = None  # projections of the gradient of the step that is being made
        self.last: Update | None = None
        self.stepped: dict[int, torch.Tensor] = {}  # weights that the last update changed, by id
        self.held = 0  # how many of the network's numbers the optimizer holds whose rates are told
        self.local: dict[int, torch.Tensor] = {}  # the gradients of the last update: see GradientProbe.take

    def before_step(self, optimizer, args, kwargs) -> None:
        """Write the first line before the first update; note the gradient that is applied."""
        self.gradients.project_pending()
        weights = parameters(optimizer)
        if self.depth == 0:
            network = self._network(weights)
            if self.updates == 0:
                self.first = self._first(optimizer, weights, network)
                if self._trained():
                    self._write_first()
            self.keeper.note_before(network)
        self.depth += 1
        self.gradients.follow(weights)
        if self.depth == 1 and hasattr(optimizer, "skip_synchronize"):
            self.applied = None  # Horovod's optimizer averages first, and then calls step() again
            return
        self.applied = self.gradients.applied(weights)

    def _first(self, optimizer, weights: list[torch.Tensor], network: list[torch.Tensor] | None) -> First:
        size = sum(weight.numel() * weight.element_size() for weight in weights)
        name, device = kind(optimizer), str(weights[0].device)
        commitment = self.keeper.keep(0, network)
        return First(
            start=fingerprint(weights), bytes=size, size=horovod_size(), device=device, optimizer=name,
            commitment=commitment,
        )  # fmt: skip

    def _write_first(self) -> None:
        """Write the first line, if it is not written yet."""
        if self.first is not None:
            self.log.write(self.first)
            self.first = None

    def _network(self, weights: list[torch.Tensor]) -> list[torch.Tensor] | None:
        """The parameters of the assignment's network, if these weights belong to it."""
        return self.keeper.parameters({id(weight): weight for weight in weights})

    def _trained(self) -> bool:
        """Whether images or gradients were seen since the last update.

        A step without them only makes an optimizer's state, as hvd.broadcast_optimizer_state does on workers whose
        optimizer has none yet.
        """
        return self.batches.any() or self.gradients.any()

    def after_step(self, optimizer, args, kwargs) -> None:
        """Write a line after each update, and once more if another optimizer takes part in it."""
        self.depth -= 1
        if self.depth:
            return
        if has_closure(args, kwargs):
            self.gradients.project_pending()
            self.applied = self.gradients.applied(parameters(optimizer))
        if self._trained():
            self._write_first()
            self._write_update(optimizer)
            self.keeper.answer()
            self.after_update(self.updates)
        elif self.last is not None and self._applied_something():
            self._write_update_again(optimizer)

    def _write_update(self, optimizer) -> None:
        self.updates += 1
        weights = parameters(optimizer)
        network = self._network(weights)
        self.stepped = {id(weight): weight for weight in weights}
        self.held = held(weights, network)
        self.local, (batches, test_images) = self.gradients.take(), self.batches.take()
        self.last = Update(
            update=self.updates, lr=rates(optimizer, network),
            images=[image for batch in batches for image in batch], calls=len(batches),
            test_images=test_images, weights=fingerprint(self.stepped.values()),
            local=self._own(), applied=numbers(self.applied),
            loss=self.networks.take_loss(), wrote=self.output.take(), **self._promised(),
        )  # fmt: skip
        self.log.write(self.last)

    def _write_update_again(self, optimizer) -> None:
        """Another optimizer's step for the same batch belongs to the same update."""
        weights = parameters(optimizer)
        network = self._network(weights)
        self.stepped |= {id(weight): weight for weight in weights}
        earlier = self.last.applied or [0.0] * PROJECTIONS
        applied = [before + now for before, now in zip(earlier, numbers(self.applied), strict=True)]
        promised = self._promised()
        promised |= {name: added(getattr(self.last, name), promised[name]) for name in ("step", "moved")}
        if (more := held(weights, network)) > self.held:
            self.held, promised["lr"] = more, rates(optimizer, network)
        self.last = dataclasses.replace(
            self.last, weights=fingerprint(self.stepped.values()), applied=applied, local=self._own(), **promised
        )
        self.log.write(self.last)

    def _promised(self) -> dict[str, object]:
        """Keep the network's weights, and return the fields of the line that are about them."""
        network = self.keeper.parameters(self.stepped)
        commitment = self.keeper.keep(self.updates, network)
        lengths = self.keeper.lengths(self.updates)
        return {"commitment": commitment, "network": self.gradients.numbers(network), **lengths}

    def _own(self) -> list[float] | None:
        """The projections of what this worker computed for the weights that changed: other networks do not count."""
        return numbers(self.gradients.own(self.local, self.stepped.values()))

    def _applied_something(self) -> bool:
        """Whether the last step had a gradient that is not zero; a step without one is no update."""
        return self.applied is not None and bool(self.applied.any())

    def end(self) -> None:
        """Write the last line when the program ends, and answer the last questions."""
        self.log.write(End(end=self.updates, wrote=self.output.take()))
        self.keeper.linger()


def has_closure(args: tuple, kwargs: dict) -> bool:
    """Whether a step was called with a function that computes the gradients. The first argument is the optimizer."""
    return any(map(callable, (*args[1:], *kwargs.values())))


def parameters(optimizer) -> list[torch.Tensor]:
    """All parameters of an optimizer, in its order."""
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def held(weights: list[torch.Tensor], network: list[torch.Tensor] | None) -> int:
    """How many numbers of the assignment's network are among an optimizer's weights."""
    own = {id(weight) for weight in weights}
    return sum(weight.numel() for weight in network or [] if id(weight) in own)


def rates(optimizer, network: list[torch.Tensor] | None) -> list[float]:
    """The rates of an optimizer's groups. That of the group with most of the network's weights comes first.

    A group without any of them changes nothing that counts, whatever its rate is.
    """
    wanted = {id(weight) for weight in network or parameters(optimizer)}

    def size(group: dict) -> int:
        return sum(weight.numel() for weight in group["params"] if id(weight) in wanted)

    return [float(group["lr"]) for group in sorted(optimizer.param_groups, key=size, reverse=True)]


def kind(optimizer) -> str:
    """The name of an optimizer's class. A subclass of SGD that makes the steps of SGD is an SGD, whatever its name."""
    for each in type(optimizer).__mro__:
        step = each.__dict__.get("step")
        if step is not None and not each.__module__.startswith("horovod"):
            return (
                "SGD" if getattr(inspect.unwrap(step), "__qualname__", "") == "SGD.step" else type(optimizer).__name__
            )
    return type(optimizer).__name__


def added(one: float | None, other: float | None) -> float | None:
    """The sum of two numbers, or the one that there is."""
    return other if one is None else one if other is None else one + other


def fingerprint(tensors: Iterable[torch.Tensor]) -> int:
    """The course's hash of weights: see cifar.support.fingerprint.

    It is imported here because a submission may bring its own copy of `cifar`, which must not be hidden by this one.
    """
    from cifar.support.fingerprint import fingerprint

    return fingerprint(tensors)


def numbers(tensor: torch.Tensor | None) -> list[float] | None:
    """A tensor's numbers, to six digits."""
    return None if tensor is None else [float(f"{value:.6g}") for value in tensor.tolist()]
