"""Puts a learner's guess beside what was measured, and shows at the end how good all guesses were.

A lesson asks before a result is shown: `my_guess = None  # write a number here`. After the result it calls
`compare("two_workers", my_guess)`. The last lesson calls `all_guesses()`. In lesson 00 the learner accuses one of the
suspects of its case and proposes an experiment, by `accuse`. Lesson 05 gives the verdict, by `verdict`. Guesses give no
points. They are kept in the file `guesses.json` of the notebook's folder.
"""

import html
import json
from numbers import Real
from pathlib import Path
from typing import NamedTuple

from IPython.display import HTML, display

from grader.common.atomic_write import write_whole
from lessons import numbers
from lessons.cells.display.tables import table

KEPT = Path("guesses.json")  # in the notebook's folder, which is the working folder of its kernel
CLOSE = 1.5  # A guess is called close if it is at most so many times too large or too small.


class Question(NamedTuple):
    """What was asked, the unit of the answer, and the name of the number (`lessons.numbers`) that answers it."""

    text: str
    unit: str
    number: str

    @property
    def truth(self) -> float:
        return float(numbers.number(self.number).replace(",", ""))


QUESTIONS = {
    "critical_batch": Question("How many images has the critical batch of a small network?", "images", "c28_critical"),
    "two_workers": Question("How many images do two workers manage while one manages 100?", "images", "cores_weak"),
    "four_workers": Question(
        "How many points do four workers end below one, after as many images?", "points", "c04_loss"
    ),
    "best_rate": Question("How many times does the best rate grow from 1 to 8 workers?", "times", "c20_early"),
    "adam": Question("Which accuracy is left to Adam at eight times the rate?", "%", "c31_adam_scaled"),
    "eight_workers": Question("How many points do eight workers lose in the naive row?", "points", "c32_naive"),
    "top_k": Question("How many times as fast is the largest 1 % at 100 Mbit/s?", "times", "links_top_k"),
    "clusters": Question("How far off is the model of clusters, in the median?", "%", "clusters_median"),
}


class Suspect(NamedTuple):
    """An experiment that would convict a suspect of lesson 00, and what lesson 05 has found out about it."""

    experiment: str
    verdict: str


SUSPECTS = {
    "the measurement": Suspect(
        "Let one process test both networks on all test images. If they are equally good, the measurement did it.",
        "It is cleared: one process tested all networks on the same test images, and every run of one worker ended "
        "above every run of four.",
    ),
    "the average": Suspect(
        "Let one process compute the gradient of all images of an update. If the mean of the workers differs from it, "
        "the average did it.",
        "It is cleared: with equal updates, four workers average as often, and end higher than one.",
    ),
    "the data": Suspect(
        "Write down the number of each image that a worker uses. If two workers have the same ones, the data did it.",
        "They are cleared: each worker had its own shard, and each image was used equally often.",
    ),
    "the start": Suspect(
        "Compare the weights of the workers before the first update. If they differ, the start did it.",
        "It is cleared: all workers began with equal weights.",
    ),
    "the batch": Suspect(
        "Give each of the four workers a quarter of its batch, so that an update uses as many images as with one "
        "worker. If both then end at the same accuracy, the batch did it.",
        "Guilty: the global batch was four times as large, so an epoch had a quarter of the updates.",
    ),
    "the rate": Suspect(
        "Search the best rate for one worker and for four. If both then end at the same accuracy, the rate did it.",
        "It is not cleared: nobody searched for the best rate of the larger batch. See below what it can do.",
    ),
    "the normalisation": Suspect(
        "Train without batch normalisation. If one worker and four then end at the same accuracy, it did it.",
        "It is cleared: with equal updates it is the same, and four workers end higher than one.",
    ),
}
ACCUSED, EXPERIMENT = "suspect", "experiment"  # the names under which they are kept


def accuse(suspect: str | None, experiment: str | None = None) -> None:
    """Keep whom the learner suspects, and by which experiment. Raises ValueError if it is nobody in SUSPECTS."""
    if suspect is None:
        display(HTML("<p>You accuse nobody yet. Write a suspect into the cell, and run it again.</p>"))
        return
    if suspect not in SUSPECTS:
        raise ValueError(f"my_suspect must be one of {', '.join(map(repr, SUSPECTS))}, not {suspect!r}")
    _keep(ACCUSED, suspect)
    _keep(EXPERIMENT, experiment or "")  # an experiment belongs to its suspect
    told = f"You suspect <strong>{suspect}</strong>."
    if experiment:
        told += f" Your experiment: {html.escape(experiment)}</p><p>Ours: {SUSPECTS[suspect].experiment}"
        told += " Do the two ask the same? Notebook 05 gives the verdict."
    else:
        told += " How could one find out? Write an experiment into the cell, and run it again."
    display(HTML(f"<p>{told}</p>"))


def verdict() -> None:
    """Say what was found out about the suspect of lesson 00, if the learner has named one there."""
    kept = _kept()
    suspect, experiment = kept.get(ACCUSED), kept.get(EXPERIMENT)
    if suspect in SUSPECTS:
        told = f"In notebook 00 you suspected <strong>{suspect}</strong>."
        if experiment:
            told += f" Your experiment was: {html.escape(str(experiment))}</p><p>The verdict:"
        display(HTML(f"<p>{told} {SUSPECTS[suspect].verdict}</p>"))


def compare(name: str, guess: float | None) -> None:
    """Show a guess beside the measured number, and keep it. Raises ValueError if it is not a number above 0."""
    question = QUESTIONS[name]
    if guess is not None and (not isinstance(guess, Real) or isinstance(guess, bool) or not guess > 0):
        raise ValueError(f"my_guess must be a number above 0, such as 10, not {guess!r}")
    told = f"It is {question.truth:g} {question.unit}."
    if guess is None:
        told += " There is no guess of yours yet. If you guess first, you remember the answer better."
    else:
        _keep(name, float(guess))
        told = f"Your guess: {guess:g} {question.unit}. {told} {_how_far(guess, question.truth)}"
    display(HTML(f"<p><strong>{html.escape(question.text)}</strong> {html.escape(told)}</p>"))


def all_guesses() -> None:
    """Show all guesses of this learner beside the measured numbers, and how many of them were close."""
    found = {name: guess for name, guess in _kept().items() if name in QUESTIONS}
    if not found:
        display(HTML("<p>There are no guesses of yours yet. Many lessons have a cell for one, with my_guess.</p>"))
        return
    rows = [_row(QUESTIONS[name], guess) for name, guess in found.items()]
    close = sum(_times(guess, QUESTIONS[name].truth) <= CLOSE for name, guess in found.items())
    told = f"{close} of your {len(found)} guesses were at most {CLOSE:g} times too large or too small."
    display(HTML(f"{table(rows, ('question', 'your guess', 'measured'))}<p>{told}</p>"))


def _kept() -> dict[str, float | str]:
    return json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.is_file() else {}


def _keep(name: str, value: float | str) -> None:
    write_whole(KEPT, json.dumps(_kept() | {name: value}, indent=1) + "\n")


def _row(question: Question, guess: float) -> tuple[str, str, str]:
    return question.text, f"{guess:g} {question.unit}", f"{question.truth:g} {question.unit}"


def _times(guess: float, truth: float) -> float:
    return max(guess / truth, truth / guess)


def _how_far(guess: float, truth: float) -> str:
    times = _times(guess, truth)
    if times < 1.05:
        return "That is it."
    return f"You were {times:.1f} times too {'high' if guess > truth else 'low'}."
