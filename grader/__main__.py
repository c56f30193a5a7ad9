"""The grader's command line: `python -m grader check PATH`, `batch FOLDER`, `build` and others; see --help."""

import signal
import sys

from rich.console import Console

from grader.cli import parse


def main(arguments: list[str] | None = None) -> int:
    """Run one command; its exit status. 2: it could not begin; 130: interrupted."""
    args = parse(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that runs are ended, as on Ctrl-C
    try:
        return args.run(args, Console())
    except KeyboardInterrupt:
        print("grader: interrupted; the same command goes on where this one was", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
