"""A course folder: nbgrader's five directories, gradebook and configuration, and the key of the hidden test cases."""

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

from grader.classroom import policy
from grader.classroom.policy import Policy
from grader.common.errors import GraderError
from grader.common.private_file import once
from grader.common.text import one_line

warnings.filterwarnings("ignore", category=SAWarning)  # nbgrader's own use of its database warns at every submission

CONFIG = "nbgrader_config.py"
MAX_REASON = 300  # characters of nbgrader's reason in a message
ERROR = re.compile(r"[\w.]*(Error|Exception): ")  # begins the last line of a traceback


class CourseError(GraderError):
    """The course folder is not as it must be. The message is one line that says what to do."""


def check_api_result(result: dict, failed: str) -> None:
    """Raise CourseError if a call of nbgrader's API failed. The message is `failed` and nbgrader's reason.

    nbgrader catches a KeyboardInterrupt like any other failure. It is raised again here.
    """
    if result["success"]:
        return
    log = "\n".join(filter(None, (result.get("log"), result.get("error"))))
    lines = [line.strip() for line in log.splitlines() if line.strip()] or ["nbgrader does not say why"]
    if lines[-1] == "KeyboardInterrupt":  # in the last line only: elsewhere a student may have written it
        raise KeyboardInterrupt
    errors = [line for line in lines if ERROR.match(line) and "above traceback" not in line]
    raise CourseError(f"{failed}: {one_line((errors or lines)[-1], MAX_REASON)}")


@dataclass(frozen=True)
class Course:
    """The folder of one course. `source`, `release`, `submitted`, `autograded` and `feedback` in it are nbgrader's.

    `records` holds one record per graded submission. `harness` holds the reports of the four-worker runs.
    """

    root: Path

    def folder(self, step: str, student: str, assignment: str) -> Path:
        """Where nbgrader keeps a student's assignment at a step. `student` is "." at a step without students."""
        return self.root / step / student / assignment

    def record(self, student: str, assignment: str) -> Path:
        return self.root / "records" / student / f"{assignment}.json"

    @property
    def harness(self) -> Path:
        return self.root / "harness"

    def check(self) -> None:
        """Raise CourseError before the first release."""
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

    @cached_property
    def policy(self) -> Policy:
        """The rules of this course. Raises policy.PolicyError if an entry of its file is wrong.

        Raises CourseError if the late penalty is still in the configuration, where it was before there was a policy.
        """
        if (self.root / CONFIG).is_file() and self.config.PerDay.get("share"):
            raise CourseError(f"{CONFIG}: move c.PerDay.share to {policy.FILE}, as share_per_day below [late]")
        return policy.load(self.root, self.assignments)

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
        """Students and assignments of all graded submissions: they have a record, and are in the gradebook.

        Both are needed, because an instructor may remove a student from the gradebook, or restore an older one.
        """
        recorded = sorted((self.root / "records").glob("*/*.json"))
        with self.gradebook as gradebook:
            entered = {
                (submission.student_id, name)
                for name in self.assignments
                for submission in gradebook.assignment_submissions(name)
            }
        return [names for path in recorded if (names := (path.parent.name, path.stem)) in entered]

    @property
    def key(self) -> str:
        """The key that hidden test cases and secret test images are drawn with. Raises CourseError if there is none."""
        self.check_key()
        return self._key_file.read_text()

    def check_key(self) -> None:
        """Raise CourseError if the course has no key."""
        if not self._key_file.is_file():
            raise CourseError(f"{self._key_file} is missing: make release COURSE={self.root} creates a new one")

    def create_key(self) -> None:
        """Create the course's key, which only its owner can read. A key that exists stays."""
        once(self._key_file, lambda: secrets.token_hex(16).encode())

    @property
    def _key_file(self) -> Path:
        return self.root / "key"
