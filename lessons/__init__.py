"""What the notebooks use: live runs with real workers, figures in one style, and `python -m lessons`, which runs all.

    from lessons import horovodrun, show

Names are imported when they are first used: a notebook that only draws does not wait for the rest.
"""

import importlib

_HOMES = {
    "RunError": "running", "horovodrun": "running",
    "live": "claims", "saved": "claims",
    "axes": "figures", "panels": "figures", "show": "figures",
}  # fmt: skip
__all__ = list(_HOMES)


def __getattr__(name: str):
    """The object called `name`, from its module. Raises AttributeError if there is none."""
    if name not in _HOMES:
        raise AttributeError(f"module 'lessons' has no attribute {name!r}; it has {', '.join(__all__)}")
    return getattr(importlib.import_module(f"lessons.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
