"""What a process needs before PyTorch is there: the cores it may use, and how it ends with one line."""

import os
import sys
import time
from pathlib import Path
from typing import NoReturn


def cores() -> int:
    """CPU cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


# Once in a cycle (1 ms) Horovod's background threads agree on what to exchange, and workers that share cores lose these
# to that. So a cycle is longer for them, and one in which there is nothing to exchange is far longer: that is our
# patch's (install/), it ends when there is something. Milliseconds; hvd.init() reads both, so they stand here, where
# every script passes before.
os.environ.setdefault("HOROVOD_IDLE_CYCLE_TIME", "100")
if int(os.environ.get("HOROVOD_LOCAL_SIZE", 1)) > cores():
    os.environ.setdefault("HOROVOD_CYCLE_TIME", "5")


def stop(message: str, program: str = "", status: int = 1) -> NoReturn:
    """End this worker with one line on stderr, said by the first worker of each machine, and an exit status.

    The others wait: the launcher ends all workers when the first one leaves, and the one that speaks must have spoken
    by then. Whoever is still there after that has a reason of its own, and says it.
    """
    if int(os.environ.get("HOROVOD_LOCAL_RANK", 0)) > 0:
        time.sleep(10)
    print(f"{program or Path(sys.argv[0]).name}: {message}", file=sys.stderr, flush=True)
    sys.exit(status)
