"""Refuses a name that a task does not know."""

from collections.abc import Collection


def refuse_unknown(kind: str, name: str, known: Collection[str]) -> None:
    """Raise ValueError, with the names that there are, if `name` is none of them. `kind` says what is named."""
    if name not in known:
        raise ValueError(f"there is no {kind} {name!r}; choose one of {', '.join(map(repr, known))}")
