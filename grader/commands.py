"""The commands of `python -m grader` that are not for a class. `cli` describes their options.

Each command returns its exit status, and imports what it needs when it runs. `__main__` reports a GraderError.
"""

import argparse
import shlex
import sys

from rich.console import Console

from grader.common.errors import GraderError

VERIFY_STATUS = {"valid": 0, "tampered": 1, "expired": 3, "unknown issuer": 4, "no certificate": 5}


def check(args: argparse.Namespace, console: Console) -> int:
    """Grade one submission. Exit status: 0 for a pass, 1 if it was graded and did not pass."""
    from grader import check as checking
    from grader.common import contract
    from grader.report import terminal
    from grader.sandbox.bubblewrap import Bubblewrap
    from grader.sandbox.unsandboxed import Unsandboxed

    isolation, profile = Unsandboxed if args.no_sandbox else Bubblewrap, contract.load(args.profile)
    options = checking.CheckOptions(profile=profile, key=args.key, seed=args.seed, isolation=isolation, data=args.data)
    try:
        report = checking.check(args.path, args.output.resolve(), options, console)
    except FileExistsError as error:
        raise GraderError(f"{error}; name another folder with --output") from None
    terminal.show(report, console)
    _say(console, f"report: {args.output / 'report.html'}")
    if not report.passed:
        return 1
    _preview_certificate(args, report.points, console)
    return 0


def _preview_certificate(args: argparse.Namespace, points: float, console: Console) -> None:
    """Draw the certificate that a learner's own check cannot sign."""
    from grader.certificates import picture  # only a pass needs it, and it takes a second to import
    from grader.common import contract
    from grader.grading.grade import shown_by_a_pass
    from grader.sandbox.run_paths import RunPaths

    preview = RunPaths(args.output).preview
    picture.preview(shown_by_a_pass(contract.load(args.profile), points), preview)
    _say(console, f"certificate, a preview that nobody has signed: {preview}")


def batch(args: argparse.Namespace, console: Console) -> int:
    """Grade a class. Exit status: 0 if every entry has a result, passed or not; 1 if the grader failed on some."""
    from grader.batch.grade_batch import BatchOptions, grade_batch

    options = BatchOptions(
        submissions=args.path, output=args.output, profile=args.profile, key=args.key, seed=args.seed,
        scheduler=args.scheduler, sandbox=not args.no_sandbox, data=args.data,
    )  # fmt: skip
    return 1 if grade_batch(options, console).failures else 0


def join(args: argparse.Namespace, console: Console) -> int:
    """Offer this machine's slots to a scheduler. Exit status: 0 when the scheduler has been away for some minutes."""
    from grader.batch import dask_cluster

    _say(console, f"offering slots to {args.address}; Ctrl-C ends this")
    dask_cluster.join(args.address, lambda text: _say(console, text))
    return 0


def create_tls(args: argparse.Namespace, console: Console) -> int:
    """Make a key for the machines of a Dask cluster, and say what to type on them."""
    from grader.batch import tls

    tls.create(args.folder)
    with_it = f"DASK_CONFIG={shlex.quote(str(args.folder.absolute()))}"
    _say(console, f"key and settings: {args.folder}. Copy this folder to the same path on each machine.")
    _say(console, f"on one machine:  {with_it} dask scheduler --protocol tls")
    _say(console, f"on each machine: {with_it} python -m grader join tls://ONE_MACHINE:8786")
    _say(console, f"then:            {with_it} python -m grader batch ... --scheduler tls://ONE_MACHINE:8786")
    return 0


def build(args: argparse.Namespace, console: Console) -> int:
    """Build the notebooks. Exit status: 0, or with --check 1 if a committed notebook is stale."""
    from grader.notebooks import build

    if not args.check:
        names = build.build(build.SOLUTIONS, build.NOTEBOOKS)
    elif names := build.stale(build.SOLUTIONS, build.NOTEBOOKS):
        advice = "Run: python -m grader build, and delete what has no text in solutions/"
        print(f"grader: stale in notebooks/: {', '.join(names)}. {advice}", file=sys.stderr)
        return 1
    console.print(f"written: {', '.join(names)}" if names else "all notebooks are up to date", highlight=False)
    return 0


def handout(args: argparse.Namespace, console: Console) -> int:
    """Copy the learners' part of the course."""
    from grader.classroom import policy
    from grader.notebooks import build
    from grader.notebooks.handout import handout

    rules = policy.Policy()
    if args.course:
        if not (args.course / policy.FILE).is_file():
            raise GraderError(f"{args.course} has no {policy.FILE}; name the course's folder, such as grader/work")
        lessons = [path.stem for path in build.lessons(build.SOLUTIONS)]
        rules = policy.load(args.course, lessons)
        rules.check_lessons(lessons)
    try:
        handout(args.target, is_chosen=rules.is_chosen)
    except FileExistsError:
        raise GraderError(f"{args.target} is there already; name a new folder") from None
    _say(console, f"a learner's copy of the course: {args.target}")
    return 0


def create_key(args: argparse.Namespace, console: Console) -> int:
    """Create the key that signs certificates."""
    from grader.certificates import issuer

    public = issuer.create_key(issuer.keys_folder(), args.name, args.rotate)
    _say(console, f"private key: {issuer.keys_folder() / issuer.PRIVATE}\ngive to verifiers: {public}")
    return 0


def verify(args: argparse.Namespace, console: Console) -> int:
    """Verify a certificate with the issuers' keys alone. Exit status: as `VERIFY_STATUS` says."""
    from grader.certificates import credential, issuer
    from grader.common.text import one_line

    if not args.file.is_file():
        raise GraderError(f"{args.file} is no file")
    own = issuer.keys_folder() / issuer.ISSUERS
    issuers = issuer.load_issuers([*args.issuer, *([own] if own.is_dir() else [])])
    result = credential.verify(credential.read_token(args.file), issuers)
    console.print(f"{result.state}: {one_line(result.reason)}", highlight=False, soft_wrap=True, markup=False)
    if award := result.award:
        until = f", until {award.until:%Y-%m-%d}" if award.until else ""
        text = f"{award.name} ({award.student}), {award.course}: {award.grade}, {award.since:%Y-%m-%d}{until}"
        console.print(one_line(text), highlight=False, soft_wrap=True, markup=False)
    return VERIFY_STATUS[result.state]


def _say(console: Console, text: str) -> None:
    console.print(text, highlight=False, soft_wrap=True)
