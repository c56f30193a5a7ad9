"""The instructor's commands and options. What they do is imported when one of them runs: nbgrader takes a second."""

import argparse
import importlib
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from cifar.cli import positive

COURSE = Path("grader") / "work"
PROFILES = ("full", "fast")


def add_commands(commands: argparse._SubParsersAction) -> None:
    """Add them to `python -m grader`."""
    _release(commands)
    _autograde(commands)
    _command(
        commands,
        "feedback",
        "make a page a submission with nbgrader, and release it",
        "classroom.publishing.feedback:run",
    )
    _command(
        commands, "export", "write the table for an LMS and the class's summary", "classroom.publishing.export:run"
    )
    _keys(commands)
    _certify(commands)
    _verify(commands)


def _release(commands: argparse._SubParsersAction) -> None:
    _command(
        commands,
        "release",
        "make nbgrader's assignments from the lessons, and release them",
        "classroom.publishing.release:run",
    )


def _autograde(commands: argparse._SubParsersAction) -> None:
    about = "grade what students handed in, into nbgrader's gradebook; goes on where it was interrupted"
    add = _command(commands, "autograde", about, "classroom.grading.autograde:run").add_argument
    add("--from", dest="source", type=Path, metavar="PATH", help="first take submissions from this folder or archive")
    add("--student", help="only this one (default: all)")
    add("--assignment", help="only this one, like 04_horovod (default: all)")
    add("--profile", choices=PROFILES, default="full", help="size of the four-worker runs (default: %(default)s)")
    add("--force", action="store_true", help="grade again what has not changed; manual points stay")
    add("--scheduler", metavar="ADDRESS", help="run the four-worker programs on this Dask cluster (default: here)")


def _keys(commands: argparse._SubParsersAction) -> None:
    add = _command(
        commands, "keys", "make the key that signs certificates", "certificates.issuer:run", course=False
    ).add_argument
    add("--name", required=True, help="who issues the certificates, as they will say")
    add("--rotate", action="store_true", help="sign with a new key from now on; the old one stays known")


def _certify(commands: argparse._SubParsersAction) -> None:
    add = _command(
        commands, "certify", "sign certificates for all who passed", "classroom.publishing.certify:run"
    ).add_argument
    add("--profile", choices=PROFILES, default="full", help="runs of this size count (default: %(default)s)")
    add("--years", type=positive, metavar="N", help="how long they hold (default: for ever)")


def _verify(commands: argparse._SubParsersAction) -> None:
    about = "say whether a certificate is valid, tampered, expired or of an unknown issuer; needs no network"
    add = _command(commands, "verify", about, "certificates.verify:run", course=False).add_argument
    add("file", type=Path, metavar="FILE", help="the certificate's picture, or its .jwt")
    about = "a public key, or a folder of them, to know beside your own"
    add("--issuer", type=Path, nargs="+", default=[], metavar="PATH", help=about)


def _command(
    commands: argparse._SubParsersAction, name: str, about: str, function: str, course: bool = True
) -> argparse.ArgumentParser:  # fmt: skip
    command = commands.add_parser(name, help=about, description=about, allow_abbrev=False)
    command.set_defaults(run=_later(function))
    if course:
        command.add_argument(
            "--course", type=Path, default=COURSE, metavar="DIR", help="the course's folder (default: %(default)s)"
        )
    return command


def _later(function: str) -> Callable[[argparse.Namespace, Console], int]:
    module, _, name = function.partition(":")
    return lambda args, console: getattr(importlib.import_module(f"grader.{module}"), name)(args, console)
