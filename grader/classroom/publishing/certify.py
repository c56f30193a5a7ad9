"""`python -m grader certify` signs the certificates of all who passed."""

import argparse
import sys
import tempfile
from datetime import datetime
from pathlib import Path

from rich.console import Console

from grader.certificates import credential, issuer, picture
from grader.certificates.credential import Award
from grader.classroom.course import Course
from grader.classroom.grading import record
from grader.classroom.grading.autograde import FOUR_WORKERS
from grader.classroom.nbgrader_plugins import score
from grader.common.contract import load
from grader.common.errors import GraderError
from grader.grading.grade import shown_by_a_pass


def run(args: argparse.Namespace, console: Console) -> int:
    """Exit status: 0, or 2 before the first release and if there is nothing to sign with."""
    course = Course(args.course.resolve())
    try:
        course.check()
        signed = certify(course, args.profile, args.years, issuer.home())
    except GraderError as error:
        print(f"grader: {error}", file=sys.stderr)
        return 2
    console.print(f"{len(signed)} certificates in {course.root / 'export' / 'certificates'}", highlight=False)
    return 0


def certify(course: Course, profile: str, years: int | None, keys: Path) -> list[Path]:
    """Sign for all whose four-worker run passed, unless they have one that says the same; the pictures' paths."""
    signer, key = issuer.of(keys), issuer.signing_key(keys)
    folder = course.root / "export" / "certificates"
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for student, assignment in course.graded:
        found = record.load(course.record(student, assignment))
        if found and found.passed and found.profile == profile:
            target = folder / f"{student}.png"
            if _withheld(course, student, assignment):
                for path in (target, target.with_suffix(".jwt")):
                    path.unlink(missing_ok=True)
            else:
                made.append(_write(_award(course, student, found, years), signer, key, target))
    return made


def _withheld(course: Course, student: str, assignment: str) -> bool:
    """Whether the instructor has given the four-worker program 0 points by hand."""
    with course.gradebook as gradebook:
        return gradebook.find_grade(FOUR_WORKERS, assignment, assignment, student).manual_score == 0


def _award(course: Course, student: str, found: record.Record, years: int | None) -> Award:
    with course.gradebook as gradebook:
        person = gradebook.find_student(student)
        names = [person.first_name, person.last_name]
        most = sum(assignment.max_score for assignment in gradebook.assignments)
        points = sum(score(gradebook, assignment.name, student) or 0 for assignment in gradebook.assignments)
    since = datetime.fromisoformat(found.graded)
    name, until = " ".join(filter(None, names)) or student, credential.expiry(since, years)
    shown = shown_by_a_pass(load(found.profile), found.points)
    return Award(name, student, f"{points:g} of {most:g} points", shown, since, until)


def _write(award: Award, signer: issuer.Issuer, key, target: Path) -> Path:
    """The picture with the credential in it, and the credential by itself; as they are if they say the same."""
    had = credential.verify(credential.token_of(target), [signer])
    if had.state == "valid" and (had.award.name, had.award.grade, had.award.until) == (
        award.name, award.grade, award.until,
    ):  # fmt: skip
        return target
    token = credential.sign(award, signer, key)
    with tempfile.TemporaryDirectory(dir=target.parent) as place:
        plain, baked = Path(place, "plain.png"), Path(place, "baked.png")
        picture.draw(award, signer.name, plain)
        credential.bake(plain, token, baked)
        baked.replace(target)
    target.with_suffix(".jwt").write_text(token + "\n")
    return target
