"""Where one run keeps its things."""

import shutil
from dataclasses import dataclass
from pathlib import Path

HOOKS = Path(__file__).with_name("hooks")


@dataclass(frozen=True)
class Folders:
    """The folders of one run below `root`: its copy of the source, its data, what it writes, what was seen of it."""

    root: Path

    @property
    def source(self) -> Path:
        return self.root / "source"

    @property
    def data(self) -> Path:
        return self.root / "data"

    @property
    def output(self) -> Path:
        return self.root / "output"

    @property
    def observe(self) -> Path:
        return self.root / "observe"

    def lines(self, rank: int) -> Path:
        """What a worker's observer wrote, a line an update."""
        return self.observe / f"rank{rank}.jsonl"

    def stack(self, rank: int) -> Path:
        """Where a worker stood whenever it made no update for a while."""
        return self.observe / f"stack{rank}.jsonl"

    @property
    def timeline(self) -> Path:
        return self.observe / "timeline.json"

    @property
    def log(self) -> Path:
        return self.root / "output.log"

    @property
    def report(self) -> Path:
        return self.root / "report.json"

    @property
    def page(self) -> Path:
        return self.root / "report.html"

    @property
    def preview(self) -> Path:
        return self.root / "certificate-preview.png"

    def clear(self) -> None:
        """Remove what an earlier run left here, and nothing else: the folder is the caller's."""
        for folder in (self.source, self.data, self.output, self.observe):
            shutil.rmtree(folder, ignore_errors=True)
        for file in (self.log, self.report, self.page, self.preview):
            file.unlink(missing_ok=True)
