"""C27: what happens if one of Horovod's key changes is left out?

One of the changes is removed from the text of `cifar_base.py`, and real workers run the rest. They are observed while
they run: the weights before and after each epoch, the images used (`Split.batch` raises an audit event), the device
chosen, and the files written.
"""

import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

import horovod.torch as hvd
import numpy as np
import torch

import cifar
from benchmarks.experiment.claim import Claim, Picture, Runs, Settings, Values, Verdict
from benchmarks.experiment.intervals import deviation
from benchmarks.experiment.plots import counted, panels
from benchmarks.instruments import horovod_ops
from benchmarks.instruments.horovod_launch import on_workers
from cifar import data, training, workers
from cifar.data import Split
from cifar.support.fingerprint import fingerprint

SCRIPT = Path(cifar.__file__).parent.parent / "cifar_base.py"
# For each variant, the texts of the script that are replaced, and what replaces them. Each text occurs in it once.
LEFT_OUT = {
    "all_changes": {},
    "no_broadcast": {"hvd.broadcast_parameters(net.state_dict(), root_rank=0)": "pass"},
    "no_optimizer": {"hvd.DistributedOptimizer(optimizer, named_parameters=net.named_parameters())": "optimizer"},
    "no_pinning": {"(args.device, hvd.local_rank(), hvd.local_size())": "(args.device)"},
    "no_sharding": {"shard(order, hvd.rank(), hvd.size())": "order"},
    "all_write": {"write=hvd.rank() == 0": "write=True", "if hvd.rank() == 0:": "if True:"},
}
NAMES = {
    "all_changes": "all changes", "no_broadcast": "no broadcast", "no_optimizer": "no DistributedOptimizer",
    "no_pinning": "no pinning", "no_sharding": "no sharding", "all_write": "all ranks write",
}  # fmt: skip
# The names of the measured numbers. Each number is 1 in a correct program.
SYMPTOMS = ("different weights", "uses of an image", "workers on a device", "writing workers")
EXPECTED = {
    "no_broadcast": SYMPTOMS[0], "no_optimizer": SYMPTOMS[0], "no_sharding": SYMPTOMS[1], "no_pinning": SYMPTOMS[2],
    "all_write": SYMPTOMS[3],
}  # fmt: skip


def program(variant: str) -> str:
    """The script without the variant's change. Raises ValueError if the change does not occur in it exactly once."""
    text = SCRIPT.read_text()
    for change, instead in LEFT_OUT[variant].items():
        if text.count(change) != 1:
            raise ValueError(f"{SCRIPT.name} has {text.count(change)} times: {change}")
        text = text.replace(change, instead)
    return text


@dataclass
class Observed:
    """What is observed on one worker during a run that writes to the folder `output`."""

    output: Path = Path("nowhere")
    indices: list[torch.Tensor] = field(default_factory=list)
    hashes: list[int] = field(default_factory=list)
    spread: list[float] = field(default_factory=list)
    written: set[str] = field(default_factory=set)
    device: int = 0
    threads: int = 0
    error: str = ""

    def hook(self, event: str, arguments: tuple) -> None:
        """An audit hook. It records the training images used, and the files written to `output`."""
        if event == "cifar.batch" and arguments[0] == "train":
            self.indices.append(arguments[1])
        elif event == "open" and str(arguments[1] or "")[:1] in ("w", "a"):
            self._wrote(arguments[0])
        elif event == "os.rename":
            self._wrote(arguments[1])

    def _wrote(self, path: object) -> None:
        if Path(str(path)).parent == self.output:
            self.written.add(Path(str(path)).name)

    def weights(self, net) -> None:
        """Record a hash of the weights, and how far the workers' weights are apart."""
        self.hashes.append(fingerprint(net.parameters()))
        self.spread.append(horovod_ops.spread(net))

    def train_epoch(self, net, *arguments, original: Callable = training.train_epoch):
        """Call `cifar.training.train_epoch`, and record the weights before and after it."""
        if not self.hashes:
            self.weights(net)
        loss = original(net, *arguments)
        self.weights(net)
        return loss

    def use_device(self, wanted: str, *place: int, original: Callable = workers.use_device) -> torch.device:
        """Call `cifar.workers.use_device`, and record the device that it would choose if each worker had a GPU."""
        with pretended_gpus(hvd.local_size()):
            self.device = original("cuda", *place).index
        chosen = original(wanted, *place)
        self.threads = torch.get_num_threads()
        return chosen


@contextmanager
def pretended_gpus(count: int) -> Iterator[None]:
    """Make PyTorch report `count` GPUs, and Horovod report support for them. No GPU is used."""
    cuda = torch.cuda
    said = {"device_count": lambda: count, "set_device": lambda device: None, "get_device_name": lambda: "pretended"}
    with mock.patch.multiple(cuda, **said), mock.patch.object(hvd, "cuda_built", lambda: True):
        yield


def observe(seed: int, images: int, epochs: int, batch_size: int, test_images: int, device: str, folder: str) -> dict:
    """Runs on a worker. Runs each of the programs, and returns what was observed on all workers."""
    # The images are loaded once for all programs. There are few test images, because accuracy does not count here.
    splits = horovod_ops.data("cpu", images, test_images)
    options = {"epochs": epochs, "batch-size": batch_size, "images": images, "seed": seed, "device": device}
    seen = Observed()
    sys.addaudithook(lambda event, arguments: seen.hook(event, arguments))
    found = {}
    for variant in LEFT_OUT:
        seen = Observed(Path(folder) / variant)
        arguments = [text for name, value in options.items() for text in (f"--{name}", str(value))]
        _run(program(variant), [SCRIPT.name, *arguments, "--output-dir", str(seen.output)], seen, splits)
        found[variant] = _summary(seen)
    return found


def _run(text: str, arguments: list[str], seen: Observed, splits: tuple[Split, Split]) -> None:
    """Run a program's text in this process, and observe it."""

    def load(folder, device, limit, test_limit):
        return tuple(Split(one.name, one.images.to(device), one.labels.to(device)) for one in splits)

    with (
        mock.patch.object(sys, "argv", arguments), mock.patch.object(data, "load", load),
        mock.patch.object(training, "train_epoch", seen.train_epoch),
        mock.patch.object(workers, "use_device", seen.use_device),
    ):  # fmt: skip
        try:
            exec(compile(text, SCRIPT.name, "exec"), {"__name__": "__main__"})
        except OSError as error:  # two workers may rename the same file, and the second no longer finds it
            seen.error = type(error).__name__
    horovod_ops.barrier()


def _summary(seen: Observed) -> Values:
    """What was observed on all workers. Lists in `hashes`, `devices`, `threads`, `files` and `errors` are by rank."""
    every = hvd.allgather_object(
        {
            "hashes": seen.hashes, "device": seen.device, "threads": seen.threads, "files": sorted(seen.written),
            "error": seen.error,
        }
    )  # fmt: skip
    indices = horovod_ops.gather(torch.cat(seen.indices), "indices").flatten()
    lines = len((seen.output / "metrics.jsonl").read_text().splitlines())
    return {
        "hashes": [one["hashes"] for one in every], "devices": [one["device"] for one in every],
        "threads": [one["threads"] for one in every],
        "files": [one["files"] for one in every], "errors": [one["error"] for one in every],
        "spread": seen.spread, "used": len(indices), "distinct": len(indices.unique()),
        "lines": lines, "pretended": torch.cuda.device_count() < hvd.size(),
    }  # fmt: skip


def measure(seed: int, settings: Settings) -> dict[str, Values]:
    """Measure all programs in one launch, one after the other."""
    options = {name: settings[name] for name in ("images", "epochs", "batch_size", "test_images", "device")}
    with tempfile.TemporaryDirectory(prefix="writers-") as folder:
        found = on_workers(
            f"{__name__}:observe",
            settings["workers"],
            seed=seed,
            folder=folder,
            **options,
        )[0]
    return {variant: {**found[variant], "epochs": settings["epochs"]} for variant in LEFT_OUT}


def symptoms(run: Values) -> dict[str, float]:
    """The number of each symptom. It is 1 in a correct program."""
    return {
        SYMPTOMS[0]: len({hashes[-1] for hashes in run["hashes"]}),
        SYMPTOMS[1]: run["used"] / run["distinct"] / run["epochs"],
        SYMPTOMS[2]: max(run["devices"].count(device) for device in run["devices"]),
        SYMPTOMS[3]: sum(bool(files) for files in run["files"]),
    }


def shown(runs: Runs, variant: str) -> set[str]:
    """The symptoms that every run of a variant shows."""
    return set.intersection(*({name for name, value in symptoms(run).items() if value > 1.01} for run in runs[variant]))


def judge(runs: Runs) -> Verdict:
    """The claim holds if the whole program has no symptom, and each program without a change has the expected one."""
    size = len(runs["all_changes"][0]["devices"])
    silent = [NAMES[variant] for variant, symptom in EXPECTED.items() if symptom not in shown(runs, variant)]
    healthy = not any(value > 1.01 for run in runs["all_changes"] for value in symptoms(run).values())
    apart = {
        variant: np.mean([run["spread"][-1] for run in runs[variant]]) for variant in ("no_broadcast", "no_optimizer")
    }
    number = {variant: symptoms(runs[variant][0])[symptom] for variant, symptom in EXPECTED.items()}
    text = (
        f"of {size} workers' weights {number['no_broadcast']:.0f} are different without broadcast (distance "
        f"{apart['no_broadcast']:.0%} of their mean's length) and {number['no_optimizer']:.0f} without "
        f"DistributedOptimizer ({apart['no_optimizer']:.0%}); without pinning {number['no_pinning']:.0f} workers "
        f"choose one device{' (of a pretended number)' if runs['no_pinning'][0]['pretended'] else ''}; without "
        f"sharding each image is used {number['no_sharding']:.0f} times an epoch; {number['all_write']:.0f} workers "
        "write if all may"
    )
    whole = "with all changes there is no symptom" if healthy else "but with all changes there are symptoms as well"
    if not silent and healthy:
        return Verdict("holds", f"{text}; {whole}.")
    if len(silent) == len(EXPECTED):
        return Verdict("fails", f"{text}; no change that was left out shows.")
    return Verdict("depends", f"{text}; {whole}; no symptom of {', '.join(silent) or 'none'}.")


def picture(runs: Runs) -> Picture:
    """The picture shows the symptoms of each program (left), and the distance of the workers' weights (right)."""
    figure, (left, right) = panels(
        ("symptom", "change left out"), ("epochs done", "distance of the weights (% of their mean)")
    )
    _matrix(left, runs)
    for variant in ("all_changes", "no_broadcast", "no_optimizer"):
        found = 100 * np.array([run["spread"] for run in runs[variant]])
        right.errorbar(range(found.shape[1]), found.mean(0), deviation(found), capsize=3, label=NAMES[variant])
    right.set(xticks=range(found.shape[1]))
    right.legend()
    numbers = {variant: symptoms(runs[variant][0])[symptom] for variant, symptom in EXPECTED.items()}
    said = ", ".join(f"{NAMES[variant]}: {value:g} ({EXPECTED[variant]})" for variant, value in numbers.items())
    pretended = " GPUs are pretended: this machine has too few." if runs["no_pinning"][0]["pretended"] else ""
    return Picture(
        figure,
        f"Left: a table of the programs and their symptoms, 1 where all is right; {said}. Right: the distance between "
        "the workers' weights over the epochs, zero with all changes.",
        f"{len(runs['all_changes'][0]['devices'])} workers, "
        f"{counted(len(runs['all_changes']), 'seed')}. {said}.{pretended}",
    )


def _matrix(ax, runs: Runs) -> None:
    table = np.array([[symptoms(runs[variant][0])[name] for name in SYMPTOMS] for variant in LEFT_OUT])
    ax.imshow(table > 1.01, cmap="Greys", vmin=0, vmax=1.6, aspect="auto")
    for (row, column), value in np.ndenumerate(table):
        ax.text(column, row, f"{value:.3g}", ha="center", va="center", color="white" if value > 1.01 else "black")
    ax.set_xticks(range(len(SYMPTOMS)), [name.replace(" ", "\n", 1) for name in SYMPTOMS], fontsize=7)
    ax.set_yticks(range(len(LEFT_OUT)), [NAMES[variant] for variant in LEFT_OUT])
    ax.grid(visible=False)


CLAIM = Claim(
    id="C27",
    statement="Each of Horovod's key changes matters.",
    source="S2",
    lesson="04_horovod",
    variants=tuple(LEFT_OUT),
    seeds=5,
    settings={"workers": 4, "images": 4096, "epochs": 3, "batch_size": 64, "test_images": 1000},
    quick={"workers": 2, "images": 256, "epochs": 2, "batch_size": 16, "test_images": 100},
    run_all=measure,
    judge=judge,
    picture=picture,
    caution="The symptoms do not need a long run; how far the weights go apart does.",
)
