"""Measure: `python -m benchmarks calibrate`."""

import argparse
import signal
import sys

from rich.console import Console

from benchmarks import calibrate
from cifar.cli import OneLineParser, positive
from grader import profile


def main() -> int:
    """Exit status 0 if what was measured is as the course says."""
    args = _parse()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that the run in progress is ended, as on Ctrl-C
    console = Console()
    settings = profile.load(args.profile)
    try:
        if not args.show:
            calibrate.run(settings, args.seeds, console)
        return 0 if calibrate.show(settings, console) else 1
    except KeyboardInterrupt:
        print("benchmarks: interrupted; what is done is kept, the same command goes on", file=sys.stderr)
        return 130


def _parse() -> argparse.Namespace:
    parser = OneLineParser(prog="benchmarks", description="Measure what the course claims.", allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    about = "grade the reference and the naive conversion over many seeds, and see whether the target tells them apart"
    add = commands.add_parser("calibrate", help=about, description=about).add_argument
    add("--profile", choices=("full", "fast"), default="full", help="size of the runs (default: %(default)s)")
    add("--seeds", type=positive, default=10, metavar="N", help="runs of each arm (default: %(default)s)")
    add("--show", action="store_true", help="only show what has been measured")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
