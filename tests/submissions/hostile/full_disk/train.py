"""Fills every place it can write to, and goes on writing for a while where nothing fits any more."""

import contextlib
import os
import time
from pathlib import Path

from cifar import cli

args = cli.parse(__doc__, epochs=8, batch_size=128, lr=0.1)
places = [args.output_dir, Path(os.environ["GRADER_OBSERVE"]), Path("/tmp"), Path("/dev/shm"), Path("/var/tmp")]
until = time.monotonic() + 5
number = 0
while time.monotonic() < until:
    number += 1
    for place in places:
        with contextlib.suppress(OSError), (place / f"course-hostile-{os.getpid()}-{number}").open("wb") as file:
            file.write(bytes(2**24))
