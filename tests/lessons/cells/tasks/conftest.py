"""What the tests of tasks share."""

import pytest

from lessons.cells.tasks import judge, missing, patients


@pytest.fixture
def said(monkeypatch) -> list[str]:
    """Collect what a task displays."""
    shown = []
    for task in (judge, missing, patients):
        monkeypatch.setattr(task, "display", lambda made: shown.append(made.data))
    return shown
