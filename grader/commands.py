"""The commands that have no room of their own. Each imports what it needs when it runs."""

import argparse
import sys

from rich.console import Console


def check(args: argparse.Namespace, console: Console) -> int:
    """Exit status: 0 for a pass, 1 for a run that was graded and did not pass, 2 for one that could not be launched."""
    from grader import check as checking
    from grader.common import contract
    from grader.common.errors import GraderError
    from grader.grading.grade import shown_by_a_pass
    from grader.report import terminal
    from grader.sandbox.bubblewrap import Bubblewrap
    from grader.sandbox.run_paths import RunPaths
    from grader.sandbox.unsandboxed import Unsandboxed

    isolation, profile = Unsandboxed if args.no_sandbox else Bubblewrap, contract.load(args.profile)
    options = checking.CheckOptions(profile=profile, key=args.key, seed=args.seed, isolation=isolation)
    try:
        report = checking.check(args.path, args.output.resolve(), options, console)
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


def join(args: argparse.Namespace, console: Console) -> int:
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
