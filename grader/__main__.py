"""The grader's command line: `python -m grader check PATH`, `batch FOLDER`, `build` and others; see --help.

A command imports what it needs when it runs: PyTorch, matplotlib and nbgrader take a second or two each.
"""

import argparse
import signal
import sys
from pathlib import Path

from rich.console import Console

from cifar.cli import OneLineParser
from grader import cli


def main(arguments: list[str] | None = None) -> int:
    """Run one command; its exit status. 2: it could not begin; 130: interrupted."""
    args = parse(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that runs are ended, as on Ctrl-C
    try:
        return args.run(args, Console())
    except KeyboardInterrupt:
        print("grader: interrupted; the same command goes on where this one was", file=sys.stderr)
        return 130


def _check(args: argparse.Namespace, console: Console) -> int:
    """Exit status: 0 for a pass, 1 for a run that was graded and did not pass, 2 for one that could not be launched."""
    from grader.check import CheckOptions, check
    from grader.common import contract
    from grader.common.errors import GraderError
    from grader.grading.grade import shown_by_a_pass
    from grader.report import terminal
    from grader.sandbox.bubblewrap import Bubblewrap
    from grader.sandbox.run_paths import RunPaths
    from grader.sandbox.unsandboxed import Unsandboxed

    isolation, profile = Unsandboxed if args.trusted else Bubblewrap, contract.load(args.profile)
    options = CheckOptions(profile=profile, key=args.key, seed=args.seed, isolation=isolation)
    try:
        report = check(args.path, args.output.resolve(), options, console)
    except GraderError as error:
        print(f"grader: {error}", file=sys.stderr)
        return 2
    except FileExistsError as error:
        print(f"grader: {error}; name another folder with --output", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("grader: interrupted; the run was ended, nothing was graded", file=sys.stderr)
        return 130
    terminal.show(report, console)
    console.print(f"report: {args.output / 'report.html'}", highlight=False, soft_wrap=True)
    if report.passed:
        from grader.certificates import picture  # it takes a second to import, and few runs need it

        preview = RunPaths(args.output).preview
        picture.preview(shown_by_a_pass(profile, report.points), preview)  # a learner's own check cannot sign one
        console.print(f"certificate, a preview that nobody has signed: {preview}", highlight=False, soft_wrap=True)
    return 0 if report.passed else 1


def _batch(args: argparse.Namespace, console: Console) -> int:
    from grader.batch import grade_batch

    return grade_batch.run(args, console)


def _machine(args: argparse.Namespace, console: Console) -> int:
    """Exit status: 0 when the scheduler has ended, 2 if it does not answer."""
    from grader.batch import dask_cluster

    console.print(f"offering slots to {args.address} until it ends", highlight=False)
    try:
        dask_cluster.join(args.address)
    except dask_cluster.SlotError as error:
        print(f"grader: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


def _build(args: argparse.Namespace, console: Console) -> int:
    from grader.notebooks import build

    return build.run(args, console)


def _handout(args: argparse.Namespace, console: Console) -> int:
    from grader.notebooks import handout

    return handout.run(args, console)


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line; what `run` it sets does the work."""
    parser = OneLineParser(
        prog="grader", description="Grade programs and classes, build the notebooks, certify.", allow_abbrev=False
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_check(commands)
    _add_batch(commands)
    about = "offer this machine to a batch with --scheduler (started with `dask scheduler`)"
    command = commands.add_parser("machine", help=about, description=about, allow_abbrev=False)
    command.add_argument("address", metavar="ADDRESS", help="the scheduler's, like tcp://10.0.0.1:8786")
    command.set_defaults(run=_machine)
    about = "make the learners' notebooks from the lessons' texts in solutions/"
    command = commands.add_parser("build", help=about, description=about, allow_abbrev=False)
    command.add_argument("--check", action="store_true", help="write nothing; exit status 1 if a notebook is stale")
    command.set_defaults(run=_build)
    about = "copy to a new folder what a learner's machine gets: no solutions, no hidden probes"
    command = commands.add_parser("handout", help=about, description=about, allow_abbrev=False)
    command.add_argument("target", type=Path, metavar="FOLDER", help="a new folder")
    command.set_defaults(run=_handout)
    cli.add_commands(commands)
    return parser.parse_args(arguments)


def _add_check(commands: argparse._SubParsersAction) -> None:
    about = "launch a submission, watch it, grade it; exit status 0 only on a pass"
    command = commands.add_parser("check", help=about, description=about, allow_abbrev=False)
    command.set_defaults(run=_check)
    add = command.add_argument
    add("path", type=Path, metavar="PATH", help="folder or archive with the submission's train.py, or that file")
    add("--output", type=Path, default=Path("runs/check"), metavar="DIR", help="for the report (default: %(default)s)")
    add("--profile", choices=cli.PROFILES, default="full", help="size of the run (default: %(default)s)")
    add("--key", default="public", help="any text: re-keys classes, colours and test images (default: %(default)s)")
    add("--seed", type=int, default=0, help="the seed handed to the submission (default: %(default)s)")
    add("--trusted", action="store_true", help="run it as yourself, isolated from nothing: for your own code only")


def _add_batch(commands: argparse._SubParsersAction) -> None:
    about = "grade a class: every entry of a folder; goes on where it was interrupted"
    command = commands.add_parser("batch", help=about, description=about, allow_abbrev=False)
    command.set_defaults(run=_batch)
    add = command.add_argument
    add("path", type=Path, metavar="FOLDER", help="its entries, folders or archives, are the submissions")
    add("--output", type=Path, required=True, metavar="DIR", help="for the reports, the results and the journal")
    add("--profile", choices=cli.PROFILES, default="full", help="size of the runs (default: %(default)s)")
    add("--key", help="any text: re-keys classes, colours and test images (default: drawn at random, once)")
    add("--seed", type=int, default=0, help="the seed handed to the submissions (default: %(default)s)")
    add("--scheduler", metavar="ADDRESS", help="grade on the machines of this Dask cluster (default: on this one)")
    add("--trusted", action="store_true", help="run them as yourself, isolated from nothing: for your own code only")


if __name__ == "__main__":
    sys.exit(main())
