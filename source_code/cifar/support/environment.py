"""A process needs these functions before PyTorch is imported: they count cores, set up Horovod, and end a program."""

import os
import sys
import time
from pathlib import Path
from typing import NoReturn


def cores() -> int:
    """Return the number of CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def choose_cycles() -> None:
    """Set how often Horovod's background threads agree on what to exchange, unless the user has set it.

    They agree once per cycle, by default once per millisecond. Workers that share cores lose computing time to that, so
    their cycle is longer. A cycle in which there is nothing to exchange is longer still. Our patch of Horovod
    (`install/`) ends such a cycle as soon as there is something. The values are milliseconds, and `hvd.init()` reads
    them.
    """
    os.environ.setdefault("HOROVOD_IDLE_CYCLE_TIME", "100")
    if int(os.environ.get("HOROVOD_LOCAL_SIZE", 1)) > cores():
        os.environ.setdefault("HOROVOD_CYCLE_TIME", "5")


choose_cycles()  # This happens on import: every program that imports `cifar.workers` passes here before hvd.init().


def stop(message: str, program: str = "", status: int = 1) -> NoReturn:
    """End this worker with one line on stderr and an exit status.

    The first worker of each machine prints the line at once. The launcher ends all workers when the first one leaves,
    so the others wait for half a minute to let the first worker print. A worker that is still running after that has
    another problem than the first worker, and it prints its own line.
    """
    if int(os.environ.get("HOROVOD_LOCAL_RANK", 0)) > 0:
        time.sleep(30)
    print(f"{program or Path(sys.argv[0]).name}: {message}", file=sys.stderr, flush=True)
    sys.exit(status)
