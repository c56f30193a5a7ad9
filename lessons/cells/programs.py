"""Launches programs that stand beside the notebook, by Horovod's launcher or by PyTorch's."""

import sys

from cifar.support.horovodrun import last_lines, named, running
from lessons.cells.running import SHOWN_LINES, RunError
from lessons.cells.torchrun import reason

COMMANDS = {  # the command as one types it
    "horovodrun": "horovodrun -np {workers} python {program}",
    "torchrun": "torchrun --standalone --nproc-per-node {workers} {program}",
}


def launch(launcher: str, program: str, workers: int = 2) -> list[str]:
    """Run a program by `horovodrun` or `torchrun`, and return the lines that it prints, in the order of the ranks.

    Only `horovodrun` tells the ranks. They stand at the beginning of the lines. Raises RunError with the program's last
    lines if it fails.
    """
    typed = COMMANDS[launcher].format(workers=workers, program=program)
    print("$", typed)
    torchrun = f"{sys.executable} -m torch.distributed.run"
    command = typed.replace(" python ", f" {sys.executable} ").replace("torchrun", torchrun).split()
    with running(command, workers, {"OMP_NUM_THREADS": "1"}) as process:
        lines = [line.rstrip() for line in process.stdout]
    if process.returncode != 0:
        last = "\n".join(reason(lines) if launcher == "torchrun" else map(named, last_lines(lines, SHOWN_LINES)))
        raise RunError(f"{program} failed with {workers} workers:\n{last}")
    return sorted(map(named, lines), key=lambda line: line.partition(" ")[0])
