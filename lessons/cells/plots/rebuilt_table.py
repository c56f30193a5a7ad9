"""Shows the published table of lesson 07 beside our runs of it, and lets a learner compare any two of these runs.

    arms(runs)                          # what each arm is, and how accurate it became
    what_changes(runs, "8-base", "8-bn")  # what changes from one arm to another, and by how much the accuracy changes

`runs` are those of the claim C32. The arms of this table are some of its variants.
"""

import html

import numpy as np
from IPython.display import HTML, display
from markupsafe import Markup

from benchmarks.claims.lesson_07.c32_techniques import CHOSEN, RATES, accuracies, draw_way
from benchmarks.experiment.claim import Runs
from benchmarks.experiment.intervals import Difference, deviation, difference, mean_std
from benchmarks.experiment.plots import styled
from lessons import findings
from lessons.cells.display.figures import panels, show
from lessons.cells.display.tables import code, table

PUBLISHED = (  # a row's name, its accuracy, the arm that does what its script does, and the arm that its name promises
    ("one GPU", "71 %", "1-base", "1-base"),
    ("naive", "44 %", "8-same-base", "8-base"),
    ("batch normalisation", "64 %", "8-same-warmup", "8-bn"),
    ("scaling", "53 %", "8-same-scaled", "8-scaled"),
    ("scaling and warmup", "65 %", "8-same-warmup", "8-warmup"),
    ("LAMB", "81 %", "", "8-lamb"),
)
MADE_OF = {  # for each script: batch normalisation, the rate, and the optimizer
    "base": ("no", "base", "Adam"),
    "bn": ("yes", "base", "Adam"),
    "scaled": ("yes", "8 times the base rate", "Adam"),
    "warmup": ("yes", "8 times the base rate, with warmup", "Adam"),
    "lamb": ("yes", "8 times a rate that nobody searched for, with warmup", "LAMB"),
}
OPTIMIZERS = {"sgd": "SGD", "clipped": "SGD, clipped", "lamb": "LAMB"}
ARMS = (
    "1-base", "1-bn", "8-same-base", "8-same-bn", "8-same-scaled", "8-same-warmup",
    "8-base", "8-bn", "8-scaled", "8-warmup", "8-lamb", *(CHOSEN[name] for name in OPTIMIZERS),
)  # fmt: skip
NAIVE = ["1-base", "8-same-base", "8-base"]
COLUMNS = ("workers", "images", "batch norm", "rate", "optimizer", "weight decay")
DECAYS = {"Adam": "0", "LAMB": "0.5", "SGD": "0.0005", "SGD, clipped": "0.0005"}  # by optimizer


def parts_of(arm: str) -> dict[str, str]:
    """Return what an arm is made of, by column. Raises ValueError if there is no such arm."""
    if arm not in ARMS:
        raise ValueError(f"this table has no arm {arm!r}; choose one of: {', '.join(ARMS)}")
    workers, *words = arm.split("-")
    images = "one batch" if workers == "1" else "the same on all" if words[0] == "same" else "different on each"
    if arm in CHOSEN.values():
        made = ("yes", f"{words[1]}, the best of four rates, with warmup and decay", OPTIMIZERS[words[0]])
    else:
        made = MADE_OF[words[-1]]
    return dict(zip(COLUMNS, (workers, images, *made, DECAYS[made[-1]]), strict=True))


def show_naive() -> Runs:
    """Show how one worker, the naive row and eight workers with shards end. Return all saved runs."""
    runs = findings.runs("C32")
    with styled():
        figure, told = draw_way(runs, NAIVE)
        show(
            figure,
            f"Bars one below the other. Each begins where the one above ends. Test accuracy in %, and change: {told}.",
            "Each bar begins where the one above ends: green is a gain, and brown with lines is a loss. A dot is a "
            "run. Below the name of a bar is the name of its arm.",
        )
    return runs


def arms(runs: Runs, tuned: bool = False) -> None:
    """Show a table of arms, which can be opened: their settings, their updates, and their test accuracy.

    These are the arms whose rate was searched for if `tuned` is true, and otherwise all others.
    """
    names = [arm for arm in ARMS if (arm in CHOSEN.values()) == tuned]
    rows = [(code(arm), *parts_of(arm).values(), f"{_updates(runs, arm):,}", _accuracy(runs, arm)) for arm in names]
    listed = table(rows, ("arm", *COLUMNS, "updates", "test accuracy, %"))
    display(HTML(f"<details><summary>The {len(names)} arms, and what each is made of</summary>{listed}</details>"))


def what_changes(runs: Runs, before: str, after: str) -> None:
    """Show what changes from one arm to another, how the test accuracy changes, and whether chance explains it.

    Raises ValueError if there is no such arm.
    """
    one, two = parts_of(before), parts_of(after)
    changed = [f"{column}: {one[column]} → {two[column]}" for column in COLUMNS if one[column] != two[column]]
    if (first := _updates(runs, before)) != (second := _updates(runs, after)):
        changed.append(f"updates: {first:,} → {second:,}")
    found = _change(runs, before, after)
    items = "".join(f"<li>{html.escape(change)}</li>" for change in changed)
    seen = "seen" if found.seen else "not seen"
    text = f"Test accuracy: {found.text(100, 1, ' points')}. The change is {seen}. {_belongs(len(changed))}"
    display(HTML(f"<p>From <code>{before}</code> to <code>{after}</code>:</p><ul>{items}</ul><p>{text}</p>"))


def lamb_beside_sgd(runs: Runs) -> None:
    """Show three comparisons of LAMB with SGD: with and without clipped gradients, and with LAMB's own rate."""
    sgd, clipped, lamb = (CHOSEN[name] for name in OPTIMIZERS)
    rows = [
        (code(one), _accuracy(runs, one), code(two), _accuracy(runs, two), _change(runs, one, two).text(100, 1))
        for one, two in ((sgd, lamb), (clipped, lamb), (clipped, "8-lamb"))
    ]
    display(HTML(table(rows, ("from", "test accuracy, %", "to", "test accuracy, %", "change, points"))))


def published_beside_rebuilt(runs: Runs) -> None:
    """Show each published row beside the arm of its script and the arm that its name promises."""
    rows = [
        (row, number, _with_name(runs, script) if script else "no arm", _with_name(runs, named))
        for row, number, script, named in PUBLISHED
    ]
    heads = ("row", "published: training accuracy", "what the script does: test, %", "what the name says: test, %")
    display(HTML(table(rows, heads)))


def show_updates(runs: Runs) -> None:
    """Draw the test accuracy of three arms against epochs, and beside it against updates."""
    figure, (left, right) = panels(("epoch", "test accuracy (%)"), ("update", "test accuracy (%)"))
    ends = []
    for arm in ("1-base", "8-same-base", "8-base"):
        curve = 100 * np.mean([run["test_accuracy"] for run in runs[arm]], axis=0)
        updates = runs[arm][0]["updates"]
        left.plot(range(1, len(updates) + 1), curve, label=arm)
        right.plot(updates, curve)
        ends.append(f"{arm} {curve[-1]:.1f} % after {updates[-1]:,} updates")
        if arm == "1-base":
            early = " and ".join(f"{curve[epoch]:.1f} % after {updates[epoch]}" for epoch in (0, 1))
    left.legend()
    right.set_xlim(0, 320)  # beyond this, only one worker goes on
    text = f"Mean test accuracy: {', '.join(ends)}."
    caption = f"{text} The right panel shows the first 320 updates. There, one worker has {early}."
    show(figure, f"Accuracy by epoch and by update. {text}", caption)


def show_rates(runs: Runs) -> None:
    """Draw the test accuracy of each tuned optimizer against its peak rate."""
    figure, (left, right) = panels(("peak rate, SGD", "test accuracy (%)"), ("peak rate, LAMB", "test accuracy (%)"))
    for ax, names in ((left, ("sgd", "clipped")), (right, ("lamb",))):
        for name in names:
            found = [100 * np.array(accuracies(runs, f"8-{name}-{rate}")) for rate in RATES[name]]
            bars = [deviation(values) if len(values) > 1 else np.nan for values in found]
            ax.errorbar(RATES[name], [values.mean() for values in found], bars, capsize=3, label=OPTIMIZERS[name])
            ax.plot(RATES[name], [values[0] for values in found], "x", color="black", zorder=3)
        rates = sorted({rate for name in names for rate in RATES[name]})
        ax.set_xscale("log")
        ax.set_xticks(rates, map(str, rates))
        ax.minorticks_off()
        ax.legend()
    right.sharey(left)
    left.autoscale(axis="y")  # to the points of both
    best = "; ".join(f"{OPTIMIZERS[name]} {_accuracy(runs, arm)} %" for name, arm in CHOSEN.items())
    show(
        figure,
        f"Accuracy against the peak rate, a line an optimizer. At the chosen rates: {best}.",
        f"At the chosen rates: {best}. Crosses: the runs by which we chose. Points with a bar: mean and deviation over "
        "all seeds.",
    )


def _change(runs: Runs, before: str, after: str) -> Difference:
    return difference(accuracies(runs, after), accuracies(runs, before))


def _belongs(changes: int) -> str:
    if not changes:
        return "Nothing changes: these are the same runs."
    if changes == 1:
        return "This difference belongs to one change."
    return f"{changes} things change. This difference belongs to all of them together."


def _updates(runs: Runs, arm: str) -> int:
    """The updates that an arm makes. Raises ValueError if it has no runs yet."""
    if not runs.get(arm):
        raise ValueError(f"the arm {arm} has not been measured yet: python -m benchmarks C32")
    return runs[arm][0]["updates"][-1]


def _accuracy(runs: Runs, arm: str) -> str:
    """Test accuracy in per cent, with its deviation over the seeds."""
    return mean_std(accuracies(runs, arm), 100, 1)


def _with_name(runs: Runs, arm: str) -> Markup:
    return Markup("{} ({})").format(_accuracy(runs, arm), code(arm))
