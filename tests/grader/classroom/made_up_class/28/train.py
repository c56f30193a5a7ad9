"""Four workers train one ResNet-9 together, with Horovod.

    horovodrun -np 4 python train.py --data-dir D --output-dir O --epochs E --batch-size B --seed S

The program is a chain of small functions: settings -> pieces (net, optimizer, scheduler) -> a stream of epoch results.
Only `launch` touches files and the process-wide state.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import horovod.torch as hvd
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import SGD, Optimizer
from torch.optim.lr_scheduler import LambdaLR

from cifar import cli, training, workers
from cifar.data import Split, augment, batches, load, normalise, shard, shuffle, updates_per_epoch
from cifar.model import ResNet9
from cifar.schedule import decay_factor, warmup_factor

Pair = tuple[Tensor, Tensor]
Step = Callable[[Tensor, Tensor], tuple[Tensor, int]]


@dataclass(frozen=True)
class Defaults:
    """Defaults of the command line."""

    rounds: int = 8
    chunk: int = 128  # per worker
    base_rate: float = 0.1  # for one worker


@dataclass(frozen=True)
class Recipe:
    """What the command line does not set."""

    channels: int = 16
    inertia: float = 0.9
    shrink: float = 5e-4
    softening: float = 0.1
    ramp_part: float = 0.2  # of all updates


@dataclass(frozen=True)
class Plan:
    """The run as this worker sees it."""

    my_id: int
    n_procs: int
    rounds: int
    chunk: int
    base_rate: float
    rng_start: int


class EpochResult(NamedTuple):
    """One line of the metrics, about all workers. The order is that of `Record.add`."""

    step_size: float
    mean_err: Tensor
    hit_rate: Tensor
    pics: int


# --- the learning rate ------------------------------------------------------------------------------------------------


def ramp_steps(n_steps: int, part: float) -> int:
    """At least one update of warmup, but at least one update is left for the decay."""
    return min(max(1, round(part * n_steps)), n_steps - 1)


def make_scale(n_steps: int, ramp: int, n_procs: int) -> Callable[[int], float]:
    """From 1 up to `n_procs` during warmup, then linearly down to 0 at the last update."""
    return lambda do_step: warmup_factor(do_step, ramp, n_procs) * decay_factor(do_step, ramp, n_steps)


# --- the pieces -------------------------------------------------------------------------------------------------------


def build_model(cfg: Recipe, dev: torch.device) -> nn.Module:
    """Each worker draws its own weights (the seeds differ), and then worker 0's replace them everywhere."""
    model = ResNet9(width=cfg.channels).to(dev)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    return model


def build_sgd(model: nn.Module, cfg: Recipe, base_rate: float) -> Optimizer:
    """SGD that applies the mean gradient of all workers. `groups=1` sends all gradients in one go."""
    base_opt = SGD(model.parameters(), lr=base_rate, momentum=cfg.inertia, nesterov=True, weight_decay=cfg.shrink)
    return hvd.DistributedOptimizer(base_opt, named_parameters=model.named_parameters(), groups=1)


def build_step(model: nn.Module, opt: Optimizer, sched: LambdaLR, softening: float) -> Step:
    """Close over everything that an update needs except for the batch."""

    def do_step(pics: Tensor, targets: Tensor) -> tuple[Tensor, int]:
        with workers.autocast(pics.device):
            scores = model(normalise(pics)).float()
            mean_err = F.cross_entropy(scores, targets, label_smoothing=softening)
        opt.zero_grad()
        mean_err.backward()
        workers.wait_for_gradients(opt)
        opt.step()
        sched.step()
        return mean_err.detach() * len(targets), len(targets)

    return do_step


# --- data -------------------------------------------------------------------------------------------------------------


def own_rows(job: Plan, total: int, rnd: int) -> Tensor:
    """All workers make the same shuffle (same seed), and each takes its part. The parts are equally long."""
    return shard(shuffle(total, job.rng_start, rnd), job.my_id, job.n_procs)


def own_eval_rows(job: Plan, total: int) -> Tensor:
    """Every test image belongs to exactly one worker. These parts need not be equally long."""
    return torch.arange(job.my_id, total, job.n_procs)


# --- one epoch, and all of them ---------------------------------------------------------------------------------------


def fit_share(do_step: Step, stream: Iterable[Pair]) -> Tensor:
    """The mean loss over this worker's images."""
    errs, sizes = zip(*(do_step(pics, targets) for pics, targets in stream))
    return sum(errs) / sum(sizes)


def sync_norms(model: nn.Module) -> None:
    """Give all workers the same running statistics of batch norm: the mean of everybody's."""
    hvd.grouped_allreduce_(training.running_statistics(model), op=hvd.Average)


def global_accuracy(model: nn.Module, eval_set: Split, job: Plan) -> Tensor:
    """Counts are summed, not accuracies averaged."""
    hits = training.count_correct(model, eval_set, own_eval_rows(job, len(eval_set)))
    return hvd.allreduce(hits, op=hvd.Sum) / len(eval_set)


def fit_all(
    job: Plan, model: nn.Module, do_step: Step, get_rate: Callable[[], float], fit_set: Split, eval_set: Split
) -> Iterator[EpochResult]:
    """Train lazily: an epoch runs when the caller asks for its result."""
    for rnd in range(job.rounds):
        model.train()  # counting right answers switches to evaluation
        rows = own_rows(job, len(fit_set), rnd)
        mean_err = fit_share(do_step, batches(fit_set, rows, job.chunk, augment))
        sync_norms(model)
        yield EpochResult(
            step_size=get_rate(),
            mean_err=hvd.allreduce(mean_err, op=hvd.Average),  # right because all parts are equally long
            hit_rate=global_accuracy(model, eval_set, job),
            pics=len(rows) * job.n_procs,
        )


def launch(base: Defaults = Defaults(), cfg: Recipe = Recipe()) -> None:
    opts = cli.parse(__doc__, epochs=base.rounds, batch_size=base.chunk, lr=base.base_rate)
    hvd.init()
    dev = workers.use_device(opts.device, hvd.local_rank(), hvd.local_size())
    job = Plan(hvd.rank(), hvd.size(), opts.epochs, opts.batch_size, opts.lr, opts.seed)
    torch.manual_seed(job.rng_start + job.my_id)  # other distortions on each worker

    fit_set, eval_set = load(opts.data_dir, dev, opts.images, opts.test_images)
    model = build_model(cfg, dev)
    opt = build_sgd(model, cfg, job.base_rate)
    n_steps = job.rounds * updates_per_epoch(len(fit_set), job.chunk, job.n_procs)
    scale = make_scale(n_steps, ramp_steps(n_steps, cfg.ramp_part), job.n_procs)
    sched = LambdaLR(opt, scale)
    do_step = build_step(model, opt, sched, cfg.softening)

    is_chief = job.my_id == 0
    log = training.Record(opts, write=is_chief)
    for row in fit_all(job, model, do_step, lambda: sched.get_last_lr()[0], fit_set, eval_set):
        log.add(*row)
    if is_chief:
        training.save(model, opts.output_dir)


if __name__ == "__main__":
    launch()
