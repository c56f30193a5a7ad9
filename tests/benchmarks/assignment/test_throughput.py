"""One and two machines grade a class, and the throughput of each is read from its result."""

import json
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks.assignment import throughput
from tests.support.submission_suite import submissions


@pytest.mark.slow  # It needs root.
def test_two_machines_grade_a_class_and_each_number_of_machines_is_measured_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(throughput, "MACHINES", (1, 2))
    monkeypatch.setattr(throughput, "STUDENTS", 2)
    # This program fails at its start, so it is graded in some seconds.
    program = next(one for one in submissions() if one.id == "mistakes/init_too_late")
    program.write(tmp_path / "program")
    monkeypatch.setitem(throughput.VARIANTS, "reference", tmp_path / "program")
    console = Console(record=True)
    throughput.run(1, console, tmp_path)
    measured = json.loads((tmp_path / "machines_2-0.json").read_text())
    assert (measured["machines"], len(measured["points"])) == (2, 2)
    monkeypatch.setattr(throughput, "measure", None)
    throughput.run(1, console, tmp_path)
    assert throughput.show(console, tmp_path)
    assert "2 machines: " in console.export_text()
