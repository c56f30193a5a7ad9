"""`python -m grader verify FILE` looks at a certificate: with the issuers' keys, and nothing else of the course."""

import argparse
import sys

from rich.console import Console

from grader.certificates import credential, issuer
from grader.common.text import one_line

STATES = {"valid": 0, "tampered": 1, "expired": 3, "unknown issuer": 4, "no certificate": 5}  # exit status


def run(args: argparse.Namespace, console: Console) -> int:
    """Exit status: 0 valid, 1 tampered, 3 expired, 4 unknown issuer, 5 no certificate; 2 if it cannot be looked at."""
    if not args.file.is_file():
        print(f"grader: {args.file} is no file", file=sys.stderr)
        return 2
    try:
        own = issuer.home() / issuer.ISSUERS
        issuers = issuer.known([*args.issuer, *([own] if own.is_dir() else [])])
    except issuer.IssuerError as error:
        print(f"grader: {error}", file=sys.stderr)
        return 2
    found = credential.verify(credential.token_of(args.file), issuers)
    console.print(f"{found.state}: {one_line(found.reason)}", highlight=False, soft_wrap=True, markup=False)
    if award := found.award:
        until = f", until {award.until:%Y-%m-%d}" if award.until else ""
        text = f"{award.name} ({award.student}), {award.course}: {award.grade}, {award.since:%Y-%m-%d}{until}"
        console.print(one_line(text), highlight=False, soft_wrap=True, markup=False)
    return STATES[found.state]
