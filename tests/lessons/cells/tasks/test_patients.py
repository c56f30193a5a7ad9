"""A learner's diagnosis of a sick run is answered cause by cause, and the runs are those of the lesson's table."""

import re

import pytest

from grader.notebooks import build
from lessons.cells.tasks.patients import CAUSES, FOUND, treat

LESSON = (build.SOLUTIONS / "05_why_it_converges_worse.py").read_text(encoding="utf-8")
NAME, IMAGES = r"^# \| (a healthy program|patient ([A-F]))", r"(.+) and (.+) \| (\d+)"
ROW = re.compile(rf"{NAME} \| {IMAGES} \| (\S+), (\S+), (\S+) \| (\d) seed", re.M)


def test_the_causes_of_each_patient_follow_from_its_row_in_the_lesson():
    rows = ROW.findall(LESSON)
    assert [row[1] for row in rows] == ["", *FOUND]
    healthy = rows[0]
    best = re.search(r"The best rate is (\S+) for both", LESSON.replace("\n# ", " "))[1]
    for _, patient, zero, one, each, first, fourth, last, seeds in rows[1:]:
        causes = set()
        if zero == one:
            causes.add("images")
        if int(each) > int(healthy[4]):
            causes.add("updates")
        if first != best:
            causes.add("rate")
        if float(fourth) != pytest.approx(float(first) / 10) or last != fourth:
            causes.add("schedule")
        if not causes and int(seeds) < int(healthy[8]):
            causes.add("luck")
        assert causes == set(FOUND[patient])


def test_the_lesson_names_all_causes():
    assert all(f'`"{cause}"`' in LESSON for cause in CAUSES)


def test_each_right_cause_is_explained_and_a_missing_one_is_counted(said: list[str]):
    treat("F", "rate")
    assert "yes. It begins at 0.1" in said[0] and "1 more cause is missing." in said[0]
    treat("F", ["schedule", "rate"])
    assert said[1].count("yes.") == 2 and "missing" not in said[1]
    treat("A", ["luck"])
    assert "no. Look at its row again." in said[2] and "1 more cause is missing." in said[2]


def test_without_a_cause_it_says_what_to_write(said: list[str]):
    treat("B")
    assert "as in treat(&quot;B&quot;, [&quot;luck&quot;])" in said[0]


@pytest.mark.parametrize("arguments", [("G", ["luck"]), ("A", ["weights"])])
def test_what_does_not_exist_is_refused_in_one_line(said: list[str], arguments):
    with pytest.raises(ValueError, match=r"there is no .* choose one of"):
        treat(*arguments)
    assert not said
