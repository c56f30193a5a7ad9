"""Notes which files of the output folder the program writes."""

import os

MAX_NAME_LENGTH = 80  # characters at the end of a file's path that are kept: a program may invent long ones


class OutputWatcher:
    """Collects the paths of files below `folder` that are opened for writing or renamed."""

    def __init__(self, folder: str):
        self.prefix = os.path.join(folder, "")
        self.names: list[str] = []

    def note_open(self, path: object, mode: object, flags: object) -> None:
        """Takes the arguments of Python's audit event `open`."""
        if isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR):
            self._note(path)

    def note_rename(self, source: object, target: object, *folders: object) -> None:
        """Takes the arguments of Python's audit event `os.rename`."""
        self._note(target)

    def _note(self, path: object) -> None:
        if isinstance(path, (str, bytes)) and (whole := os.path.abspath(os.fsdecode(path))).startswith(self.prefix):
            self.names.append(whole.removeprefix(self.prefix)[-MAX_NAME_LENGTH:])

    def take(self) -> list[str]:
        """The names since the last call."""
        names, self.names = self.names, []
        return names
