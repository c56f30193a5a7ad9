"""The notebooks use this package for live runs with real workers and for figures in one style.

    from lessons import horovodrun, show

`python -m lessons` executes all lessons. Names are imported when they are first used, so a notebook that only draws
does not wait for the other imports.
"""

import importlib

_HOMES = {
    "RunError": "cells.launches.running", "horovodrun": "cells.launches.running", "torchrun": "cells.launches.torchrun",
    "live": "cells.display.claims", "saved": "cells.display.claims",
    "on_two_hosts": "cells.launches.hosts", "show_case": "cells.plots.case", "show_solution": "cells.plots.case",
    "accuse": "cells.tasks.guesses", "all_guesses": "cells.tasks.guesses",
    "compare": "cells.tasks.guesses", "verdict": "cells.tasks.guesses",
    "explore": "explorables",
    "axes": "cells.display.figures", "panels": "cells.display.figures", "show": "cells.display.figures",
}  # fmt: skip
__all__ = list(_HOMES)


def __getattr__(name: str):
    """Return the object called `name` from its module. Raises AttributeError if there is no such object."""
    if name not in _HOMES:
        raise AttributeError(f"module 'lessons' has no attribute {name!r}; it has {', '.join(__all__)}")
    return getattr(importlib.import_module(f"lessons.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
