"""Shows a run while it goes on: as a picture that moves in a notebook, and as a table in a terminal."""

import base64
import contextlib
import html
import itertools
import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from IPython import get_ipython
from IPython.display import HTML, display
from rich.console import Console
from rich.live import Live
from rich.table import Table

from lessons.view import picture
from lessons.view.run import Run

SECONDS, LOOKS = 0.5, 5  # between two pictures, and how often the workers are looked at meanwhile
NICE = 10  # the view has this priority: it waits if the workers need all cores, so that it does not slow them down


def in_notebook() -> bool:
    """Whether this program is the kernel of a notebook."""
    return hasattr(get_ipython(), "kernel")


@contextlib.contextmanager
def in_cell(workers: int, epochs: int) -> Iterator[Run]:
    """Show a run below the cell. When the run has ended, its last state remains as a picture."""
    shown = display(HTML(""), display_id=True)

    def show(run: Run) -> None:
        content = base64.b64encode(picture.draw(run).encode()).decode()
        alt = html.escape(picture.describe(run))
        shown.update(HTML(f'<img src="data:image/svg+xml;base64,{content}" alt="{alt}" style="max-width: 100%">'))

    with _looking(workers, epochs, show) as run:
        yield run


@contextlib.contextmanager
def in_terminal(workers: int, epochs: int, console: Console) -> Iterator[Run]:
    """Show a run as a table that moves. Lines that are printed meanwhile appear above it."""
    with Live(console=console, auto_refresh=False) as live:

        def show(run: Run) -> None:
            live.update(table(run), refresh=True)

        with _looking(workers, epochs, show) as run:
            yield run


def table(run: Run) -> Table:
    """The run as a table: a row for each worker."""
    made = Table("worker", "update", "does", "loss", "last line", caption=picture.summary(run))
    for worker in run.workers:
        loss = "" if worker.loss != worker.loss else f"{worker.loss:.2f}"
        last = worker.last_line if worker in run.lost else ""
        made.add_row(str(worker.rank), str(worker.updates), picture.words(worker), loss, last)
    return made


@contextlib.contextmanager
def _looking(workers: int, epochs: int, show: Callable[[Run], None]) -> Iterator[Run]:
    """Show what the workers do twice a second, until the context ends.

    They are looked at more often. So the first worker to end is known, although the others end soon after it.
    """
    with tempfile.TemporaryDirectory(prefix="lanes-") as folder:
        run, ended = Run(Path(folder), workers, epochs), threading.Event()

        def look() -> None:
            with contextlib.suppress(OSError):  # An ordinary user may not raise a priority that is lower already.
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)  # for this thread alone, on Linux
            for number in itertools.count(1):
                if ended.wait(SECONDS / LOOKS):
                    return
                run.look()
                if number % LOOKS == 0:
                    show(run)

        thread = threading.Thread(target=look, daemon=True)
        thread.start()
        try:
            yield run
        finally:
            ended.set()
            thread.join()
            run.look()
            run.over = True
            show(run)
