"""Where no hosts can be made, lesson 09 says why, and shows a run that was saved."""

import pytest

from benchmarks import hosts
from lessons.cells.launches import hosts as hosts_cell
from lessons.cells.launches.hosts import on_two_hosts


@pytest.fixture
def without_hosts(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    """Hide the tools that make hosts, as on a machine without them."""
    monkeypatch.setattr("cluster.namespaces.tools_path", lambda: str(tmp_path))


def test_a_saved_run_on_two_hosts_is_shown(without_hosts: None, capsys: pytest.CaptureFixture):
    made = on_two_hosts()
    said = capsys.readouterr().out
    assert said.startswith("No hosts can be made here: missing: ")
    assert "So this is a run that was saved. Machine: 2 cores of " in said
    assert "epoch 1/1" in said
    assert made == hosts.read(hosts.TWO_HOSTS)[0]


@pytest.mark.parametrize("trouble", hosts.TROUBLES)
def test_a_saved_elastic_run_is_shown_with_its_figure(
    without_hosts: None, trouble: str, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    figures = []
    monkeypatch.setattr("lessons.cells.launches.hosts.show", lambda *shown: figures.append(shown))
    made = on_two_hosts(trouble)
    assert capsys.readouterr().out.startswith("No hosts can be made here: missing: ")
    ((figure, alt, caption),) = figures
    figure.draw_without_rendering()
    assert "4 workers make" in alt and "0 images were lost" in caption and f"Trouble: {trouble}." in caption
    assert made["machine"]["commit"]


def test_the_table_of_troubles_has_a_row_for_each_kind_and_says_its_pauses(monkeypatch: pytest.MonkeyPatch):
    shown = []
    monkeypatch.setattr(hosts_cell, "display", lambda made: shown.append(made.data))
    hosts_cell.show_troubles()
    rows = shown[0].split("<tr>")[2:]
    assert [row.partition("</td>")[0].removeprefix("<td>") for row in rows] == [hosts.CALM, *hosts.TROUBLES]
    assert "<td></td><td></td><td>0</td><td>0</td>" in rows[0], "nothing went wrong, so there was no pause"
    for row in rows[1:]:
        assert row.count(" s</td>") == 2
