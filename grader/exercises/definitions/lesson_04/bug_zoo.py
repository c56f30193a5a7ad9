"""This exercise asks for the name of a distributed run's bug. The run's measurements are given."""

from collections.abc import Callable

import numpy as np

from grader.exercises import Compared, Mistake, TestCase

Symptoms = dict[str, object]


def diagnose(symptoms: Symptoms) -> str:
    """Return the bug's name."""
    if len(set(symptoms["start_hashes"])) > 1:
        return "no broadcast"
    if symptoms["distinct_images"] < symptoms["used_images"]:
        return "identical shards"
    if symptoms["top_rate"] > 1.01 * symptoms["base_rate"] * symptoms["workers"]:
        return "double rate scaling"
    return "rank 0's metrics" if symptoms["tested_images"] < symptoms["test_images"] else "padded evaluation"


def _leftovers(symptoms: Symptoms) -> str:
    incomplete = symptoms["distinct_images"] < symptoms["train_images"]
    found = diagnose(symptoms)
    return "identical shards" if incomplete and found != "no broadcast" else found


def _incomplete(symptoms: Symptoms) -> str:
    found = diagnose(symptoms)
    if found == "no broadcast":
        return found
    if symptoms["distinct_images"] < 0.9 * symptoms["train_images"]:
        return "identical shards"
    return diagnose({**symptoms, "used_images": symptoms["distinct_images"]})


def _scaled(symptoms: Symptoms) -> str:
    found = diagnose(symptoms)
    earlier = found in ("no broadcast", "identical shards")
    return "double rate scaling" if symptoms["top_rate"] > symptoms["base_rate"] and not earlier else found


def _any_difference(symptoms: Symptoms) -> str:
    differs = symptoms["reported_accuracy"] != symptoms["measured_accuracy"]
    return "rank 0's metrics" if differs else diagnose(symptoms)


def _any_count(symptoms: Symptoms) -> str:
    return "padded evaluation" if symptoms["tested_images"] != symptoms["test_images"] else diagnose(symptoms)


def _exchanged(symptoms: Symptoms) -> str:
    names = {"no broadcast": "identical shards", "identical shards": "no broadcast"}
    return names.get(diagnose(symptoms), diagnose(symptoms))


MISTAKES = (
    Mistake(
        "leftovers", _leftovers,
        "A few images left out at the end of an epoch are no bug: compare distinct_images with used_images.",
    ),
    Mistake(
        "incomplete", _incomplete,
        "Workers with equal images may each use all of them: compare distinct_images with used_images.",
    ),
    Mistake("scaled", _scaled, "base_rate * workers is the right scaled rate: only more than that is scaled twice."),
    Mistake(
        "any difference", _any_difference,
        "Padding shifts the accuracy a little, too: what tells the two apart is how many images were tested.",
    ),
    Mistake(
        "any count", _any_count,
        "Padding tests more images than there are; fewer are one worker's part of them.",
    ),
    Mistake(
        "exchanged", _exchanged,
        "Different weights at the start are a missing broadcast; images used more than once are identical shards.",
    ),
)  # fmt: skip


def _healthy(draw: np.random.Generator) -> Symptoms:
    """Return what a run without a bug shows. The run leaves out its last, smaller batches."""
    workers, batch = int(draw.choice([3, 6, 7])), int(draw.choice([64, 96, 128]))
    used = 50_000 // workers // batch * batch * workers
    base = float(draw.choice([0.0625, 0.125, 0.25, 0.5]))
    accuracy = int(draw.integers(7000, 9200)) / 10_000
    return {
        "workers": workers, "train_images": 50_000, "used_images": used, "distinct_images": used,
        "start_hashes": [f"{draw.integers(2**32):08x}"] * workers,
        "base_rate": base, "first_rate": base, "top_rate": round(base * workers, 4),
        "test_images": 10_000, "tested_images": 10_000, "reported_accuracy": accuracy, "measured_accuracy": accuracy,
    }  # fmt: skip


def _one_shard(draw: np.random.Generator, run: Symptoms) -> Symptoms:
    """The images are divided, but all workers use the same part."""
    return {"distinct_images": run["used_images"] // run["workers"]}


def _all_images(draw: np.random.Generator, run: Symptoms) -> Symptoms:
    """The images are not divided. Each worker uses all images that the workers should use together."""
    return {"used_images": run["used_images"] * run["workers"]}


def _no_broadcast(draw: np.random.Generator, run: Symptoms) -> Symptoms:
    return {"start_hashes": [f"{value:08x}" for value in draw.choice(2**32, run["workers"], replace=False)]}


def _double(draw: np.random.Generator, run: Symptoms) -> Symptoms:
    """The rate is scaled twice. The run begins at the base rate, or at the rate that is scaled once."""
    top = round(run["top_rate"] * run["workers"], 4)
    return {"first_rate": draw.choice([run["base_rate"], run["top_rate"]]).item(), "top_rate": top}


def _rank_0(draw: np.random.Generator, run: Symptoms) -> Symptoms:
    tested = -(-run["test_images"] // run["workers"])
    off = int(draw.choice([-1, 1]) * draw.integers(30, 150)) / 10_000
    return {"tested_images": tested, "reported_accuracy": round(run["measured_accuracy"] + off, 4)}


def _padded(draw: np.random.Generator, run: Symptoms) -> Symptoms:
    tested = -(-run["test_images"] // run["workers"]) * run["workers"]
    off = int(draw.choice([-1, 1])) / 10_000
    return {"tested_images": tested, "reported_accuracy": round(run["measured_accuracy"] + off, 4)}


Bug = Callable[[np.random.Generator, Symptoms], Symptoms]
# Each bug has two test cases.
BUGS: dict[str, tuple[Bug, Bug]] = {
    "identical shards": (_one_shard, _all_images),
    "no broadcast": (_no_broadcast, _no_broadcast),
    "double rate scaling": (_double, _double),
    "rank 0's metrics": (_rank_0, _rank_0),
    "padded evaluation": (_padded, _padded),
}


def _draw(draw: np.random.Generator) -> list[TestCase]:
    cases = []
    for name, bugs in BUGS.items():
        for bug, run in [(bug, _healthy(draw)) for bug in bugs]:
            cases.append(TestCase(name, [{"symptoms": {**run, **bug(draw, run)}}]))
    return cases


EXAMPLE = {
    "workers": 4, "train_images": 400, "used_images": 400, "distinct_images": 100,
    "start_hashes": ["5f", "5f", "5f", "5f"], "base_rate": 0.1, "first_rate": 0.1, "top_rate": 0.4,
    "test_images": 50, "tested_images": 50, "reported_accuracy": 0.8, "measured_accuracy": 0.8,
}  # fmt: skip
EXERCISE = Compared(
    id="bug_zoo",
    title="Bug zoo: name the bug from its symptoms",
    signature="diagnose(symptoms: dict) -> str",
    statement="""\
A run on several workers has exactly one of five bugs. Return its name, one of: "identical shards", "no broadcast",
"double rate scaling", "rank 0's metrics", "padded evaluation".

symptoms holds what was measured:
- workers: the number of workers
- train_images: the number of images in the training set
- used_images: how many images all workers together used in an epoch. An image that two workers use counts twice. An
  epoch may leave out up to 3 % of the images, because the last, smaller batches are left out.
- distinct_images: how many different images these were
- start_hashes: a list of texts, a hash of each worker's weights before the first update
- base_rate: the learning rate that suits one worker. Notebook 05 explains why several workers may use a higher one.
  Here you need one rule: a right program goes up to base_rate * workers, and one that scales twice goes higher.
- first_rate, top_rate: the rate at the first update, and the highest rate of the run
- test_images: the number of images in the test set
- tested_images: the number of images on which the reported accuracy was measured. If the workers do not divide the test
  set evenly, some programs fill up the last shard with images that were tested already.
- reported_accuracy: the test accuracy (0 to 1) that the program wrote down
- measured_accuracy: the test accuracy that its network really has

Goyal et al. 2017 (arXiv:1706.02677), section 3, lists such pitfalls.""",
    example=(EXAMPLE,),
    groups=dict.fromkeys(BUGS, 1),
    draw=_draw,
    reference=diagnose,
    mistakes=MISTAKES,
)
