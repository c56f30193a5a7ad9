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
    """Make and release the pages. Exit status: 0, or 1 if a page could not be made or released."""
    from grader.classroom.course import Course
    from grader.classroom.publishing.feedback import release_feedback

    course = Course(args.course.resolve())
    result = release_feedback(course, console)
    console.print(f"{result.pages} pages in {course.root / 'feedback'}, and released", highlight=False)
    for message in result.failures:
        print(f"grader: {message}", file=sys.stderr)
    return 1 if result.failures else 0


def export(args: argparse.Namespace, console: Console) -> int:
    """Write the LMS's table and the class's summary."""
    from grader.classroom.course import Course
    from grader.classroom.publishing.export import export

    table, summary = export(Course(args.course.resolve()))
    console.print(f"table: {table}\nsummary: {summary}", highlight=False, soft_wrap=True)
    return 0


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
