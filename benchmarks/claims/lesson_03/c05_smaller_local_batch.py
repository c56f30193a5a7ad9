"""C05: does halving the per-worker batch restore the run of one worker, and how much speed does it cost?

Real Horovod workers train twice: once with one worker's batch divided among them, and once with one worker's batch on
each. Seed and order are the same. The runs use float32, no augmentation and no batch normalisation, so that only
rounding may differ. One worker also takes each batch's images in another order, which shows the effect of rounding
alone. The price is measured with the same workers at both batch sizes, with and without exchange.
"""

import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial

import horovod.torch as hvd
import numpy as np
import torch
from torch import Tensor

from benchmarks.experiment.claim import Claim, Picture, Runs, Settings, Values, Verdict
from benchmarks.experiment.intervals import Difference, deviation, mean_std, paired
from benchmarks.experiment.plots import panels
from benchmarks.instruments import horovod_ops
from benchmarks.instruments.horovod_launch import on_workers
from cifar.data import Split, shard, shuffle
from cifar.model import BootcampResNet
from cifar.workers import wait_for_gradients

SIZES = {"1_worker": 1, "2_workers": 2, "4_workers": 4}  # number of workers by variant
# How many times the effect of another order of summation still counts as rounding. That effect is measured only once
# per seed, so it may be small by chance.
ROUNDING = 10
FLOAT32 = 1e-7  # the relative step of float32: losses of a few nats cannot agree better


class Run:
    """One training run on a worker. It exchanges gradients with the workers of its team, if it has one."""

    def __init__(self, seed: int, rate: float, device: torch.device, team: hvd.ProcessSet | None):
        torch.manual_seed(seed)
        self.net = BootcampResNet().to(device)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=rate, momentum=0.9)
        if team:
            named = self.net.named_parameters()
            self.optimizer = hvd.DistributedOptimizer(self.optimizer, named, process_set=team)

    def update(self, split: Split, indices: Tensor) -> Tensor:
        """Make one update in float32. Returns this worker's loss, a scalar tensor."""
        images, labels = split.batch(indices)
        self.optimizer.zero_grad()
        loss = horovod_ops.loss_of(self.net, images, labels, lambda device: nullcontext())
        loss.backward()
        wait_for_gradients(self.optimizer)
        self.optimizer.step()
        return loss.detach()


def trajectories(seed: int, batch_size: int, updates: int, rounds: int, rate: float, device: str) -> list[Values]:
    """Runs on a worker. Returns the losses and speeds of each team, which train one after the other.

    The entry of a team to which this worker does not belong is empty.
    """
    split, _ = horovod_ops.data(device, images=updates * batch_size * max(SIZES.values()), test_images=1)
    torch.set_num_threads(1)  # one thread each, also for a single worker, so that no worker uses more than one core
    teams = [hvd.add_process_set([0]), hvd.add_process_set([0, 1]), hvd.global_process_set]
    found = []
    for team in teams:
        horovod_ops.barrier()
        options = (split, seed, batch_size, rate, team)
        if team.included():
            found.append({"losses": _losses(updates, *options), "images_per_s": _speeds(rounds, *options)})
        else:
            found.append({})
    return found


def _losses(updates: int, split: Split, seed: int, batch_size: int, rate: float, team: hvd.ProcessSet) -> Values:
    """The team's mean loss at each update, with one worker's batch divided among the workers, and kept by each."""
    rank, size = team.rank(), team.size()

    def losses(global_batch: int, change: Callable[[Tensor], Tensor] = lambda part: part) -> list[float]:
        run, order = Run(seed, rate, split.images.device, team), shuffle(len(split), seed, 0)
        parts = order.split(global_batch)[:updates]
        mine = torch.stack([run.update(split, shard(change(part), rank, size)) for part in parts])
        return horovod_ops.mean(mine, "losses", process_set=team).tolist()

    # One worker has nothing to divide. Instead it shows the effect of another order of summation.
    kept = losses(batch_size * size) if size > 1 else losses(batch_size, lambda part: part.flip(0))
    return {"divided": losses(batch_size), "kept": kept}


def _speeds(
    rounds: int, split: Split, seed: int, batch_size: int, rate: float, team: hvd.ProcessSet
) -> dict[str, list[float]]:  # fmt: skip
    """The images/s of a worker with the batch divided and kept, with and without exchange: one value per round.

    Workers that share cores do not end at the same time. Their seconds are therefore averaged, over so many updates
    that each worker had its share of the cores.
    """
    names = [f"{name}{end}" for name in ("divided", "kept") for end in ("", "_alone")]
    found = {name: [] for name in (names if team.size() > 1 else ["kept_alone"])}
    for _ in range(rounds):
        for name in found:
            batch = batch_size // team.size() if name.startswith("divided") else batch_size
            run = Run(seed, rate, split.images.device, None if name.endswith("alone") else team)
            indices, updates = torch.arange(batch), 8 * batch_size // batch
            run.update(split, indices)
            horovod_ops.mean(torch.zeros(1), "start", process_set=team)  # all workers begin together
            started = time.perf_counter()
            for _ in range(updates):
                run.update(split, indices).item()
            seconds = torch.tensor(time.perf_counter() - started)
            if name.endswith("alone"):
                horovod_ops.compute_on(partial(run.update, split, indices), "end", process_set=team)
            found[name].append(updates * batch / horovod_ops.mean(seconds, "seconds", process_set=team).item())
    return {name: found.get(name, found["kept_alone"]) for name in names}  # for one worker all four are the same


def measure(seed: int, settings: Settings) -> dict[str, Values]:
    """Measure all teams in one launch, one after the other. The values are those of rank 0."""
    options = {name: settings[name] for name in ("batch_size", "updates", "rounds", "rate", "device")}
    environment = {"HOROVOD_DYNAMIC_PROCESS_SETS": "1"}
    found = on_workers(
        f"{__name__}:trajectories",
        max(SIZES.values()),
        environment,
        seed=seed,
        **options,
    )[0]
    return dict(zip(SIZES, found, strict=True))


def distance(losses: list[float], others: list[float]) -> float:
    """The root mean square difference of two runs' losses, in nats."""
    return float(np.sqrt(np.mean(np.square(np.subtract(losses, others)))))


def distances(runs: Runs, variant: str, which: str) -> list[float]:
    """The distance of each run's losses from those of one worker with the same seed, in nats."""
    pairs = zip(runs["1_worker"], runs[variant], strict=False)
    return [distance(one["losses"]["divided"], other["losses"][which]) for one, other in pairs]


def speeds(runs: Runs, variant: str, which: str) -> np.ndarray:
    """The images/s of a worker, for each round of each run."""
    return np.concatenate([run["images_per_s"][which] for run in runs[variant]])


def price(runs: Runs, variant: str, end: str = "") -> Difference:
    """The relative change of a worker's images/s when the batch is divided. Each launch counts as one value."""
    launches = [run["images_per_s"] for run in runs[variant]]
    change = [np.divide(of[f"divided{end}"], of[f"kept{end}"]).mean() for of in launches]
    return paired(change, np.ones(len(change)))


def judge(runs: Runs) -> Verdict:
    """The claim holds if the losses agree up to rounding and each worker computes fewer images per second."""
    rounding = max(distances(runs, "1_worker", "kept"))
    variants = [variant for variant in SIZES if variant != "1_worker"]
    apart = max(max(distances(runs, variant, "divided")) for variant in variants)
    kept = min(min(distances(runs, variant, "kept")) for variant in variants)
    found = [price(runs, variant) for variant in variants]
    prices = "; ".join(
        f"of {SIZES[variant]} workers each computes {of.text(100, 0, ' %')} images/s when the batch is divided, "
        f"{price(runs, variant, '_alone').text(100, 0, ' %')} without exchange"
        for variant, of in zip(variants, found, strict=True)
    )
    text = (
        f"with the batch divided the loss stays within {apart:.1e} nats of one worker's (another order of summation: "
        f"{rounding:.1e}), with the batch kept it is {kept:.1e} away; {prices}"
    )
    if apart > ROUNDING * max(rounding, FLOAT32) or apart >= kept:
        return Verdict("fails", f"{text}: the run is not restored.")
    if all(of.high < 0 for of in found):
        return Verdict("holds", f"{text}.")
    return Verdict("depends", f"{text}: the run is restored, a price was not seen for every number of workers.")


def picture(runs: Runs) -> Picture:
    """The picture shows the losses of the first seed (left) and the images/s of a worker (right)."""
    figure, (left, right) = panels(("update", "training loss (nats)"), ("workers", "images/s a worker"))
    styles = {"1_worker": {"lw": 4, "alpha": 0.35}, "2_workers": {}, "4_workers": {}}
    for variant, size in SIZES.items():
        label = f"{size} worker{'s, batch divided' if size > 1 else ''}"
        left.plot(runs[variant][0]["losses"]["divided"], marker="", label=label, **styles[variant])
    left.plot(runs["4_workers"][0]["losses"]["kept"], marker="", label="4 workers, batch kept")
    sizes = np.array(list(SIZES.values()))
    for which, label in (
        ("kept", "batch kept"), ("divided", "batch divided"),
        ("kept_alone", "kept, no exchange"), ("divided_alone", "divided, no exchange"),
    ):  # fmt: skip
        found = [speeds(runs, variant, which) for variant in SIZES]
        right.errorbar(sizes, [of.mean() for of in found], [deviation(of) for of in found], label=label, capsize=3)
    right.set(xticks=sizes, ylim=(0, None))
    left.legend()
    right.legend()
    apart = max(max(distances(runs, variant, "divided")) for variant in SIZES)
    four = {which: mean_std(speeds(runs, "4_workers", which), digits=0) for which in ("divided", "kept")}
    return Picture(
        figure,
        "Left: the losses of one worker and of two and four with the batch divided, which are at most "
        f"{apart:.1e} nats apart, and of four workers with the batch kept. Right: images a second of each worker.",
        f"Trajectories with the batch divided are at most {apart:.1e} nats apart (root mean square). With four workers "
        f"each computes {four['divided']} images/s with the batch divided, {four['kept']} with the batch kept "
        f"(bars: standard deviation over {len(speeds(runs, '4_workers', 'kept'))} rounds).",
    )


CLAIM = Claim(
    id="C05",
    statement="Halving the per-worker batch restores the run of one GPU, at the price of fewer images a second.",
    source="S0, S1",
    lesson="13_lab_of_lesson_03",
    variants=tuple(SIZES),
    seeds=5,
    settings={"batch_size": 128, "updates": 90, "rounds": 5, "rate": 0.02},
    quick={"batch_size": 32, "updates": 6, "rounds": 2},
    run_all=measure,
    judge=judge,
    picture=picture,
    caution="In a few updates nothing has had time to go apart; speeds measured once change with what else runs.",
    timing_sensitive=True,
)
