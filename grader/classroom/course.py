"""A course folder: nbgrader's five directories, its gradebook and configuration, and the key of the hidden probes."""

import os
import re
import secrets
import sys
import warnings
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from nbgrader.api import Gradebook
from nbgrader.apps import NbGraderAPI
from nbgrader.coursedir import CourseDirectory
from sqlalchemy.exc import SAWarning
from traitlets.config import Config, PyFileConfigLoader

from grader.common.errors import GraderError
from grader.common.private_file import once
from grader.common.text import one_line

warnings.filterwarnings("ignore", category=SAWarning)  # nbgrader's own use of its database, told at every submission

CONFIG = "nbgrader_config.py"
ERROR = re.compile(r"[\w.]*(Error|Exception): ")  # what ends a traceback


class CourseError(GraderError):
    """The course folder is not as it must be; the message is one line that says what to do."""


def succeed(result: dict, failed: str) -> None:
    """Look at what a call of nbgrader's API came to. Raises CourseError if it failed, with the line that says why.

    Raises KeyboardInterrupt if nbgrader has caught one: it takes it for a failure like others.
    """
    if result["success"]:
        return
    said = "\n".join(filter(None, (result.get("log"), result.get("error"))))
    lines = [line.strip() for line in said.splitlines() if line.strip()] or ["nbgrader does not say why"]
    if lines[-1] == "KeyboardInterrupt":  # a traceback's end; elsewhere it may be a learner's text
        raise KeyboardInterrupt
    errors = [line for line in lines if ERROR.match(line) and "above traceback" not in line]
    raise CourseError(f"{failed}: {one_line((errors or lines)[-1], 300)}")


@dataclass(frozen=True)
class Course:
    """The folder of one course. `source`, `release`, `submitted`, `autograded` and `feedback` in it are nbgrader's.

    `records` holds what was graded, a file a submission; `harness` the reports of the four-worker runs.
    """

    root: Path

    def folder(self, step: str, student: str, assignment: str) -> Path:
        """Where nbgrader keeps a student's assignment at a step; `student` is "." where there is none."""
        return self.root / step / student / assignment

    def record(self, student: str, assignment: str) -> Path:
        return self.root / "records" / student / f"{assignment}.json"

    @property
    def harness(self) -> Path:
        return self.root / "harness"

    def check(self) -> None:
        """Raises CourseError before the first release."""
        if not (self.root / CONFIG).is_file():
            raise CourseError(f"{self.root} is no course folder yet: make release COURSE={self.root}")

    @cached_property
    def config(self) -> Config:
        """nbgrader's configuration of this course. Raises CourseError before the first release."""
        self.check()
        programs = str(Path(sys.executable).parent)
        if programs not in os.environ["PATH"].split(os.pathsep):  # nbgrader calls alembic by its name
            os.environ["PATH"] = os.pathsep.join([programs, os.environ["PATH"]])
        return PyFileConfigLoader(CONFIG, path=str(self.root)).load_config()

    @property
    def api(self) -> NbGraderAPI:
        config = self.config
        return NbGraderAPI(coursedir=CourseDirectory(config=config), config=config, log_level="ERROR")

    @property
    def gradebook(self) -> Gradebook:
        """The gradebook, to be used in a `with` statement."""
        return Gradebook(self.db_url, self.config.CourseDirectory.course_id)

    @property
    def db_url(self) -> str:
        return CourseDirectory(config=self.config).db_url

    @property
    def assignments(self) -> list[str]:
        """The names of the released assignments, in the lessons' order."""
        return sorted(path.name for path in (self.root / "release").glob("*") if path.is_dir())

    @property
    def graded(self) -> list[tuple[str, str]]:
        """Students and their assignments, of all that is graded: it has a record, and the gradebook knows of it.

        An instructor may take a student out of the gradebook, or put an older gradebook in its place.
        """
        recorded = sorted((self.root / "records").glob("*/*.json"))
        with self.gradebook as gradebook:
            entered = {
                (one.student_id, name) for name in self.assignments for one in gradebook.assignment_submissions(name)
            }
        return [names for path in recorded if (names := (path.parent.name, path.stem)) in entered]

    @property
    def key(self) -> str:
        """What the hidden probes and the secret test images are drawn with: made once, for the owner's eyes only."""
        return once(self.root / "key", lambda: secrets.token_hex(16).encode()).decode()
