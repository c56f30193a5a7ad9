"""Measure: `python -m benchmarks calibrate`, `python -m benchmarks overhead`."""

import argparse
import signal
import sys

from rich.console import Console

from benchmarks import calibrate, overhead
from cifar.cli import OneLineParser, positive
from grader import profile


def main() -> int:
    """Exit status 0 if what was measured is as the course says."""
    args = _parse()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that the run in progress is ended, as on Ctrl-C
    console = Console()
    try:
        return 0 if COMMANDS[args.command](args, console) else 1
    except KeyboardInterrupt:
        print("benchmarks: interrupted; what is done is kept, the same command goes on", file=sys.stderr)
        return 130


def _calibrate(args: argparse.Namespace, console: Console) -> bool:
    settings = profile.load(args.profile)
    if not args.show:
        calibrate.run(settings, args.seeds, console)
    return calibrate.show(settings, console)


def _overhead(args: argparse.Namespace, console: Console) -> bool:
    if not args.show:
        overhead.run(args.pairs, console)
    return overhead.show(console)


COMMANDS = {"calibrate": _calibrate, "overhead": _overhead}


def _parse() -> argparse.Namespace:
    parser = OneLineParser(prog="benchmarks", description="Measure what the course claims.", allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    about = "grade the reference and the naive conversion over many seeds, and see whether the target tells them apart"
    add = commands.add_parser("calibrate", help=about, description=about).add_argument
    add("--profile", choices=("full", "fast"), default="full", help="size of the runs (default: %(default)s)")
    add("--seeds", type=positive, default=10, metavar="N", help="runs of each arm (default: %(default)s)")
    add("--show", action="store_true", help="only show what has been measured")
    about = "run the reference bare and graded, in pairs, and compare their times and weights"
    add = commands.add_parser("overhead", help=about, description=about).add_argument
    add("--pairs", type=positive, default=3, metavar="N", help="pairs of runs (default: %(default)s)")
    add("--show", action="store_true", help="only show what has been measured")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
