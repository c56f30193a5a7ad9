"""C21: should each worker compute its gradient, or should a parameter server compute all gradients?

Real processes compute mean gradients of the lessons' ResNet in four ways, which `communication_patterns` defines. The
server does all back-propagation (`central`). Workers compute gradients, and a server averages them (`server`). Every
worker sends its gradient to all others (`replica`). Sums go round a ring (`ring`). Both the program and the kernel
count the bytes.
"""

import numpy as np

from benchmarks.experiment.claim import Claim, Picture, Runs, Settings, Values, Verdict
from benchmarks.experiment.intervals import deviation, mean_std, paired
from benchmarks.experiment.plots import panels
from benchmarks.instruments.gloo_processes import on_peers
from benchmarks.methods.communication_patterns import sizes

NAMES = {
    "central": "server computes gradients", "server": "server averages gradients",
    "replica": "all send to all", "ring": "ring",
}  # fmt: skip
MB = (2, 5, 10, 20, 50, 100, 200)  # the numbers shown on the axis of megabytes
BYTES = 4 * 482_442  # bytes of the network's float32 weights; a test checks this number
SLOWER = 1.2  # with one seed a smaller ratio of times does not count, because a busy machine causes as much


def measure(seed: int, settings: Settings) -> dict[str, Values]:
    """Measure all ways in one launch. The exchange is always on the CPU, whatever the setting `device` says."""
    options = {name: settings[name] for name in ("batch_size", "updates")}
    workers = on_peers("benchmarks.methods.communication_patterns:measure", settings["workers"], seed=seed, **options)
    return {way: _values([mine[way] for mine in workers], sizes(settings["workers"])) for way in NAMES}


def _values(workers: list[list], found: list[int]) -> Values:
    """One way's bytes per update of each rank and median seconds per update, for 2, 4, ... workers.

    `error` is the largest relative error of the mean gradient.
    """
    lines = [[mine[place] for mine in workers[:size]] for place, size in enumerate(found)]
    return {
        "sizes": found,
        **{name: [[line[name] for line in all] for all in lines] for name in ("sent", "received", "kernel_received")},
        "seconds": [float(np.median(all[0]["seconds"])) for all in lines],
        "error": max(line["error"] for all in lines for line in all),
    }


def busiest(run: Values) -> list[float]:
    """The bytes per update, in and out, of the worker with most bytes, for each number of workers."""
    pairs = zip(run["sent"], run["received"], strict=True)
    return [max(sent + received for sent, received in zip(*both, strict=True)) for both in pairs]


def expected(way: str, size: int) -> float:
    """The bytes in and out of the busiest of `size` workers according to theory. KeyError for `central`."""
    each_way = {"server": size - 1, "replica": size - 1, "ring": 2 * (size - 1) / size}
    return 2 * each_way[way] * BYTES


def off(runs: Runs) -> float:
    """The largest relative difference between the bytes counted and those of the theory."""
    found = []
    for way in ("server", "replica", "ring"):
        for run in runs[way]:
            pairs = zip(busiest(run), run["sizes"], strict=True)
            found += [abs(bytes / expected(way, size) - 1) for bytes, size in pairs]
    return max(found)


def kernel_off(runs: Runs) -> float | None:
    """The largest relative difference between the kernel's and the program's count.

    It is None if the kernel does not count bytes.
    """
    found = []
    for run in (run for variant in runs.values() for run in variant):
        for counted, program in zip(run["kernel_received"], run["received"], strict=True):
            pairs = zip(counted, program, strict=True)
            found += [None if kernel is None else abs(kernel / bytes - 1) for kernel, bytes in pairs]
    return None if None in found else max(found)


def slower(runs: Runs) -> bool:
    """Whether, with most workers, an update takes longer if the server computes gradients than if it averages them."""
    central, server = ([run["seconds"][-1] for run in runs[variant]] for variant in ("central", "server"))
    if min(len(central), len(server)) < 2:
        return central[0] > SLOWER * server[0]
    return paired(central, server).low > 0


def judge(runs: Runs) -> Verdict:
    """The claim holds if computing on the server costs both more bytes on the busiest link and more time."""
    size = runs["central"][0]["sizes"][-1]
    mb = {variant: np.mean([busiest(run)[-1] for run in runs[variant]]) / 1e6 for variant in runs}
    more = mb["central"] > mb["server"]
    seconds = {variant: mean_std([run["seconds"][-1] for run in runs[variant]], 1000, 0) for variant in runs}
    text = (
        f"with {size} workers the busiest link carries {mb['central']:.0f} MB an update where the server computes "
        f"gradients, {mb['server']:.1f} MB where it averages them, {mb['replica']:.1f} MB where all send to all, "
        f"and {mb['ring']:.1f} MB in a ring; an update takes {seconds['central']}, {seconds['server']}, "
        f"{seconds['replica']} and {seconds['ring']} ms. The last three ways' bytes are as 2(K-1)N, 2(K-1)N and "
        f"4N(K-1)/K say, to {100 * off(runs):.2g} %{_kernel(runs)}."
    )
    if more and slower(runs):
        return Verdict("holds", text)
    if not more and not slower(runs):
        return Verdict("fails", text)
    scarce = "bytes but no time" if more else "time but no bytes"
    return Verdict("depends", f"{text} Computing on the workers saves {scarce}: it depends on which is scarce.")


def _kernel(runs: Runs) -> str:
    difference = kernel_off(runs)
    return "" if difference is None else f", and the kernel counts the same to {100 * difference:.2g} %"


def picture(runs: Runs) -> Picture:
    """The picture shows the busiest worker's bytes, with theory, and the time per update, against the workers."""
    workers = "workers K"
    figure, (left, right) = panels((workers, "busiest worker, in and out (MB)"), (workers, "time an update (ms)"))
    for variant, found in runs.items():
        sizes, hollow = found[0]["sizes"], {"markerfacecolor": "none", "markersize": 8} if variant == "server" else {}
        (drawn,) = left.plot(sizes, np.mean([busiest(run) for run in found], 0) / 1e6, **hollow, label=NAMES[variant])
        drawn.set_linestyle("none")
        if variant != "central":
            theory = [expected(variant, size) / 1e6 for size in sizes]
            left.plot(sizes, theory, "-", marker="", color=drawn.get_color(), lw=1)
        seconds = 1000 * np.array([run["seconds"] for run in found])
        right.errorbar(
            sizes, seconds.mean(0), deviation(seconds), color=drawn.get_color(), capsize=3, label=NAMES[variant]
        )
    for ax in (left, right):
        ax.set(xscale="log", xticks=sizes, xticklabels=sizes)
        ax.minorticks_off()
    left.set(yscale="log", yticks=MB, yticklabels=MB)
    left.minorticks_off()
    right.set_ylim(bottom=0)
    left.legend(fontsize=8)
    mb = {variant: np.mean([busiest(run)[-1] for run in found]) / 1e6 for variant, found in runs.items()}
    return Picture(
        figure,
        f"Two plots on logarithmic axes. Left: bytes of the busiest worker grow with the number of workers, up to "
        f"{mb['central']:.0f} MB where the server computes gradients and {mb['server']:.1f} MB where it averages them; "
        f"the ring's level off at {mb['ring']:.1f} MB. Right: time an update for the same four ways.",
        f"With {sizes[-1]} workers and N = {BYTES / 1e6:.2f} MB of gradients: {mb['central']:.0f} MB against "
        f"{mb['server']:.1f}, {mb['replica']:.1f} and {mb['ring']:.1f} MB through the busiest link. Points: counted; "
        f"thin lines: 2(K-1)N (server; the same where all send to all) and 4N(K-1)/K (ring).",
    )


CLAIM = Claim(
    id="C21",
    statement="Gradients must be computed on each worker, not on the parameter server.",
    source="S3",
    lesson="13_lab_of_lesson_03",
    variants=tuple(NAMES),
    seeds=5,
    settings={"workers": 8, "batch_size": 64, "updates": 15},
    quick={"workers": 4, "batch_size": 32, "updates": 3},
    run_all=measure,
    judge=judge,
    picture=picture,
    caution="The bytes are always the same; the times of a few updates with few workers vary as much as they differ.",
    timing_sensitive=True,
)
