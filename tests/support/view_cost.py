"""Measures what the live view costs: pairs of runs of four workers, one with the view and one without.

    python -m tests.support.view_cost --pairs 20
    python -m tests.support.view_cost --show

The runs of a pair have the same seed, and every other pair begins with the view. It continues where it stopped.
"""

import argparse
import contextlib
import io
import json
import sys
import tempfile
import time
from statistics import fmean, median
from unittest import mock

from IPython.core.interactiveshell import InteractiveShell

import lessons
from benchmarks.experiment import results
from benchmarks.experiment.intervals import paired
from cifar.support.environment import cores
from lessons.view import watch

FOLDER = results.RESULTS / "view"
WORKERS, SIZE = 4, {"epochs": 4, "images": 10_240, "batch_size": 64, "device": "cpu"}
LIMIT = 0.01  # the aim: the view adds at most this share to the seconds of training


def seconds(shown: bool, seed: int) -> tuple[float, float]:
    """Make a run as `horovodrun` in a notebook does, with the view or without.

    Return its seconds of training, and the seconds for which this process, in which the view is, has computed.
    """
    began = time.process_time()
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.object(watch, "in_notebook", lambda: shown),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        lines = lessons.horovodrun("cifar_base.py", WORKERS, **SIZE, seed=seed, output=folder)
    return sum(line["seconds"] for line in lines), time.process_time() - began


def measure(pairs: int) -> None:
    """Run the pairs that have no result yet, and write each result at once."""
    InteractiveShell.instance()  # without a shell, as a notebook's kernel has one, nothing is displayed
    for pair in range(pairs):
        path = FOLDER / f"pair-{pair}.json"
        if not path.exists():
            order = (True, False) if pair % 2 else (False, True)
            took = {shown: seconds(shown, pair) for shown in order}
            (seen, computed), (unseen, others) = took[True], took[False]
            share = (computed - others) / (seen * cores())  # of what all cores could compute meanwhile
            found = {"pair": pair, "with": seen, "without": unseen, "share": share, "settings": SIZE}
            results.write(path, found)
            print(f"pair {pair}: {seen:.2f} s with the view, {unseen:.2f} s without", flush=True)


def show() -> bool:
    """Print what the view costs, and return whether it is at most the limit."""
    runs = [json.loads(path.read_text()) for path in sorted(FOLDER.glob("pair-*.json"))]
    if len(runs) < 2:
        print("there are not two pairs yet: --pairs 20 measures them")
        return False
    ratios = [run["with"] / run["without"] for run in runs]
    difference = paired(ratios, [1.0] * len(ratios))
    shares = [run["share"] for run in runs]
    bare = fmean(run["without"] for run in runs)
    print(
        f"{len(runs)} pairs of {bare:.1f} s: the view adds {median(ratios) - 1:+.2%} in the median, "
        f"{difference.mean:+.2%} in the mean ({difference.low:+.2%} to {difference.high:+.2%}). It computes for "
        f"{median(shares):.2%} of the cores' time, at most {max(shares):.2%}"
    )
    return median(ratios) - 1 <= LIMIT


def main() -> int:
    """Return the exit status. It is 0 if the view costs at most the limit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=20, help="(default: %(default)s)")
    parser.add_argument("--show", action="store_true", help="print what was measured, and measure nothing")
    args = parser.parse_args()
    if not args.show:
        measure(args.pairs)
    return 0 if show() else 1


if __name__ == "__main__":
    sys.exit(main())
