"""What a process needs before PyTorch is there: the cores it may use, and how it ends with one line."""

import os
import sys
import time
from pathlib import Path
from typing import NoReturn


def cores() -> int:
    """CPU cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def choose_cycles() -> None:
    """Set how often Horovod's background threads agree on what to exchange, unless the user has set it.

    They agree once per cycle, by default each millisecond, and workers that share cores lose computing time to that. So
    their cycle is longer. A cycle in which there is nothing to exchange is longer still: our patch of Horovod
    (`install/`) ends it as soon as there is something. The values are milliseconds, and `hvd.init()` reads them.
    """
    os.environ.setdefault("HOROVOD_IDLE_CYCLE_TIME", "100")
    if int(os.environ.get("HOROVOD_LOCAL_SIZE", 1)) > cores():
        os.environ.setdefault("HOROVOD_CYCLE_TIME", "5")


choose_cycles()  # on import, since every program of a learner imports this before it calls hvd.init()


def stop(message: str, program: str = "", status: int = 1) -> NoReturn:
    """End this worker with one line on stderr, said by the first worker of each machine, and an exit status.

    The others wait: the launcher ends all workers when the first one leaves, and the one that speaks must have spoken
    by then. Whoever is still there after that has a reason of its own, and says it.
    """
    if int(os.environ.get("HOROVOD_LOCAL_RANK", 0)) > 0:
        time.sleep(10)
    print(f"{program or Path(sys.argv[0]).name}: {message}", file=sys.stderr, flush=True)
    sys.exit(status)
