"""The error that every command reports in one line."""


class GraderError(Exception):
    """A command cannot go on. The message is one line that says what is wrong and what to do."""
