"""C08: what does a program hide if it prints only rank 0's loss?

Real Horovod workers train one network, and every worker's loss is kept at each update. The mean over a group of k
workers is the loss that k workers would print if they averaged it first. The scatter is measured from one update to the
next, so that the falling trend, which all workers share, does not count.
"""

import horovod.torch as hvd
import numpy as np
import torch

from benchmarks.experiment.claim import Claim, Picture, Runs, Settings, Values, Verdict
from benchmarks.experiment.intervals import deviation, mean_std
from benchmarks.experiment.plots import BLUE, GREY, counted, panels
from benchmarks.instruments import horovod_ops
from benchmarks.instruments.horovod_launch import on_workers
from cifar.data import augment, shard, shuffle
from cifar.model import BootcampResNet
from cifar.workers import wait_for_gradients

NEAR = 0.25  # ratios within 25 % count as equal: chance changes it by 10 %, and √K is at least 1.41


def losses(seed: int, batch_size: int, updates: int, device: str) -> dict[str, list]:
    """Runs on a worker. Returns each worker's loss at each update, `(updates, size)`, and the mean, `(updates,)`.

    The mean is computed by all-reduce.
    """
    split, _ = horovod_ops.data(device, images=updates * batch_size * hvd.size(), test_images=1)
    torch.manual_seed(seed + hvd.rank())
    net = BootcampResNet().to(split.images.device)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.001)
    optimizer = hvd.DistributedOptimizer(optimizer, net.named_parameters())
    hvd.broadcast_parameters(net.state_dict(), root_rank=0)
    mine = []
    for part in shard(shuffle(len(split), seed, 0), hvd.rank(), hvd.size()).split(batch_size)[:updates]:
        images, labels = split.batch(part)
        optimizer.zero_grad()
        loss = horovod_ops.loss_of(net, augment(images), labels)
        loss.backward()
        wait_for_gradients(optimizer)
        optimizer.step()
        mine.append(loss.detach())
    mine = torch.stack(mine).cpu()
    return {"workers": horovod_ops.gather(mine, "each").T.tolist(), "mean": horovod_ops.mean(mine, "mean").tolist()}


def run(variant: str, seed: int, settings: Settings) -> Values:
    """Measure the losses. The values are those that rank 0 returns."""
    options = {name: settings[name] for name in ("batch_size", "updates", "device")}
    return on_workers(f"{__name__}:losses", settings["workers"], seed=seed, **options)[0]


def scatter(losses: np.ndarray) -> float:
    """The standard deviation about a slowly changing mean: that of successive differences, divided by √2."""
    return float(np.std(np.diff(losses)) / np.sqrt(2))


def scatters(run: Values) -> dict[int, float]:
    """The scatter of the loss that k workers would print, by k. It is the root mean square over the groups of k."""
    each = np.array(run["workers"])
    found = {}
    for size in (2**power for power in range(each.shape[1].bit_length())):
        printed = each.reshape(len(each), -1, size).mean(2)  # (updates, groups)
        found[size] = float(np.sqrt(np.mean([scatter(losses) ** 2 for losses in printed.T])))
    return found


def ratios(runs: Runs) -> list[float]:
    """For each run: the scatter of one worker's loss divided by that of the mean over all workers."""
    return [found[1] / found[max(found)] for found in map(scatters, runs["training"])]


def judge(runs: Runs) -> Verdict:
    """The claim holds if one worker's loss scatters about √K times as much as the mean over all K workers."""
    size, found = len(runs["training"][0]["workers"][0]), ratios(runs)
    off = max(np.abs(np.mean(run["workers"], 1) - run["mean"]).max() for run in runs["training"])
    relative = np.mean(found) / np.sqrt(size)
    text = (
        f"one worker's loss scatters {mean_std(found)} times as much as the mean over {size} workers (√{size} = "
        f"{np.sqrt(size):.2f}); the all-reduced loss is that mean up to {off:.0e}"
    )
    if abs(np.log(relative)) < np.log1p(NEAR):
        return Verdict("holds", f"{text}.")
    return Verdict("fails" if np.mean(found) < 1 + NEAR else "depends", f"{text}.")


def picture(runs: Runs) -> Picture:
    """The picture shows the printed loss with and without averaging (left), and its scatter by workers (right)."""
    labels = ("workers averaged over", "scatter of the printed loss (nats)")
    figure, (left, right) = panels(("update", "printed loss (nats)"), labels)
    first = np.array(runs["training"][0]["workers"])
    size = first.shape[1]
    left.plot(first[:, 0], marker="", color=GREY, ls="-", lw=1, label="rank 0's")
    left.plot(first.mean(1), marker="", color=BLUE, ls="-", label=f"mean over {size} workers")
    by_run = np.array([list(scatters(run).values()) for run in runs["training"]])
    sizes = np.array(list(scatters(runs["training"][0])))
    right.errorbar(sizes, by_run.mean(0), deviation(by_run), label="measured", ls="", capsize=3)
    right.plot(sizes, by_run[:, 0].mean() / np.sqrt(sizes), marker="", ls="--", label="one worker's / √k")
    right.set(xscale="log", yscale="log", xticks=sizes, xticklabels=[str(size) for size in sizes])
    right.set_yticks(by_run.mean(0), [f"{value:.3f}" for value in by_run.mean(0)])
    right.minorticks_off()
    left.legend()
    right.legend()
    ratio = mean_std(ratios(runs))
    return Picture(
        figure,
        f"Left: rank 0's loss jumps about the much smoother mean over {size} workers. Right: the scatter falls along a "
        "straight line on logarithmic axes, beside 1/√k.",
        f"The same {len(first)} updates of {size} workers, printed in two ways: one worker's loss scatters {ratio} "
        f"times as much as the mean (√{size} = {np.sqrt(size):.2f}; {counted(len(runs['training']), 'seed')}).",
    )


CLAIM = Claim(
    id="C08",
    statement="The printed loss is one worker's: it scatters √K times as much as the loss of all K workers.",
    source="S0",
    lesson="13_lab_of_lesson_03",
    variants=("training",),
    seeds=5,
    settings={"workers": 8, "batch_size": 16, "updates": 300},
    quick={"workers": 4, "updates": 40},
    run=run,
    judge=judge,
    picture=picture,
    caution="Over a few updates chance moves a ratio of deviations; and where the shared weights jump, the losses of "
    "all workers jump together, which averaging does not remove.",
)
