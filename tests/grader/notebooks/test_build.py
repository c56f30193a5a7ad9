"""Learners' notebooks are made from the lessons' texts. They have no answers, and nbgrader accepts them."""

import ast
import inspect
import json
import re
from html import unescape
from pathlib import Path

import nbformat
import pytest
from nbconvert.filters.markdown_mistune import markdown2html_mistune
from nbgrader.nbgraderformat import reads
from nbgrader.utils import is_grade, is_locked, is_solution

from grader import exercises
from grader.__main__ import main
from grader.exercises import Compared, sandboxed
from grader.exercises.public_check import check_public
from grader.notebooks import build
from grader.sandbox.unsandboxed import Unsandboxed
from grader.submission import notebook
from tests.grader.exercises.test_sandboxed import PLAIN

OPENING = "# %% [markdown]\n# # A lesson\n#\n# With words.\n"
PARAMETERS = '# %% tags=["parameters"]\nworkers = 4\n'


def marked(answer: str) -> str:
    """Return a right answer with its body between nbgrader's markers."""
    head, body = answer.strip("\n").split(":\n", 1)
    return f"{head}:\n    ### BEGIN SOLUTION\n{body}\n    ### END SOLUTION\n"


RING = '# %% exercise="ring_step"\n' + marked(PLAIN["ring_step"])
NOISE = '# %% exercise="warmup_factor"\n' + marked(PLAIN["warmup_factor"])
LOCKED = '# %% locked="four_workers"\n60.0 + 7\n'
SAMPLES = {
    "01_words.py": OPENING,
    "03_ring.py": "\n".join([OPENING, PARAMETERS, RING, "# %%\nring_step([[[1.0]], [[2.0]]], 0)\n"]),
    "05_two.py": "\n".join([OPENING, NOISE, "# %% [markdown]\n# ## The end\n"]),
    "08_task.py": "\n".join([OPENING, LOCKED]),
}
LESSONS = build.lessons(build.SOLUTIONS)


@pytest.fixture
def solutions(tmp_path: Path) -> Path:
    """Return a folder with the samples and a file that is not a lesson."""
    folder = tmp_path / "solutions"
    folder.mkdir()
    for name, text in SAMPLES.items():
        (folder / name).write_text(text)
    (folder / "notes.py").write_text("1 / 0")
    return folder


def test_a_cell_that_is_a_solution_is_in_the_solved_notebook_alone(tmp_path: Path):
    path = tmp_path / "08_task.py"
    path.write_text(f'{OPENING}\n# %% tags=["solution"]\nthe_reference = 1\n')
    assert "the_reference" in build.text(build.solved(path))
    assert "the_reference" not in build.text(build.learner(path))


def test_two_builds_write_the_same_bytes(solutions: Path, tmp_path: Path):
    first, second = tmp_path / "first", tmp_path / "second"
    names = [f"{Path(name).stem}.ipynb" for name in SAMPLES]
    assert build.build(solutions, first) == names and build.build(solutions, second) == names
    assert build.build(solutions, first) == [], "nothing has changed"
    for name in names:
        content = (first / name).read_bytes()
        assert content == (second / name).read_bytes()
        assert content.startswith(b'{\n "cells"') and content.endswith(b"}\n") and not content.endswith(b"\n\n")


def test_a_notebook_says_what_it_was_made_from_and_holds_no_outputs(solutions: Path):
    for name, content in build.built(solutions).items():
        cells = json.loads(content)["cells"]
        origin = "".join(cells[0]["source"]).splitlines()[0]
        assert origin.startswith("<!--") and f"solutions/{Path(name).stem}.py" in origin and origin.endswith("-->")
        code = [cell for cell in cells if cell["cell_type"] == "code"]
        assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)


def test_ids_are_unique_and_come_from_the_exercise_or_the_position(solutions: Path):
    ids = [cell.id for path in build.lessons(solutions) for cell in build.learner(path).cells]
    assert len(set(ids)) == len(ids)
    assert ids[1:7] == ["03-000", "03-001", "ring_step_statement", "ring_step", "ring_step_check", "03-005"]
    for path in build.lessons(solutions):
        assert [cell.id for cell in build.learner(path).cells] == [cell.id for cell in build.solved(path).cells]


def test_an_exercise_becomes_statement_answer_and_check(solutions: Path):
    _, parameters, statement, answer, check, _ = build.learner(solutions / "03_ring.py").cells
    exercise = exercises.get("ring_step")
    assert parameters.metadata == {"tags": ["parameters"]}
    assert all(part in statement.source for part in (exercise.title, exercise.statement, exercise.signature))
    assert f"({exercise.points} points)" in statement.source
    assert ">>> ring_step([[[1], [2]], [[10], [20]]], 0)\n[[[1], [22]], [[11], [20]]]\n" in statement.source
    assert answer.source == f"def ring_step(chunks, step):\n    {build.STUB.replace(chr(10), chr(10) + '    ')}"
    assert check.source.splitlines()[-1] == 'check_public("ring_step", ring_step)'
    assert check.metadata.nbgrader.points == exercise.points
    kinds = [(is_locked(cell), is_solution(cell), is_grade(cell)) for cell in (statement, answer, check)]
    assert kinds == [(True, False, False), (False, True, False), (True, False, True)]


def test_the_solved_notebook_has_the_answer(solutions: Path):
    assert build.solved(solutions / "03_ring.py").cells[3].source == marked(PLAIN["ring_step"]).rstrip()


def test_an_unwritten_answer_earns_nothing_and_says_so(solutions: Path, capsys):
    cells = build.learner(solutions / "03_ring.py").cells
    space = {}
    exec(cells[3].source, space)
    assert check_public("ring_step", space["ring_step"]) == 0
    assert "it is not written yet" in capsys.readouterr().out


def test_a_locked_cell_is_nbgraders_to_grade_and_worth_100_points(solutions: Path):
    cell = build.learner(solutions / "08_task.py").cells[1]
    assert cell.source == "60.0 + 7" and cell.metadata.nbgrader.points == 100
    assert (is_locked(cell), is_solution(cell), is_grade(cell)) == (True, False, True)


# These tests are about all lessons, whichever there are.

EVERY = [*SAMPLES, *LESSONS]


@pytest.fixture(params=EVERY, ids=lambda source: source if isinstance(source, str) else source.stem)
def lesson(request: pytest.FixtureRequest, solutions: Path) -> Path:
    """Return a sample, or a lesson of the course."""
    return solutions / request.param if isinstance(request.param, str) else request.param


def test_nbgrader_and_jupyter_accept_every_notebook(lesson: Path):
    for made in (build.learner(lesson), build.solved(lesson)):
        text = build.text(made)
        reads(text, as_version=4)  # This raises an error if nbgrader's own validator finds a problem.
        nbformat.validate(nbformat.reads(text, as_version=4))


def parts(text: str) -> tuple[list[str], list[str]]:
    """Return the stripped lines of a text outside and inside of its solutions."""
    outside, inside, now = [], [], False
    for line in map(str.strip, text.splitlines()):
        if "BEGIN SOLUTION" in line or "END SOLUTION" in line:
            now = "BEGIN" in line
        else:
            (inside if now else outside).append(line)
    return outside, inside


def test_no_learners_copy_has_an_answer_or_a_hidden_test(lesson: Path):
    copy = build.text(build.learner(lesson))
    lines = {line.strip() for cell in build.learner(lesson).cells for line in cell.source.splitlines()}
    outside, inside = parts(lesson.read_text())
    said = set(outside) | {line.removeprefix("#").strip() for line in outside}
    answers = {line for line in inside if line} - said
    assert not answers & lines, "a line of an answer"
    assert "SOLUTION" not in copy and "HIDDEN TEST" not in copy and "exercises.definitions" not in copy


def test_no_learners_copy_has_a_line_of_the_graders_references(lesson: Path):
    lines = {line.strip() for cell in build.learner(lesson).cells for line in cell.source.splitlines()}
    outside, _ = parts(lesson.read_text())
    for exercise in map(exercises.get, exercises.ids()):
        if isinstance(exercise, Compared):
            body = ast.parse(inspect.getsource(exercise.reference)).body[0].body
            secret = {line.strip() for part in body[1:] for line in ast.unparse(part).splitlines()}
            assert not {line for line in secret if len(line) > 25} & lines - set(outside), exercise.id


def test_the_answers_of_a_lesson_earn_all_points(lesson: Path):
    solved = build.solved(lesson)
    ids = [cell.id for cell in solved.cells if is_solution(cell)]
    found = notebook.answers(build.text(solved).encode(), ids)
    assert not found.problems
    for judged in sandboxed.grade(found.sources, "a key", Unsandboxed):
        assert judged.points == judged.max, judged


def test_the_committed_notebooks_are_what_the_lessons_build_to():
    assert build.stale(build.SOLUTIONS, build.NOTEBOOKS) == [], "run: python -m grader build"


@pytest.mark.parametrize("id", exercises.ids())
def test_a_statement_reads_in_a_notebook_as_it_was_written(id: str):
    """No part of a statement is taken for emphasis, a tag, a formula or a list by accident."""
    statement = exercises.get(id).statement
    shown = unescape(re.sub(r"<[^>]+>", "", markdown2html_mistune(statement)))
    bare = re.sub(r"^\s*[-*] |`", "", statement, flags=re.MULTILINE)
    assert shown.split() == bare.split()


# These tests are about texts that are refused.

BEGIN, END = "    ### BEGIN SOLUTION\n", "    ### END SOLUTION\n"
REFUSED = {
    "unknown": (RING.replace('"ring_step"', '"no_such"'), "cell 2: there is no exercise 'no_such'"),
    "no begin": (RING.replace(BEGIN, ""), "cell 2: ring_step needs ### BEGIN SOLUTION, and after it"),
    "no end": (RING.replace(END, ""), "cell 2: ring_step needs ### BEGIN SOLUTION, and after it"),
    "nested": (RING.replace(BEGIN, 2 * BEGIN), "cell 2: ring_step needs ### BEGIN SOLUTION"),
    "reversed": (
        RING.replace(BEGIN, "@").replace(END, BEGIN).replace("@", END),
        "cell 2: ring_step needs ### BEGIN SOLUTION",
    ),
    "other arguments": (
        RING.replace("(chunks, step)", "(step, chunks)"),
        "cell 2: without its solution ring_step must still have def ring_step(chunks, step)",
    ),
    "all is solution": (
        '# %% exercise="ring_step"\n### BEGIN SOLUTION\ndef ring_step(chunks, step): ...\n### END SOLUTION\n',
        "cell 2: without its solution ring_step must still have def ring_step(chunks, step)",
    ),
    "stray solution": (RING.replace(' exercise="ring_step"', ""), 'must stand in a cell with exercise="..."'),
    "text": ('# %% [markdown] exercise="ring_step"\n# words\n', "cell 2: an exercise, like a locked cell, must be"),
    "twice": (RING + "\n" + RING, "ring_step is there 2 times: solutions/07_it.py, solutions/07_it.py"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_lesson_that_cannot_be_built_is_named_in_one_line(case: str, tmp_path: Path):
    text, message = REFUSED[case]
    folder, notebooks = tmp_path / "solutions", tmp_path / "notebooks"
    folder.mkdir()
    (folder / "07_it.py").write_text(f"{OPENING}\n{text}")
    with pytest.raises(build.LessonError) as caught:
        build.build(folder, notebooks)
    assert message in str(caught.value) and "solutions/07_it.py" in str(caught.value)
    assert "\n" not in str(caught.value) and not notebooks.exists()


def test_a_lesson_needs_words_to_open_with(tmp_path: Path):
    (tmp_path / "07_it.py").write_text("# %%\n1 + 1\n")
    with pytest.raises(build.LessonError, match="needs a markdown cell"):
        build.built(tmp_path)


def test_an_exercise_in_two_lessons_is_refused(solutions: Path):
    (solutions / "06_again.py").write_text(SAMPLES["03_ring.py"])
    with pytest.raises(build.LessonError, match=r"2 times: solutions/03_ring\.py, solutions/06_again\.py"):
        build.built(solutions)


def checked(capsys) -> tuple[int, list[str]]:
    """Return the exit status and the messages of `python -m grader build --check`."""
    status = main(["build", "--check"])
    return status, capsys.readouterr().err.splitlines()


def test_check_names_every_stale_notebook_and_writes_nothing(solutions: Path, tmp_path: Path, monkeypatch, capsys):
    notebooks = tmp_path / "notebooks"
    monkeypatch.setattr(build, "SOLUTIONS", solutions)
    monkeypatch.setattr(build, "NOTEBOOKS", notebooks)
    assert checked(capsys)[0] == 1, "there is none yet"
    assert main(["build"]) == 0
    assert checked(capsys) == (0, [])
    (solutions / "01_words.py").write_text(OPENING + "# More.\n")
    (notebooks / "02_old.ipynb").write_text("{}")
    (notebooks / "my own.ipynb").write_text("{}")
    changed = (notebooks / "08_task.ipynb").read_text().replace("67", "68").replace("60.0 + 7", "100")
    (notebooks / "08_task.ipynb").write_text(changed)
    status, (line,) = checked(capsys)
    assert status == 1 and "01_words.ipynb, 02_old.ipynb, 08_task.ipynb. Run: python -m grader build" in line
    assert (notebooks / "08_task.ipynb").read_text() == changed
    (solutions / "01_words.py").write_text('# %% exercise="x"\n')
    status, (line,) = checked(capsys)
    assert status == 2 and "01_words.py, cell 1: there is no exercise 'x'" in line
