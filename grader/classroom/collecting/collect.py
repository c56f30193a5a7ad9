"""nbgrader's collect, for an exchange in which learners write: it takes files that are theirs, and follows no links.

nbgrader's own copies whatever a link in a submission points to, with the instructor's rights, and takes the newest
submission in a student's name, whoever put it there.
"""

import pwd
import shutil
import stat
from datetime import datetime
from pathlib import Path

from nbgrader.exchange.default.collect import ExchangeCollect

from grader.classroom.collecting.student_submission import STUDENT
from grader.common import untrusted
from grader.common.text import one_line, quoted

MAX_BYTES = 2**26  # of a file; far more than is graded
NEVER = datetime.min  # in UTC, as nbgrader's times are, and without saying so
DEEPEST = 20  # folders in one another


class RefusedError(Exception):
    """A submission that is not collected; the message says why."""


class SafeCollect(ExchangeCollect):
    """What cannot be taken is named and left; it keeps no other submission from being collected."""

    def do_copy(self, src: str, dest: str, log: object = None) -> None:
        """Copy a submission, or say why not."""
        source = Path(src)
        try:
            if wrong := self._wrong(source):
                raise RefusedError(wrong)
            self._copy(source, Path(dest), source.lstat().st_uid)
        except (OSError, RefusedError) as error:
            shutil.rmtree(dest, ignore_errors=True)
            self.log.error("not collected: %s: %s", quoted(source.name), one_line(str(error), 300))

    def _path_to_record(self, path: str) -> dict:
        """As nbgrader's; a name that is none of its own would end the collection for all."""
        try:
            return super()._path_to_record(path)
        except Exception:
            return {"username": "", "filename": Path(path).name, "timestamp": NEVER}

    def _sort_by_timestamp(self, records: list[dict]) -> list[dict]:
        """The newest first, behind it whatever somebody else put there in a student's name."""
        inbound = Path(self.inbound_path)
        return sorted(
            records, key=lambda one: (not self._wrong(inbound / one["filename"]), one["timestamp"]), reverse=True
        )

    def _wrong(self, source: Path) -> str:
        """Why a folder of the exchange cannot be a student's submission; empty if it can."""
        student = source.name.rsplit("+", 3)[0]
        try:
            found = source.lstat()
        except OSError:
            return "it is gone"  # since it was listed, which must not end the collection for all
        if not stat.S_ISDIR(found.st_mode):
            return "it is no folder"
        if not STUDENT.fullmatch(student):
            return "it names no student"
        try:
            owner = pwd.getpwuid(found.st_uid).pw_name
        except KeyError:
            owner = "nobody known"
        if self.check_owner and owner != student:
            known = "where students' ids are no accounts, set c.ExchangeCollect.check_owner = False"
            return f"it belongs to {owner}, not to {student} ({known})"
        return ""

    def _copy(self, source: Path, target: Path, owner: int, depth: int = 0) -> None:
        """The regular files below a folder that belong to `owner`; what is swapped meanwhile is somebody else's."""
        if depth > DEEPEST:
            raise RefusedError(f"it has folders in one another, more than {DEEPEST} deep")
        target.mkdir(parents=True)
        for path in sorted(source.iterdir()):
            found = path.lstat()
            try:
                if stat.S_ISDIR(found.st_mode) and found.st_uid == owner:
                    self._copy(path, target / path.name, owner, depth + 1)
                else:
                    (target / path.name).write_bytes(untrusted.read(path, MAX_BYTES, owner=owner))
            except untrusted.UnreadableError as error:
                self.log.warning("left out of %s: %s", quoted(source.name), one_line(str(error), 300))
