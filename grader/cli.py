"""The options of each command of `python -m grader`. What a command does is in `commands` or `classroom.commands`.

Reading the command line imports neither PyTorch, matplotlib nor nbgrader, because each takes a second or two.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from cifar.cli import OneLineParser, positive
from grader import commands
from grader.classroom import commands as classroom_commands

COURSE = Path("grader") / "work"
PROFILES = ("full", "fast")
PLATFORMS = ("csv", "canvas", "moodle", "blackboard", "brightspace")  # that grades are exported for

Command = Callable[[argparse.Namespace, Console], int]  # returns the exit status


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line. In the result, `run` is the command and `if_interrupted` says what follows Ctrl-C."""
    about = "Grade programs and classes, build the notebooks, certify."
    parser = OneLineParser(prog="grader", description=about, allow_abbrev=False)
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _check(subparsers)
    _batch(subparsers)
    _join(subparsers)
    _create_tls(subparsers)
    _build(subparsers)
    _handout(subparsers)
    _release(subparsers)
    _autograde(subparsers)
    _feedback(subparsers)
    _export(subparsers)
    _similar(subparsers)
    _create_key(subparsers)
    _certify(subparsers)
    _verify(subparsers)
    return parser.parse_args(arguments)


def _check(subparsers: argparse._SubParsersAction) -> None:
    about = "launch a submission, watch it, grade it; exit status 0 only on a pass"
    command = _command(subparsers, "check", about, commands.check)
    command.set_defaults(if_interrupted=lambda args: "the run was ended, nothing was graded")
    add = command.add_argument
    add("path", type=Path, metavar="PATH", help="folder or archive with the submission's train.py, or that file")
    add("--output", type=Path, default=Path("runs/check"), metavar="DIR", help="for the report (default: %(default)s)")
    add("--profile", choices=PROFILES, default="full", help="size of the run (default: %(default)s)")
    add("--key", default="public", help="any text: re-keys classes, colours and test images (default: %(default)s)")
    add("--seed", type=int, default=0, help="the seed that the submission is given (default: %(default)s)")
    add("--data", type=Path, metavar="DIR", help="data of your own, from cifar.data.save (default: CIFAR-10)")
    add("--no-sandbox", action="store_true", help="run it as yourself, isolated from nothing: for your own code only")


def _batch(subparsers: argparse._SubParsersAction) -> None:
    about = "grade a class: every entry of a folder; goes on where it was interrupted"
    add = _command(subparsers, "batch", about, commands.batch).add_argument
    add("path", type=Path, metavar="FOLDER", help="its entries, folders or archives, are the submissions")
    add("--output", type=Path, required=True, metavar="DIR", help="for the reports, the results and the journal")
    add("--profile", choices=PROFILES, default="full", help="size of the runs (default: %(default)s)")
    add("--key", help="any text: re-keys classes, colours and test images (default: drawn at random, once)")
    add("--seed", type=int, default=0, help="the seed that the submissions are given (default: %(default)s)")
    add("--data", type=Path, metavar="DIR", help="data of your own, from cifar.data.save (default: CIFAR-10)")
    add("--scheduler", metavar="ADDRESS", help="grade on the machines of this Dask cluster (default: on this one)")
    add("--no-sandbox", action="store_true", help="run them as yourself, isolated from nothing: for your own code only")


def _join(subparsers: argparse._SubParsersAction) -> None:
    about = "offer this machine to a batch with --scheduler (started with `dask scheduler`)"
    command = _command(subparsers, "join", about, commands.join)
    command.set_defaults(if_interrupted=lambda args: "this machine is no longer offered")
    command.add_argument("address", metavar="ADDRESS", help="the scheduler's, like tls://10.0.0.1:8786")


def _create_tls(subparsers: argparse._SubParsersAction) -> None:
    about = "make the key and the settings with which the machines of a Dask cluster trust each other alone"
    add = _command(subparsers, "create-tls", about, commands.create_tls).add_argument
    add("folder", type=Path, metavar="FOLDER", help="a new folder; it must be at the same path on each machine")


def _build(subparsers: argparse._SubParsersAction) -> None:
    about = "make the learners' notebooks from the lessons' texts in solutions/"
    add = _command(subparsers, "build", about, commands.build).add_argument
    add("--check", action="store_true", help="write nothing; exit status 1 if a notebook is stale")


def _handout(subparsers: argparse._SubParsersAction) -> None:
    about = "copy to a new folder what a learner's machine gets: no solutions, no hidden test cases"
    add = _command(subparsers, "handout", about, commands.handout).add_argument
    add("target", type=Path, metavar="FOLDER", help="a new folder")
    about = "only the lessons that the policy of this course chooses (default: all)"
    add("--course", type=Path, metavar="DIR", help=about)


def _release(subparsers: argparse._SubParsersAction) -> None:
    about = "make nbgrader's assignments from the lessons, and release them"
    _for_course(_command(subparsers, "release", about, classroom_commands.release))


def _autograde(subparsers: argparse._SubParsersAction) -> None:
    about = "grade what students submitted, into nbgrader's gradebook; goes on where it was interrupted"
    command = _command(subparsers, "autograde", about, classroom_commands.autograde)
    command.set_defaults(if_interrupted=_autograde_goes_on)
    _for_course(command)
    add = command.add_argument
    add("--from", dest="source", type=Path, metavar="PATH", help="first take submissions from this folder or archive")
    add("--student", help="only this one (default: all)")
    add("--assignment", help="only this one, like 04_horovod (default: all)")
    add("--profile", choices=PROFILES, default="full", help="size of the four-worker runs (default: %(default)s)")
    add("--force", action="store_true", help="grade again what has not changed; manual points stay")
    add("--scheduler", metavar="ADDRESS", help="run the four-worker programs on this Dask cluster (default: here)")


def _feedback(subparsers: argparse._SubParsersAction) -> None:
    about = "make one page per submission with nbgrader, and release it"
    command = _command(subparsers, "feedback", about, classroom_commands.feedback)
    _for_course(command)
    about = (
        "also pack the pages for the platform that this download comes from, under the names that it gives its files"
    )
    command.add_argument("--from", dest="source", type=Path, metavar="PATH", help=about)


def _export(subparsers: argparse._SubParsersAction) -> None:
    about = "write the grades as a table, also into a learning platform's own one, and the class's summary"
    command = _command(subparsers, "export", about, classroom_commands.export)
    _for_course(command)
    add = command.add_argument
    about = "write the table that this platform imports; csv is a table for everybody (default: %(default)s)"
    add("--for", dest="platform", choices=PLATFORMS, default=PLATFORMS[0], help=about)
    add("--roster", type=Path, metavar="FILE", help="the table that you exported from the platform; it is filled in")
    add("--as", dest="unit", choices=("points", "percent"), default="points", help="(default: %(default)s)")
    add("--assignment", help="only this one, like 04_horovod (default: all)")


def _similar(subparsers: argparse._SubParsersAction) -> None:
    about = "show the pairs of programs and of answers that are most similar, side by side"
    command = _command(subparsers, "similar", about, classroom_commands.similar)
    _for_course(command)
    about = "course folders of earlier years, to compare with"
    command.add_argument("--old", type=Path, nargs="+", default=[], metavar="DIR", help=about)


def _create_key(subparsers: argparse._SubParsersAction) -> None:
    about = "make the key that signs certificates"
    add = _command(subparsers, "create-key", about, commands.create_key).add_argument
    add("--name", required=True, help="who issues the certificates, as they will say")
    add("--rotate", action="store_true", help="sign with a new key from now on; the old one stays known")


def _certify(subparsers: argparse._SubParsersAction) -> None:
    about = "sign certificates for all who passed"
    command = _command(subparsers, "certify", about, classroom_commands.certify)
    _for_course(command)
    add = command.add_argument
    add("--profile", choices=PROFILES, default="full", help="runs of this size count (default: %(default)s)")
    add("--years", type=positive, metavar="N", help="how many years they are valid (default: for ever)")


def _verify(subparsers: argparse._SubParsersAction) -> None:
    about = "say whether a certificate is valid, tampered, expired or of an unknown issuer; needs no network"
    add = _command(subparsers, "verify", about, commands.verify).add_argument
    add("file", type=Path, metavar="FILE", help="the certificate's picture, or its .jwt")
    about = "a public key, or a folder of them, to know beside your own"
    add("--issuer", type=Path, nargs="+", default=[], metavar="PATH", help=about)


def _command(subparsers: argparse._SubParsersAction, name: str, about: str, run: Command) -> argparse.ArgumentParser:
    command = subparsers.add_parser(name, help=about, description=about, allow_abbrev=False)
    command.set_defaults(run=run, if_interrupted=lambda args: "the same command goes on where this one was")
    return command


def _for_course(command: argparse.ArgumentParser) -> None:
    about = "the course's folder (default: %(default)s)"
    command.add_argument("--course", type=Path, default=COURSE, metavar="DIR", help=about)


def _autograde_goes_on(args: argparse.Namespace) -> str:
    command = "the same command without --force" if args.force else "the same command"
    return f"{command} goes on where this one was"
