"""In JupyterLab, the lanes of four workers move, and a worker that is killed is seen in its lane."""

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat
import psutil
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from playwright.sync_api import Page

from tests.browser.conftest import lab
from tests.browser.test_learner import opened, run_all

pytestmark = pytest.mark.slow
CELL = """from lessons import horovodrun

lines = horovodrun("cifar_base.py", 4, epochs=9, images=4096, batch_size=32, device="cpu")"""


@pytest.fixture(scope="module")
def address(learner: Path, cifar10: Path) -> Iterator[str]:
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}}
    written = new_notebook(cells=[new_code_cell(CELL)], metadata=metadata)
    nbformat.write(written, learner / "notebooks" / "four_workers.ipynb")
    with lab(learner) as url:
        yield url


def test_a_worker_that_is_killed_is_seen_in_its_lane(page: Page, address: str, shot: Callable):
    notebook = opened(page, address, "four_workers")
    run_all(page, notebook)
    view = notebook.locator("img[alt*='of 9 epochs']")
    wait(lambda: least_update(view) >= 20)
    for number in range(3):
        shot(f"view-{number}")
        time.sleep(1)
    workers()[2].kill()
    for number in range(3, 6):
        time.sleep(0.6)
        shot(f"view-{number}")
    wait(lambda: "worker 2: ended" in (view.get_attribute("alt") or ""))
    assert notebook.get_by_text(re.compile("RunError")).count(), "the cell says that the run has failed"
    assert not workers()


def wait(true: Callable[[], bool]) -> None:
    until = time.monotonic() + 180
    while not true():
        assert time.monotonic() < until
        time.sleep(0.1)


def least_update(view) -> int:
    """Return the smallest number of updates that a lane shows."""
    found = re.findall(r"update (\d+)", view.get_attribute("alt") or "") if view.count() else []
    return min(map(int, found), default=0)


def workers() -> list[psutil.Process]:
    """Return the workers that run now, in the order of their ranks."""
    programs = [
        one for one in psutil.process_iter(["cmdline"]) if "cifar_base.py" in " ".join(one.info["cmdline"] or [])
    ]
    found = {rank: one for one in programs if (rank := one.environ().get("HOROVOD_RANK"))}
    return [found[rank] for rank in sorted(found)]
