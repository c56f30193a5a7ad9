"""The notebooks use this package for live runs with real workers and for figures in one style.

    from lessons import horovodrun, show

`python -m lessons` executes all lessons. Names are imported when they are first used, so a notebook that only draws
does not wait for the other imports.
"""

import importlib

_HOMES = {
    "RunError": "cells.running", "horovodrun": "cells.running", "torchrun": "cells.torchrun",
    "live": "cells.claims", "saved": "cells.claims",
    "on_two_hosts": "cells.hosts", "show_case": "cells.case",
    "all_guesses": "cells.guesses", "compare": "cells.guesses",
    "explore": "explorables",
    "axes": "cells.figures", "panels": "cells.figures", "show": "cells.figures",
}  # fmt: skip
__all__ = list(_HOMES)


def __getattr__(name: str):
    """Return the object called `name` from its module. Raises AttributeError if there is no such object."""
    if name not in _HOMES:
        raise AttributeError(f"module 'lessons' has no attribute {name!r}; it has {', '.join(__all__)}")
    return getattr(importlib.import_module(f"lessons.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
