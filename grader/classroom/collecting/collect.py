"""A safe form of nbgrader's collect, for an exchange in which students can write.

It collects only files that belong to the student, and follows no links. nbgrader's own collect copies what a link in a
submission points to, with the instructor's rights. It also collects the newest submission in a student's name, whoever
put it there.
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

MAX_BYTES = 2**26  # of a file, far more than is graded
MAX_DEPTH = 20  # of folders inside one another, far more than is graded
MAX_REASON = 300  # characters of an error's text
NEVER = datetime.min  # in UTC and without a time zone, like nbgrader's times


class RefusedError(Exception):
    """A submission is not collected. The message says why."""


class SafeCollect(ExchangeCollect):
    """Collects what is safe. Anything else is logged, and does not stop the collection of other submissions."""

    def do_copy(self, src: str, dest: str, log: object = None) -> None:
        """Copy a submission, or log why it is not collected."""
        source = Path(src)
        try:
            if reason := self._refusal(source):
                raise RefusedError(reason)
            self._copy(source, Path(dest), source.lstat().st_uid)
        except (OSError, RefusedError) as error:
            shutil.rmtree(dest, ignore_errors=True)
            self.log.error("not collected: %s: %s", quoted(source.name), one_line(str(error), MAX_REASON))

    def _path_to_record(self, path: str) -> dict:
        """Read a folder's name like nbgrader, for which a name of another form would end the whole collection."""
        try:
            return super()._path_to_record(path)
        except Exception:
            return {"username": "", "filename": Path(path).name, "timestamp": NEVER}

    def _sort_by_timestamp(self, records: list[dict]) -> list[dict]:
        """Put the newest first, and behind all others what somebody else has put there in a student's name."""
        inbound = Path(self.inbound_path)

        def order(submission: dict) -> tuple[bool, datetime]:
            return not self._refusal(inbound / submission["filename"]), submission["timestamp"]

        return sorted(records, key=order, reverse=True)

    def _refusal(self, source: Path) -> str:
        """Why a folder of the exchange cannot be a student's submission, or "" if it can."""
        student = source.name.rsplit("+", 3)[0]
        try:
            status = source.lstat()
        except OSError:
            return "it is gone"  # it was removed after it was listed
        if not stat.S_ISDIR(status.st_mode):
            return "it is no folder"
        if not STUDENT.fullmatch(student):
            return "it names no student"
        try:
            owner = pwd.getpwuid(status.st_uid).pw_name
        except KeyError:
            owner = "nobody known"
        if self.check_owner and owner != student:
            known = "where students' ids are no accounts, set c.ExchangeCollect.check_owner = False"
            return f"it belongs to {owner}, not to {student} ({known})"
        return ""

    def _copy(self, source: Path, target: Path, owner: int, depth: int = 0) -> None:
        """Copy the regular files below a folder that belong to `owner`.

        The owner is checked again for each file, because files can be replaced while they are copied.
        """
        if depth > MAX_DEPTH:
            raise RefusedError(f"it has folders in one another, more than {MAX_DEPTH} deep")
        target.mkdir(parents=True)
        for path in sorted(source.iterdir()):
            status = path.lstat()
            try:
                if stat.S_ISDIR(status.st_mode) and status.st_uid == owner:
                    self._copy(path, target / path.name, owner, depth + 1)
                else:
                    (target / path.name).write_bytes(untrusted.read(path, MAX_BYTES, owner=owner))
            except untrusted.UnreadableError as error:
                self.log.warning("left out of %s: %s", quoted(source.name), one_line(str(error), MAX_REASON))
