"""What the lessons say of saved results is what these results show. A new result that says otherwise fails here."""

import json
import re

import numpy as np
import pytest

from benchmarks import claims, hosts, speed
from benchmarks.claims.lesson_10 import c14_scaling_limit as c14
from benchmarks.experiment import results, runner
from benchmarks.speed.comparisons import one_core_each as cores
from grader.notebooks import build
from lessons import findings


def flowing(lesson: str) -> str:
    """Return the text of a lesson in one line, without the marks of comments."""
    source = (build.SOLUTIONS / f"{lesson}.py").read_text(encoding="utf-8")
    return re.sub(r"\s+", " ", re.sub(r"^# ?(> )?", "", source, flags=re.MULTILINE))


@pytest.mark.parametrize("sentence", findings.SENTENCES, ids=lambda sentence: sentence.words)
def test_a_sentence_stands_in_its_lesson_and_the_saved_results_agree(sentence: findings.Sentence):
    assert sentence.words in flowing(sentence.lesson), "the lesson does not say so any more: change SENTENCES too"
    assert sentence.true(), f"{sentence.lesson}: the saved results do not agree with: {sentence.words}"


def test_the_numbers_are_those_of_the_saved_results_and_each_is_used():
    assert json.loads(findings.NUMBERS_FILE.read_text(encoding="utf-8")) == findings.numbers()
    used = {name for path in build.lessons(build.SOLUTIONS) for name in build.NUMBER.findall(path.read_text())}
    assert used == set(findings.numbers())


def test_lesson_03_two_workers_with_a_core_each_win():
    runs = runner.saved(speed.get("cores"), results.RESULTS / "speed" / "cores").runs
    weak, strong = (np.median(cores.speed_ups(runs, 2, way)) for way in ("weak", "strong"))
    assert 1.7 < weak <= 2.1, "'Two workers are nearly twice as fast as one, if each keeps a batch of 64 images'"
    assert 1 < strong < weak, "'They gain less if they share one batch of 64'"


def test_lab_20_how_many_workers_are_worth_having():
    found = c14.limits(runner.saved(claims.get("C14")).runs)
    small, small_fast, large, large_fast, bandwidth, messages = (found[case] for case in c14.CASES)
    assert large >= 1024, "'ResNet-50 on a processor like this one can use thousands of workers'"
    assert small == 16, "'Our small network on the same processor can use only about 16'"
    assert small_fast < small and large_fast < large, "'A faster processor, the same links: fewer workers'"
    assert large > small, "'A network that computes more for each of its parameters: more workers'"
    assert messages > 10 * bandwidth, "'Faster messages: far more workers'"


def test_lesson_09_no_run_with_trouble_ends_outside_the_range_of_the_others():
    ends = {
        name: [run["epochs"][-1]["test_accuracy"] for run in hosts.read(name)] for name in (hosts.CALM, *hosts.TROUBLES)
    }
    calm = ends.pop(hosts.CALM)
    assert all(min(calm) <= accuracy <= max(calm) for runs in ends.values() for accuracy in runs)
