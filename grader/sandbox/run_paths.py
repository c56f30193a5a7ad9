"""Says where one run keeps its files."""

import shutil
from dataclasses import dataclass
from pathlib import Path

MARK = ".grader"  # a file of this name lies in each folder that a run has used
HOOKS = Path(__file__).parents[1] / "run" / "hooks"


@dataclass(frozen=True)
class RunPaths:
    """These are the folders and files of one run. They lie below `root`."""

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

    @property
    def challenges(self) -> Path:
        """Return the folder in which the grader asks the workers. A run can only read it."""
        return self.root / "challenges"

    @property
    def parts(self) -> tuple[Path, ...]:
        """The folders of the run are source, data, output, observe and challenges."""
        return self.source, self.data, self.output, self.observe, self.challenges

    def worker_log(self, rank: int) -> Path:
        """Return the file to which a worker's observer writes one line per update."""
        return self.observe / f"rank{rank}.jsonl"

    def stack(self, rank: int) -> Path:
        """Return the file that says which line a worker was executing whenever it made no update for a while."""
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
        """Remove what an earlier run left here. Other files stay, because the folder belongs to the caller.

        Raises FileExistsError if a file or folder has a name that a run uses, and no run has left it.
        """
        files = (self.log, self.report, self.page, self.preview)
        there = [path for path in (*self.parts, *files) if path.exists()]
        if there and not (self.root / MARK).exists():
            raise FileExistsError(f"{there[0]} is there, and no check has left it")
        for folder in self.parts:
            shutil.rmtree(folder, ignore_errors=True)
        for file in files:
            file.unlink(missing_ok=True)
        self.root.mkdir(parents=True, exist_ok=True)
        (self.root / MARK).touch()
