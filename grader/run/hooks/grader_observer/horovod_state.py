"""Asks Horovod how many workers it connects, and switches its timeline on for a few updates."""

import contextlib
import sys

TIMELINE_ON, TIMELINE_OFF = 10, 13  # updates; the timeline costs time and space, and the first updates are slow


def horovod_size() -> int:
    """How many workers Horovod connects this one with; 1 if the program does not use it."""
    hvd = sys.modules.get("horovod.torch")
    return hvd.size() if hvd and hvd.is_initialized() else 1


def switch_timeline(folder: str, updates: int) -> None:
    """Start or stop the timeline after so many updates. All workers call this; rank 0 writes the file."""
    if updates not in (TIMELINE_ON, TIMELINE_OFF):
        return
    with contextlib.suppress(Exception):  # the program may use the timeline itself
        if horovod_size() == 1:
            return
        hvd = sys.modules["horovod.torch"]
        if updates == TIMELINE_ON:
            hvd.start_timeline(f"{folder}/timeline.json", mark_cycles=False)
        else:
            hvd.stop_timeline()
