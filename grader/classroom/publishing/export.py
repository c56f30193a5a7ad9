"""Exports the class's grades: the LMS's table (grades.csv) and the class at a glance (summary.html)."""

from pathlib import Path

from grader.classroom.course import Course
from grader.classroom.grading.gradebook import update_late_penalty
from grader.classroom.nbgrader_plugins import LmsExport
from grader.classroom.publishing import summary
from grader.common.atomic_write import write_whole


def export(course: Course) -> tuple[Path, Path]:
    """Write the table and the summary, and return their paths. Raises CourseError before the first release."""
    course.check()
    folder = course.root / "export"
    folder.mkdir(exist_ok=True)
    for student, assignment in course.graded:
        update_late_penalty(course, student, assignment)
    table, page = folder / "grades.csv", folder / "summary.html"
    plugin = LmsExport(config=course.config, to=str(table.with_suffix(".part")))
    with course.gradebook as gradebook:
        plugin.export(gradebook)
    Path(plugin.to).replace(table)
    write_whole(page, summary.page(summary.grades(course)))
    return table, page
