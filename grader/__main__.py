"""The grader's command line: `python -m grader check PATH`, `batch FOLDER`, `build` and others; see --help."""

import signal
import sys

from rich.console import Console

from grader.cli import parse
from grader.common.errors import GraderError


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit status: its own, 2 if it cannot go on, or 130 if it was interrupted."""
    args = parse(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # SIGTERM then ends the workers, as Ctrl-C does
    try:
        return args.run(args, Console())
    except GraderError as error:
        message, status = str(error), 2
    except KeyboardInterrupt:
        message, status = f"interrupted; {args.if_interrupted(args)}", 130
    print(f"grader: {message}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
