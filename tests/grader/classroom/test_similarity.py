"""A made-up class of thirty: 27 learners worked alone, and three copied from another one.

The texts in made_up_class/ were written by 27 writers who did not see each other's work, from the assignment's page and
the starter. Learner 28 has renamed everything in 06's work, 29 has reordered 10's, and 30 has replaced all texts in
03's. Each learner hands in `train.py` and the answers to the exercises of lesson 03.
"""

from pathlib import Path

import pytest

from grader.__main__ import main
from grader.classroom.course import Course
from grader.classroom.publishing.release import release
from grader.classroom.similarity import compare, documents, page
from grader.classroom.similarity.compare import Group
from grader.classroom.similarity.documents import ANSWERS, PROGRAM, Document
from grader.notebooks.build import SOLUTIONS
from tests.support import synthetic_class

CLASS = Path(__file__).with_name("made_up_class")
COPIED = {("06", "28"), ("03", "30"), ("10", "29")}
ASSIGNMENTS = {PROGRAM: synthetic_class.PROGRAM, ANSWERS: synthetic_class.NOTEBOOKS[0]}


def texts(folder: Path) -> list[Document]:
    program = "\n\n".join(path.read_text() for path in sorted(folder.glob("*.py")) if path.name != "answers.py")
    program, answers = documents.tidied(program), documents.tidied((folder / "answers.py").read_text())
    found = {PROGRAM: program, ANSWERS: answers}
    return [Document(folder.name, ASSIGNMENTS[kind], kind, text) for kind, text in found.items()]


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    course = Course(tmp_path_factory.mktemp("similar") / "work")
    release(course, SOLUTIONS)
    return course


@pytest.fixture(scope="module")
def groups(course: Course) -> dict[str, Group]:
    found = [text for folder in sorted(CLASS.iterdir()) for text in texts(folder)]
    return {group.kind: group for group in compare.groups(found, documents.given_code(course))}


@pytest.mark.parametrize("kind", [PROGRAM, ANSWERS])
def test_the_three_copied_pairs_are_above_all_others(groups: dict[str, Group], kind: str):
    pairs = groups[kind].pairs
    assert len(pairs) == 30 * 29 / 2 and groups[kind].short == []
    assert {(pair.one.student, pair.other.student) for pair in pairs[:3]} == COPIED
    assert pairs[2].similarity > pairs[3].similarity


def test_copied_programs_stand_apart_from_programs_that_were_written_alone(groups: dict[str, Group]):
    similarities = [pair.similarity for pair in groups[PROGRAM].pairs]
    assert similarities[2] > 0.8 and similarities[3] < 0.7


def test_many_blank_lines_take_no_time_and_hide_nothing():
    text = documents.tidied("\n" * 500 + "x = 1\r\n" + " \n" * 20_000 + "y = 2\n\n")
    assert text == "x = 1\n\ny = 2"


def test_what_all_learners_were_given_does_not_count(course: Course):
    starter = (documents.STARTER / "train.py").read_text()
    same = [Document(name, "08_assignment", PROGRAM, starter) for name in ("one", "other")]
    (group,) = compare.groups(same, documents.given_code(course))
    assert group.pairs == [] and len(group.short) == 2


def test_a_text_of_an_older_course_is_compared_with_this_years_only(course: Course):
    text = (CLASS / "03" / "train.py").read_text()
    years = {"ada": "", "bob": "2025", "eve": "2025"}
    found = [Document(name, "08_assignment", PROGRAM, text, year) for name, year in years.items()]
    (group,) = compare.groups(found, documents.given_code(course))
    assert [(pair.one.who, pair.other.who) for pair in group.pairs] == [("ada", "bob (2025)"), ("ada", "eve (2025)")]


def test_the_page_shows_pairs_side_by_side_and_escapes_what_learners_wrote(course: Course):
    hostile = "</li><script>alert(1)</script>\x1b[2J\n" + (CLASS / "03" / "train.py").read_text()
    found = [Document(name, "08_assignment", PROGRAM, hostile) for name in ("<b>ada", "bob")]
    text = page.page(list(compare.groups(found, documents.given_code(course))))
    assert "<script>" not in text and "\x1b" not in text and "<b>ada" not in text
    assert "&lt;script&gt;alert(1)" in text and "<mark>" in text and "data:image/png;base64," in text
    assert "This page accuses nobody." in text


def test_the_command_compares_what_a_class_has_handed_in(course: Course, tmp_path: Path, capsys):
    """Four learners hand in programs and notebooks. The same folder is also an older course."""
    for student, number in (("ada", "06"), ("bob", "28"), ("eve", "07"), ("short", "07")):
        folder = course.folder("submitted", student, synthetic_class.PROGRAM)
        (folder / "my_assignment").mkdir(parents=True)
        program = (CLASS / number / "train.py").read_text() if student != "short" else "import torch\n"
        (folder / "my_assignment" / "train.py").write_text(program)
    assert main(["similar", "--course", str(course.root), "--old", str(course.root)]) == 0
    assert "pairs were compared: " in capsys.readouterr().out
    text = (course.root / "export" / "similar.html").read_text()
    assert "Too short to compare:" in text and "short" in text
    first = text.index("<summary>")
    assert (
        "ada" in text[first : first + 200]
        and "bob" in text[first : first + 200]
        and "1.00" in text[first : first + 200]
    )
