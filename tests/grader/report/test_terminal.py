"""The report is shown in the terminal."""

import io

from rich.console import Console

from grader.grading import grade
from grader.report import terminal


def test_text_from_a_submission_cannot_steer_the_terminal():
    row = grade.Row("begins", "unmet", 0, 5, "asks", "seen \x1b[31mred\x07 [bold]big[/]", "advice")
    shown = io.StringIO()
    result = grade.Report("sub\x1b]0;title\x07", False, 0, [row], "not isolated", None)
    terminal.show(result, Console(file=shown, width=120, force_terminal=False))
    text = shown.getvalue()
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "[bold]big[/]" in text
    assert "NOT PASSED" in text and "✗ not met" in text
