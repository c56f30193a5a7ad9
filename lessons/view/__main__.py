"""Watch a run in a terminal: a table with a row for each worker, which moves while the run goes on.

python -m lessons.view horovodrun -np 4 python source_code/cifar_base.py --epochs 2
"""

import argparse
import sys

from rich.console import Console

from cifar.cli import OneLineParser
from cifar.support import lane
from cifar.support.horovodrun import named, running
from lessons.view import watch


def main() -> int:
    """Run the command, and return its exit status."""
    parser = OneLineParser(prog="python -m lessons.view", description=__doc__.partition("\n")[0])
    parser.add_argument("command", nargs=argparse.REMAINDER, help="the command that starts the run, with its options")
    command = parser.parse_args().command
    if not command:
        parser.error("name the command that starts the run, like horovodrun -np 4 python source_code/cifar_base.py")
    workers, epochs = _number(command, "-np", 1), _number(command, "--epochs", 12)
    console = Console()
    with watch.in_terminal(workers, epochs, console) as run, running(command, workers, _variables(run)) as process:
        for text in process.stdout:
            console.print(named(text.rstrip()), markup=False, highlight=False)
            run.heard(text)
    return process.returncode


def _variables(run: watch.Run) -> dict[str, str]:
    return {lane.FOLDER: str(run.folder)}


def _number(command: list[str], option: str, default: int) -> int:
    """Return the number that follows an option in a command."""
    place = command.index(option) if option in command else len(command)
    given = command[place + 1 : place + 2]
    return int(given[0]) if given and given[0].isdigit() else default


if __name__ == "__main__":
    sys.exit(main())
