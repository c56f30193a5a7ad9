"""The error of this package."""


class ClusterError(Exception):
    """A cluster cannot do what was asked. Each line of the message tells what is wrong, and what to do."""
