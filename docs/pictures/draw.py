"""Draws the course's layers, the grader's rooms, the way of a submission through a check, and what machines grade."""

from itertools import groupby
from statistics import median

from benchmarks.assignment import throughput
from docs.pictures.structure import REPOSITORY, contract, first_and_last, imports_layers, steps
from docs.pictures.svg import ARROW_PIXELS, DARK, LIGHT, Picture

OUTSIDE = {"solutions": "solutions", "install": "source_code/install/install.py"}  # no contract names this code
WORDS = {
    "solutions": "the lessons with their answers",
    "lessons": "opens, executes and shows the lessons",
    "benchmarks": "measures what the course claims",
    "grader": "runs a submission and judges it",
    "cluster": "makes several hosts on one machine",
    "cifar": "data, networks, training loop",
    "install": "sets up the machine, uses no layer",
}


def layers() -> str:
    """Draw the packages. Each package imports only from those below it."""
    above = [name for name, path in OUTSIDE.items() if imports_layers(REPOSITORY / path)]
    apart = [name for name in OUTSIDE if name not in above]
    order = [*above, *(name for row in contract() for name in row)]
    about = f"Each layer imports only from those after it: {', '.join(order)}. Apart from them: {', '.join(apart)}."
    picture = Picture("The layers of the course", about)
    for name in order:
        picture.labelled(name, WORDS[name])
        if name != order[-1]:
            picture.arrow()
    for name in apart:
        picture.y += ARROW_PIXELS
        picture.labelled(name, WORDS[name], LIGHT, dashed=True)
    return picture.text()


def rooms() -> str:
    """Draw the rooms of the grader. Folders are dark, and modules are light. Modules in a sequence share a row."""
    groups = groupby(contract("grader"), lambda row: (REPOSITORY / "grader" / f"{row[0]}.py").exists())
    rows = []
    for modules, group in groups:
        rows += [(True, [name for row in group for name in row])] if modules else [(False, row) for row in group]
    order = "; ".join(", ".join(row) for _, row in rows)
    picture = Picture("The rooms of the grader", f"Each row imports only from the rows after it: {order}.")
    for index, (modules, row) in enumerate(rows):
        if index:
            picture.arrow()
        picture.row(row, LIGHT if modules else DARK, chained=modules)
    return picture.text()


def check() -> str:
    """Draw the steps of a check, with a panel for each room, and the value that each step hands to the next."""
    (first, last), all_steps = first_and_last(), steps()
    sentences = [
        f"{step.function} in {step.room}/{step.module} returns {step.value or 'nothing'}" for step in all_steps
    ]
    picture = Picture("The way of a submission through a check", f"It begins with a {first}. {'. '.join(sentences)}.")
    picture.value(first, mono=False)
    picture.arrow()
    for room, group in groupby(all_steps, lambda step: step.room):
        in_room = list(group)
        with picture.panel(f"grader/{room}/"):
            for step in in_room:
                picture.labelled(step.function.replace("_", " "), step.module, mono=True)
                if step is not in_room[-1]:
                    picture.hand_on(step.value)
        picture.hand_on(in_room[-1].value)
    picture.value(last)
    return picture.text()


def machines() -> str:
    """Draw how many submissions an hour are graded by one, two and three machines, as `throughput` measured it."""
    speeds = {number: throughput.speeds(number) for number in throughput.MACHINES}
    middle = {number: median(found) for number, found in speeds.items()}
    words = {number: f"{middle[number]:.0f} ({min(found):.0f} to {max(found):.0f})" for number, found in speeds.items()}
    rounds = min(map(len, speeds.values()))
    told = "; ".join(f"{throughput.name(number)}: {words[number]}" for number in speeds)
    what = f"Submissions per hour, the median and the range of {rounds} round{'s' * (rounds > 1)}"
    picture = Picture("Submissions graded in an hour", f"{what}. {told}.")
    for number in speeds:
        picture.bar(throughput.name(number), words[number], middle[number] / max(middle.values()))
    return picture.text()


PICTURES = {"machines.svg": machines, "layers.svg": layers, "rooms.svg": rooms, "check.svg": check}
