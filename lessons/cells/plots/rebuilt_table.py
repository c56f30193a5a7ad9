"""Shows the published table of lesson 07 beside our runs of it, and lets a learner compare any two of these runs.

    arms(runs)                          # what each arm is, and how accurate it became
    what_changes(runs, "8-base", "8-bn")  # what changes from one arm to another, and by how much the accuracy changes
    answer(runs, 1, "8-base", "8-bn")   # the same, and whether it answers a question of the lesson

`runs` are those of the claim C32. The arms of this table are some of its variants.
"""

import html
import itertools
from types import EllipsisType

import numpy as np
from IPython.display import HTML, display
from matplotlib.axes import Axes

from benchmarks.claims.lesson_07.c32_techniques import CHOSEN, RATES, accuracies
from benchmarks.experiment.claim import Runs
from benchmarks.experiment.intervals import Difference, deviation, difference, mean_std
from benchmarks.experiment.plots import BLUE, GREY
from lessons import saved_runs
from lessons.cells.display.figures import axes, panels, show
from lessons.cells.display.tables import code, table

PUBLISHED = (  # a row's name, its accuracy (%), and the arm that does what its script does
    ("one GPU", 71, "1-base"),
    ("naive", 44, "8-same-base"),
    ("scaling", 53, "8-same-scaled"),
    ("batch normalisation", 64, "8-same-warmup"),
    ("scaling and warmup", 65, "8-same-warmup"),
)
MADE_OF = {  # for each script: batch normalisation, the rate, and the optimizer
    "base": ("no", "base", "Adam"),
    "bn": ("yes", "base", "Adam"),
    "scaled": ("yes", "8 × base", "Adam"),
    "warmup": ("yes", "8 × base, warmup", "Adam"),
    "lamb": ("yes", "8 × a guess, warmup", "LAMB"),
}
OPTIMIZERS = {"sgd": "SGD", "clipped": "SGD, clipped", "lamb": "LAMB"}
ARMS = (
    "1-base", "1-bn", "8-same-base", "8-same-bn", "8-same-scaled", "8-same-warmup",
    "8-base", "8-bn", "8-scaled", "8-warmup", "8-lamb", *(CHOSEN[name] for name in OPTIMIZERS),
)  # fmt: skip
NAIVE = {"1-base": "one worker", "8-same-base": "eight, the naive row", "8-base": "eight, with shards"}
COLUMNS = ("workers", "images", "batch norm", "rate", "optimizer", "weight decay")
QUESTIONS = {  # by number: the column that has to change, its value before, and its value after
    1: ("batch norm", "no", "yes"),
    2: ("images", "the same", "own shards"),
    3: ("rate", "base", "8 × base"),
    4: ("rate", "8 × base", "8 × base, warmup"),
    5: None,  # no two arms differ in the optimizer alone
}
DECAYS = {"Adam": "0", "LAMB": "0.5", "SGD": "0.0005", "SGD, clipped": "0.0005"}  # by optimizer


def parts_of(arm: str) -> dict[str, str]:
    """Return what an arm is made of, by column. Raises ValueError if there is no such arm."""
    if arm not in ARMS:
        raise ValueError(f"this table has no arm {arm!r}; choose one of: {', '.join(ARMS)}")
    workers, *words = arm.split("-")
    images = "all" if workers == "1" else "the same" if words[0] == "same" else "own shards"
    if arm in CHOSEN.values():
        made = ("yes", f"{words[1]}, the best of four rates, with warmup and decay", OPTIMIZERS[words[0]])
    else:
        made = MADE_OF[words[-1]]
    return dict(zip(COLUMNS, (workers, images, *made, DECAYS[made[-1]]), strict=True))


def show_naive() -> Runs:
    """Show how one worker, the naive row and eight workers with shards end. Return all saved runs."""
    runs = saved_runs.runs("C32")
    _show_dots(runs, NAIVE)
    return runs


def arms(runs: Runs, tuned: bool = False) -> None:
    """Show a table of arms, which can be folded: their settings and their test accuracy.

    These are the arms whose rate was searched for if `tuned` is true, and otherwise all others.
    """
    names = [arm for arm in ARMS if (arm in CHOSEN.values()) == tuned]
    rows = [(code(arm), *map(_unbroken, parts_of(arm).values()), _accuracy(runs, arm)) for arm in names]
    listed = table(rows, ("arm", *COLUMNS, "test accuracy, %"))
    heading = f"The {len(names)} arms, and what each is made of"
    display(HTML(f"<details{' open' * (not tuned)}><summary>{heading}</summary>{listed}</details>"))


def what_changes(runs: Runs, before: str, after: str) -> None:
    """Show what changes from one arm to another, how the test accuracy changes, and whether chance explains it.

    Raises ValueError if there is no such arm.
    """
    changed = _changes(runs, before, after)
    found = _change(runs, before, after)
    items = "".join(f"<li>{html.escape(change)}</li>" for change in changed)
    seen = "seen" if found.seen else "not seen"
    text = f"Test accuracy: {found.text(100, 1, ' points')}. The change is {seen}. {_belongs(len(changed))}"
    display(HTML(f"<p>From <code>{before}</code> to <code>{after}</code>:</p><ul>{items}</ul><p>{text}</p>"))


def answer(runs: Runs, question: int, before: str | EllipsisType | None, after: str | None = None) -> None:
    """Say whether the change from one arm to another answers a question of the lesson, and if not, why.

    `before` is None if no two arms answer it, and `...` if the learner has not answered yet. Raises ValueError if there
    is no such question or arm.
    """
    if question not in QUESTIONS:
        raise ValueError(f"there is no question {question}; the questions are 1 to {len(QUESTIONS)}")
    if before is ...:
        print(f"{question}. Not answered yet.")
        return
    if before is None:
        right = "Right: no two arms differ in this alone."
        print(f"{question}. {'There is such a pair. Look again.' if QUESTIONS[question] else right}")
        return
    what_changes(runs, before, after or before)
    print(f"{question}. {_judged(question, _changes(runs, before, after or before))}")


def _judged(question: int, changed: list[str]) -> str:
    """What is to be said of a pair of arms that a learner gives as the answer to a question: see `_changes`."""
    wanted = QUESTIONS[question]
    if wanted is None:
        return "Only a pair that differs in the optimizer alone would tell. Count what changes here."
    if len(changed) != 1:
        return "This pair does not tell. Only one thing may change."
    column, old, new = wanted
    if changed == [f"{column}: {old} → {new}"]:
        return "Right: this pair tells."
    if changed == [f"{column}: {new} → {old}"]:
        return "Right, but the other way round."
    return "One thing changes, but it is not what the question asks for."


def lamb_beside_sgd(runs: Runs) -> None:
    """Draw each run of four arms: SGD with and without clipped gradients, LAMB, and LAMB at a guessed rate."""
    sgd, clipped, lamb = (CHOSEN[name] for name in OPTIMIZERS)
    rows = {sgd: "plain SGD", clipped: "clipped SGD", lamb: "LAMB", "8-lamb": "LAMB, not tuned"}
    _show_dots(runs, rows)


def _show_dots(runs: Runs, rows: dict[str, str]) -> None:
    """Show each run of some arms as a dot, with a line at the mean. `rows` has the name of each arm."""
    figure, ax = axes("test accuracy after 12 epochs (%)", "", size=(8.5, 1.2 + 0.45 * len(rows)))
    for at, arm in enumerate(rows):
        values = 100 * np.array(accuracies(runs, arm))
        ax.plot(values, np.full(len(values), at), "o", color=BLUE, alpha=0.6, linestyle="none")
        ax.plot([values.mean()] * 2, [at - 0.3, at + 0.3], color="black", marker="", linestyle="-")
        ax.annotate(f"{values.mean():.1f}", (values.mean(), at - 0.32), ha="center", va="bottom", fontsize=9)
    ax.set_yticks(range(len(rows)), [f"{name}\n{arm}" for arm, name in rows.items()], fontsize=9)
    ax.set_ylim(len(rows) - 0.4, -0.8)
    told = "; ".join(f"{name} ({arm}) {_accuracy(runs, arm)}" for arm, name in rows.items())
    show(
        figure,
        f"Dots, one for each of five runs, and a line at their mean, in %: {told}.",
        "Each dot is a run, and each line is the mean of five. Below a name is the name of its arm.",
    )


def show_steps(runs: Runs) -> None:
    """Draw by how much each row differs from the naive one: as published, and in our runs of the same scripts."""
    figure, ax = axes("points more than the naive row", "", size=(8.5, 3.0))
    (_, naive, naive_arm), *rows = PUBLISHED[1:]
    ticks, told, at = [], [], 0.0
    for arm, group in itertools.groupby(rows, lambda row: row[2]):
        for row, number, _ in group:
            _step(ax, at, number - naive, f"{number - naive:+}", color=GREY, hatch="//")
            ticks.append((at, row))
            told.append(f"{row}: published {number - naive:+}")
            at += 0.8
        change = _change(runs, naive_arm, arm)
        _step(ax, at, 100 * change.mean, f"{100 * change.mean:+.1f}", 50 * (change.high - change.low), color=BLUE)
        ticks.append((at, arm))
        told.append(f"{arm}: ours {change.text(100, 1)}")
        at += 1.2
    ax.axvline(0, color="black", linewidth=1)
    ax.set_yticks(*zip(*ticks, strict=True))
    ax.set_xlim(-6, 30)
    ax.invert_yaxis()
    ax.grid(axis="y", visible=False)
    show(
        figure,
        f"Bars of points more than the naive row. {'; '.join(told)}.",
        "Grey bars with lines are published steps, on training images. Blue bars are our runs of the same script, on "
        "test images. A black line is the 95 % interval of the difference.",
    )


def _step(ax: Axes, at: float, points: float, told: str, half: float = 0, **look: str) -> None:
    """Draw a bar, with half of its interval to each side and with its number behind it."""
    ax.barh(at, points, 0.7, **look)
    if half:
        ax.errorbar(points, at, xerr=half, color="black", capsize=3, marker="")
    ax.text(max(points + half, 0) + 0.4, at, told, va="center", fontsize=9)


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


def _changes(runs: Runs, before: str, after: str) -> list[str]:
    """What changes from one arm to another, as `column: before → after`."""
    one, two = parts_of(before), parts_of(after)
    changed = [f"{column}: {one[column]} → {two[column]}" for column in COLUMNS if one[column] != two[column]]
    if (first := _updates(runs, before)) != (second := _updates(runs, after)):
        changed.append(f"updates: {first:,} → {second:,}")
    return changed


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
    return _unbroken(mean_std(accuracies(runs, arm), 100, 1))


def _unbroken(text: str) -> str:
    """Return a text that stays on one line of a table, unless it is long."""
    return text.replace(" ", "\N{NO-BREAK SPACE}") if len(text) < 20 else text
