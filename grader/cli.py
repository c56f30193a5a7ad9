"""The commands of `python -m grader` and their options.

What a command does is imported when it runs: PyTorch, matplotlib and nbgrader take a second or two each.
"""

import argparse
import importlib
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from cifar.cli import OneLineParser, positive

COURSE = Path("grader") / "work"
PROFILES = ("full", "fast")


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line. The function `run` that it holds does the work."""
    about = "Grade programs and classes, build the notebooks, certify."
    parser = OneLineParser(prog="grader", description=about, allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _check(commands)
    _batch(commands)
    _join(commands)
    _build(commands)
    _handout(commands)
    _release(commands)
    _autograde(commands)
    _feedback(commands)
    _export(commands)
    _create_key(commands)
    _certify(commands)
    _verify(commands)
    return parser.parse_args(arguments)


def _check(commands: argparse._SubParsersAction) -> None:
    about = "launch a submission, watch it, grade it; exit status 0 only on a pass"
    add = _command(commands, "check", about, "commands:check").add_argument
    add("path", type=Path, metavar="PATH", help="folder or archive with the submission's train.py, or that file")
    add("--output", type=Path, default=Path("runs/check"), metavar="DIR", help="for the report (default: %(default)s)")
    add("--profile", choices=PROFILES, default="full", help="size of the run (default: %(default)s)")
    add("--key", default="public", help="any text: re-keys classes, colours and test images (default: %(default)s)")
    add("--seed", type=int, default=0, help="the seed handed to the submission (default: %(default)s)")
    add("--no-sandbox", action="store_true", help="run it as yourself, isolated from nothing: for your own code only")


def _batch(commands: argparse._SubParsersAction) -> None:
    about = "grade a class: every entry of a folder; goes on where it was interrupted"
    add = _command(commands, "batch", about, "batch.grade_batch:run").add_argument
    add("path", type=Path, metavar="FOLDER", help="its entries, folders or archives, are the submissions")
    add("--output", type=Path, required=True, metavar="DIR", help="for the reports, the results and the journal")
    add("--profile", choices=PROFILES, default="full", help="size of the runs (default: %(default)s)")
    add("--key", help="any text: re-keys classes, colours and test images (default: drawn at random, once)")
    add("--seed", type=int, default=0, help="the seed handed to the submissions (default: %(default)s)")
    add("--scheduler", metavar="ADDRESS", help="grade on the machines of this Dask cluster (default: on this one)")
    add("--no-sandbox", action="store_true", help="run them as yourself, isolated from nothing: for your own code only")


def _join(commands: argparse._SubParsersAction) -> None:
    about = "offer this machine to a batch with --scheduler (started with `dask scheduler`)"
    add = _command(commands, "join", about, "commands:join").add_argument
    add("address", metavar="ADDRESS", help="the scheduler's, like tcp://10.0.0.1:8786")


def _build(commands: argparse._SubParsersAction) -> None:
    about = "make the learners' notebooks from the lessons' texts in solutions/"
    add = _command(commands, "build", about, "notebooks.build:run").add_argument
    add("--check", action="store_true", help="write nothing; exit status 1 if a notebook is stale")


def _handout(commands: argparse._SubParsersAction) -> None:
    about = "copy to a new folder what a learner's machine gets: no solutions, no hidden probes"
    add = _command(commands, "handout", about, "notebooks.handout:run").add_argument
    add("target", type=Path, metavar="FOLDER", help="a new folder")


def _release(commands: argparse._SubParsersAction) -> None:
    about = "make nbgrader's assignments from the lessons, and release them"
    _for_course(_command(commands, "release", about, "classroom.publishing.release:run"))


def _autograde(commands: argparse._SubParsersAction) -> None:
    about = "grade what students handed in, into nbgrader's gradebook; goes on where it was interrupted"
    command = _command(commands, "autograde", about, "classroom.grading.autograde:run")
    _for_course(command)
    add = command.add_argument
    add("--from", dest="source", type=Path, metavar="PATH", help="first take submissions from this folder or archive")
    add("--student", help="only this one (default: all)")
    add("--assignment", help="only this one, like 04_horovod (default: all)")
    add("--profile", choices=PROFILES, default="full", help="size of the four-worker runs (default: %(default)s)")
    add("--force", action="store_true", help="grade again what has not changed; manual points stay")
    add("--scheduler", metavar="ADDRESS", help="run the four-worker programs on this Dask cluster (default: here)")


def _feedback(commands: argparse._SubParsersAction) -> None:
    about = "make a page a submission with nbgrader, and release it"
    _for_course(_command(commands, "feedback", about, "classroom.publishing.feedback:run"))


def _export(commands: argparse._SubParsersAction) -> None:
    about = "write the table for an LMS and the class's summary"
    _for_course(_command(commands, "export", about, "classroom.publishing.export:run"))


def _create_key(commands: argparse._SubParsersAction) -> None:
    about = "make the key that signs certificates"
    add = _command(commands, "create-key", about, "certificates.issuer:run").add_argument
    add("--name", required=True, help="who issues the certificates, as they will say")
    add("--rotate", action="store_true", help="sign with a new key from now on; the old one stays known")


def _certify(commands: argparse._SubParsersAction) -> None:
    about = "sign certificates for all who passed"
    command = _command(commands, "certify", about, "classroom.publishing.certify:run")
    _for_course(command)
    add = command.add_argument
    add("--profile", choices=PROFILES, default="full", help="runs of this size count (default: %(default)s)")
    add("--years", type=positive, metavar="N", help="how long they hold (default: for ever)")


def _verify(commands: argparse._SubParsersAction) -> None:
    about = "say whether a certificate is valid, tampered, expired or of an unknown issuer; needs no network"
    add = _command(commands, "verify", about, "certificates.verify:run").add_argument
    add("file", type=Path, metavar="FILE", help="the certificate's picture, or its .jwt")
    about = "a public key, or a folder of them, to know beside your own"
    add("--issuer", type=Path, nargs="+", default=[], metavar="PATH", help=about)


def _command(
    commands: argparse._SubParsersAction, name: str, about: str, function: str
) -> argparse.ArgumentParser:  # fmt: skip
    """Add a command. `function` is imported from the grader when the command runs, like `notebooks.build:run`."""
    command = commands.add_parser(name, help=about, description=about, allow_abbrev=False)
    command.set_defaults(run=_later(function))
    return command


def _for_course(command: argparse.ArgumentParser) -> None:
    about = "the course's folder (default: %(default)s)"
    command.add_argument("--course", type=Path, default=COURSE, metavar="DIR", help=about)


def _later(function: str) -> Callable[[argparse.Namespace, Console], int]:
    module, _, name = function.partition(":")
    return lambda args, console: getattr(importlib.import_module(f"grader.{module}"), name)(args, console)
