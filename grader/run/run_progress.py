"""Shows how far a run is: by a bar in a terminal, and elsewhere by one line from time to time."""

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from grader.common.contract import Profile

LINE_SECONDS = 20  # the time between two lines where there is no terminal: a log stays short
STARTING = "starting four workers"


class RunProgress:
    """The progress of one run, to be used in a `with` statement."""

    def __init__(self, profile: Profile, console: Console):
        self.console, self.updates, self.last_line = console, profile.updates(), 0.0
        columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn()
        self.bar = Progress(*columns, console=console, transient=True)
        self.task = self.bar.add_task(STARTING, total=self.updates)

    def __enter__(self) -> "RunProgress":
        if self.console.is_terminal:
            self.bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.bar.stop()

    def show(self, updates: int, seconds: float) -> None:
        """Show that each worker has made at least `updates` updates, `seconds` after the start."""
        text = f"training: update {updates} of {self.updates}" if updates else STARTING
        self.bar.update(self.task, completed=updates, description=text)
        if not self.console.is_terminal and seconds - self.last_line >= LINE_SECONDS:
            self.last_line = seconds
            self.console.print(f"{text}, {seconds:.0f} s", highlight=False)
