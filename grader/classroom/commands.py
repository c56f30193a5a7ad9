"""The commands of `python -m grader` for a class with nbgrader. `cli` describes their options.

Each command returns its exit status, and imports what it needs when it runs. `__main__` reports a GraderError.
"""

import argparse
import sys

from rich.console import Console


def release(args: argparse.Namespace, console: Console) -> int:
    """Release the lessons that are new or have changed."""
    from grader.classroom.course import Course
    from grader.classroom.publishing.release import release
    from grader.notebooks.build import SOLUTIONS

    names = release(Course(args.course.resolve()), SOLUTIONS)
    console.print(f"released: {', '.join(names)}" if names else "all assignments are released as they are")
    return 0


def autograde(args: argparse.Namespace, console: Console) -> int:
    """Grade what was submitted. Exit status: 0 if every submission has a grade, 1 if the grader failed on some."""
    from grader.classroom.course import Course
    from grader.classroom.grading.autograde import AutogradeOptions, autograde

    options = AutogradeOptions(
        source=args.source, student=args.student, assignment=args.assignment, profile=args.profile, force=args.force,
        scheduler=args.scheduler,
    )  # fmt: skip
    return 1 if autograde(Course(args.course.resolve()), options, console).failures else 0


def feedback(args: argparse.Namespace, console: Console) -> int:
    """Make and release the pages. Exit status: 0, or 1 if a page could not be made, released or packed."""
    from grader.classroom.course import Course
    from grader.classroom.publishing.feedback import release_feedback
    from grader.classroom.publishing.feedback_package import pack

    course = Course(args.course.resolve())
    result = release_feedback(course, console)
    console.print(f"{len(result.pages)} pages in {course.root / 'feedback'}, and released", highlight=False)
    _report(result.failures)
    if args.source is None:
        return 1 if result.failures else 0
    package = pack(course, args.source, result.pages)
    console.print(f"for the platform: {package.path}, {package.pages} pages", highlight=False, soft_wrap=True)
    _report(package.left_out)
    return 1 if result.failures or package.left_out else 0


def _report(messages: list[str]) -> None:
    for message in messages:
        print(f"grader: {message}", file=sys.stderr)


def export(args: argparse.Namespace, console: Console) -> int:
    """Write the grades, and the class's summary. Exit status: 0, or 1 if a student is not in the platform's table."""
    from grader.classroom.course import Course
    from grader.classroom.publishing import platform_grades
    from grader.classroom.publishing.export import export
    from grader.classroom.publishing.roster import RosterError

    if args.platform != "csv" and args.roster is None:
        raise RosterError(f"export your gradebook from {args.platform}, and name the file with --roster")
    if args.platform == "csv" and (args.roster or args.assignment or args.unit == "percent"):
        raise RosterError("name the platform of the table with --for")
    course = Course(args.course.resolve())
    table, summary = export(course)
    console.print(f"table: {table}\nsummary: {summary}", highlight=False, soft_wrap=True)
    if args.roster is None:
        return 0
    filled = platform_grades.fill(course, args.platform, args.roster, args.unit == "percent", args.assignment)
    console.print(f"for {args.platform}: {filled.path}, {filled.grades} grades", highlight=False, soft_wrap=True)
    _report([f"{student} is not in the table: {reason}" for student, reason in filled.without_row.items()])
    return 1 if filled.without_row else 0


def similar(args: argparse.Namespace, console: Console) -> int:
    """Write the page with the most similar pairs of texts."""
    from grader.classroom.course import Course
    from grader.classroom.similarity import compare, documents, page
    from grader.common.atomic_write import write_whole

    course = Course(args.course.resolve())
    texts = documents.of_course(course)
    for old in args.old:
        texts += documents.of_course(Course(old.resolve()), year="/".join(old.resolve().parts[-2:]))
    groups = list(compare.groups(texts, documents.given_code(course)))
    target = course.root / "export" / "similar.html"
    target.parent.mkdir(exist_ok=True)
    write_whole(target, page.page(groups))
    count = sum(len(group.pairs) for group in groups)
    console.print(f"{count} pairs were compared: {target}", highlight=False, soft_wrap=True)
    return 0


def certify(args: argparse.Namespace, console: Console) -> int:
    """Sign the certificates of all who passed."""
    from grader.certificates import issuer
    from grader.classroom.course import Course
    from grader.classroom.publishing.certify import certificates_folder, certify

    course = Course(args.course.resolve())
    signed = certify(course, args.profile, args.years, issuer.keys_folder())
    console.print(f"{len(signed)} certificates in {certificates_folder(course)}", highlight=False)
    return 0
