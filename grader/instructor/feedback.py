"""`python -m grader feedback`: a page a submission by nbgrader, released where learners fetch it."""

import argparse
import hashlib
import sys
from collections.abc import Iterator

from rich.console import Console

from grader.bar import counting
from grader.instructor.autograde import penalise
from grader.instructor.course import Course, CourseError
from grader.whole import write_whole


def run(args: argparse.Namespace, console: Console) -> int:
    """Exit status: 0, 1 if a page could not be made or released, 2 before the first release."""
    course = Course(args.course.resolve())
    try:
        course.check()
        graded = submissions(course)
        failed = [f"{student}, {name}" for student, name in _bar(graded, console) if not page(course, student, name)]
        for name in sorted({name for _, name in graded}):
            result = course.api.release_feedback(name)
            failed += [] if result["success"] else [f"the release of {name}"]
    except CourseError as error:
        print(f"grader: {error}", file=sys.stderr)
        return 2
    console.print(f"{len(graded) - len(failed)} pages in {course.root / 'feedback'}, and released", highlight=False)
    for name in failed:
        print(f"grader: failed: {name}", file=sys.stderr)
    return 1 if failed else 0


def _bar(graded: list[tuple[str, str]], console: Console) -> Iterator[tuple[str, str]]:
    with counting(console) as bar:
        yield from bar.track(graded, description="feedback")


def submissions(course: Course) -> list[tuple[str, str]]:
    """Students and their assignments, of all that is graded."""
    found = sorted((course.root / "records").glob("*/*.json"))
    return [(path.parent.name, path.stem) for path in found]


def page(course: Course, student: str, assignment: str) -> bool:
    """Make a submission's page, if there is none or its grade or comments have changed; whether there is one."""
    penalise(course, student, assignment)
    state, mark = _state(course, student, assignment), course.record(student, assignment).with_suffix(".feedback")
    target = course.folder("feedback", student, assignment) / f"{assignment}.html"
    if target.exists() and mark.exists() and mark.read_text() == state:
        return True
    result = course.api.generate_feedback(assignment, student, force=True)
    if result["success"]:
        write_whole(mark, state)
    return result["success"]


def _state(course: Course, student: str, assignment: str) -> str:
    """A hash of what the page shows."""
    folder = course.folder("autograded", student, assignment)
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        digest.update(f"{path.name}\0".encode() + path.read_bytes())
    with course.gradebook as gradebook:
        found = gradebook.find_submission_notebook(assignment, assignment, student)
        shown = [sorted((grade.name, grade.score) for grade in found.grades), found.late_submission_penalty]
        shown.append(sorted((comment.name, str(comment.comment)) for comment in found.comments))
    digest.update(repr(shown).encode(errors="replace"))
    return digest.hexdigest()
