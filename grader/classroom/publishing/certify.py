"""Signs the certificates of all students whose four-worker program passed."""

import tempfile
from datetime import datetime
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from grader.certificates import credential, issuer, picture
from grader.certificates.credential import Award
from grader.certificates.issuer import Issuer
from grader.classroom.course import Course
from grader.classroom.grading import record
from grader.classroom.grading.record import FOUR_WORKERS, Record
from grader.classroom.nbgrader_plugins import max_points, total
from grader.common.contract import load
from grader.grading.grade import shown_by_a_pass


def certificates_folder(course: Course) -> Path:
    return course.root / "export" / "certificates"


def certify(course: Course, profile: str, years: int | None, keys: Path) -> list[Path]:
    """Sign for all whose four-worker run passed, and return the paths of their pictures.

    A certificate that says the same already stays as it is. That of a student who no longer passes is removed. Raises
    CourseError before the first release, and IssuerError if there is no key to sign with.
    """
    course.check()
    signer, key = issuer.signing_issuer(keys), issuer.signing_key(keys)
    folder = certificates_folder(course)
    folder.mkdir(parents=True, exist_ok=True)
    pictures = []
    for student, assignment in course.graded:
        grade = record.load(course.record(student, assignment))
        if grade and grade.passed is not None and grade.profile == profile:
            target = folder / f"{student}.png"
            has_target = grade.target == course.policy.program.target  # if not, the program has to be graded again
            if grade.passed and has_target and not _is_withheld(course, student, assignment):
                _write(_award(course, student, grade, years), signer, key, target)
                pictures.append(target)
            else:
                target.unlink(missing_ok=True)
                target.with_suffix(".jwt").unlink(missing_ok=True)
    return pictures


def _is_withheld(course: Course, student: str, assignment: str) -> bool:
    """Whether the instructor has given the four-worker program 0 points by hand."""
    with course.gradebook as gradebook:
        return gradebook.find_grade(FOUR_WORKERS, assignment, assignment, student).manual_score == 0


def _award(course: Course, student: str, grade: Record, years: int | None) -> Award:
    with course.gradebook as gradebook:
        person = gradebook.find_student(student)
        names = [person.first_name, person.last_name]
        most, points = max_points(gradebook, course.policy), total(gradebook, course.policy, student)
    since = datetime.fromisoformat(grade.graded)
    return Award(
        name=" ".join(filter(None, names)) or student, student=student, grade=f"{points:g} of {most:g} points",
        shown=shown_by_a_pass(load(grade.profile, grade.target), grade.points), since=since,
        until=credential.expiry(since, years),
    )  # fmt: skip


def _write(award: Award, signer: Issuer, key: Ed25519PrivateKey, target: Path) -> None:
    """Write the picture that holds the credential, and the credential by itself, unless they say the same already."""
    existing = credential.verify(credential.read_token(target), [signer])
    if existing.state == "valid" and (existing.award.name, existing.award.grade, existing.award.until) == (
        award.name, award.grade, award.until,
    ):  # fmt: skip
        return
    token = credential.sign(award, signer, key)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        plain, baked = Path(folder, "plain.png"), Path(folder, "baked.png")
        picture.draw(award, signer.name, plain)
        credential.bake(plain, token, baked)
        baked.replace(target)
    target.with_suffix(".jwt").write_text(token + "\n")
