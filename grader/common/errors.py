"""What the user of a command can do something about."""


class GraderError(Exception):
    """A command cannot go on. The message is one line that says what is wrong and what to do."""
