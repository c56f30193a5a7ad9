"""Executes all lessons, solved, and makes pages of them: `python -m lessons --profile quick`."""

import argparse
import shlex
import signal
import sys
from pathlib import Path

from benchmarks.claims import table
from cifar.cli import OneLineParser
from grader.notebooks import build
from lessons import execute, profile
from lessons.site import pages


def main(arguments: list[str] | None = None) -> int:
    """Execute the lessons and write their pages.

    The exit status is 0 if all were executed, 1 if a cell failed, 2 if a lesson cannot be read, and 130 after an
    interrupt. If one lesson fails, the others are executed all the same, and their pages are written.
    """
    args = _parse(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # SIGTERM also ends the workers, like Ctrl-C does.
    folder = args.output or Path("runs") / args.profile
    try:
        failures = _execute(_chosen(args.only), folder, args)
        index = pages.write(build.lessons(build.SOLUTIONS), folder, args.profile, table.rows())
    except build.LessonError as error:
        return _say(str(error), 2)
    except KeyboardInterrupt:
        return _say("interrupted; what is executed is kept, the same command goes on", 130)
    print(f"pages: {index}", flush=True)
    if failures:
        numbers = " ".join(error.lesson[:2] for error in failures)
        return _say(f"{len(failures)} failed. To repeat: {_repeat(args, numbers)}", 1)
    return 0


def _execute(sources: list[Path], folder: Path, args: argparse.Namespace) -> list[execute.CellError]:
    """Execute one lesson after another, and print one line per lesson. Return the errors."""
    failures = []
    for at, source in enumerate(sources, 1):
        try:
            done = execute.execute(source, profile.parameters(args.profile), folder, args.rerun)
            said = "as executed before" if done.kept else f"{done.seconds:.0f} s"
        except execute.CellError as error:
            failures.append(error)
            said = "failed"
            _say(str(error), 1)
        print(f"{at}/{len(sources)}  {source.stem}  {said}", flush=True)
    return failures


def _chosen(only: list[str]) -> list[Path]:
    """Return the lessons with these numbers, or all if there are no numbers.

    Raises LessonError for a number without a lesson.
    """
    sources = build.lessons(build.SOLUTIONS)
    if missing := set(only) - {source.name[:2] for source in sources}:
        raise build.LessonError(f"there is no lesson {', '.join(sorted(missing))} in solutions/")
    return [source for source in sources if not only or source.name[:2] in only]


def _repeat(args: argparse.Namespace, numbers: str) -> str:
    output = f" --output {shlex.quote(str(args.output))}" if args.output else ""
    return f"python -m lessons --profile {args.profile} --only {numbers}{output}"


def _say(message: str, status: int) -> int:
    print(f"lessons: {message}", file=sys.stderr)
    return status


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = OneLineParser(prog="lessons", description=__doc__, allow_abbrev=False)
    add = parser.add_argument
    add("--profile", choices=profile.PROFILES, default="quick", help="size of the runs (default: %(default)s)")
    add("--only", nargs="+", default=[], metavar="NN", help="numbers of the lessons to execute (default: all)")
    add("--output", type=Path, metavar="DIR", help="for notebooks and pages (default: runs/<profile>)")
    add("--rerun", action="store_true", help="execute also what was executed before as it is now")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
