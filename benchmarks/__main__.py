"""The command line: `python -m benchmarks C28` runs a claim's experiment, `claims` shows all claims; see --help."""

import argparse
import signal
import sys
from pathlib import Path

from rich.console import Console

from benchmarks import claims, endings, hosts, speed
from benchmarks.assignment import calibrate, overhead, throughput
from benchmarks.claims import table
from benchmarks.experiment import results, runner
from cifar.cli import OneLineParser, positive
from cifar.support.environment import stop
from cluster import ClusterError
from grader.common import contract
from grader.common.errors import GraderError

QUICK = Path("runs") / "benchmarks"  # the results of quick runs are not committed
RERUN = Path("runs") / "again"  # repeated runs are kept here, so that the committed results stay as they are


def main() -> int:
    """Run the command and return its exit status.

    It is 0 if everything has a result and is as the course says, 1 if not, and 130 after Ctrl-C. A wrong request ends
    the program with 2.
    """
    args = _parse()
    # A termination signal ends the current run, as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    console = Console()
    try:
        return 0 if COMMANDS.get(args.command, _claim)(args, console) else 1
    except GraderError as error:  # for example, data of one's own that are not complete
        stop(str(error), "benchmarks", 2)
    except KeyboardInterrupt:
        print("benchmarks: interrupted; what is done is kept, the same command goes on", file=sys.stderr)
        return 130


def _calibrate(args: argparse.Namespace, console: Console) -> bool:
    settings = contract.load(args.profile)
    if not args.show:
        calibrate.run(settings, args.seeds, console, args.data)
    return calibrate.show(settings, console, args.data)


def _overhead(args: argparse.Namespace, console: Console) -> bool:
    if not args.show:
        overhead.run(args.pairs, console)
    return overhead.show(console)


def _endings(args: argparse.Namespace, console: Console) -> bool:
    names = args.only or list(endings.PROGRAMS)
    if not args.show:
        endings.run(names, args.launches, args.lessons, console)
    return endings.show(names, console)


def _hosts(args: argparse.Namespace, console: Console) -> bool:
    if not args.show:
        try:
            hosts.run(args.seeds, console)
        except ClusterError as error:
            stop(str(error), "benchmarks", 2)
    return hosts.show(console)


def _throughput(args: argparse.Namespace, console: Console) -> bool:
    if not args.show:
        try:
            throughput.run(args.rounds, console)
        except (ClusterError, OSError) as error:
            stop(str(error), "benchmarks", 2)
    return throughput.show(console)


def _speed(args: argparse.Namespace, console: Console) -> bool:
    """Measure what is missing, show the results and write the page. Returns False while a variant has no result."""
    from benchmarks.speed import page

    folder = _results(args) / "speed"
    try:
        shown = [_compare(id, folder / id, args, console) for id in args.only or speed.SHORT]
        return all(shown)
    finally:  # after an interrupt or an error the page still shows the existing results
        page.write(folder, folder / "index.html", overhead.described())
        _say(console)(f"page: {folder / 'index.html'}")


def _where_it_pays(args: argparse.Namespace, console: Console) -> bool:
    """Write the page docs/where_it_pays.md from the saved results. Returns False while some are missing."""
    from benchmarks.speed import page, where_it_pays

    saved = {id: runner.saved(speed.get(id), results.RESULTS / "speed" / id) for id in where_it_pays.NEEDED}
    for one in saved.values():
        if one.missing:
            return _show(one, page.command(one.claim.id), console)
    where_it_pays.write(saved)
    _say(console)(f"page: {where_it_pays.PAGE}")
    return True


def _compare(id: str, folder: Path, args: argparse.Namespace, console: Console) -> bool:
    from benchmarks.speed import page

    claim = speed.get(id)
    if not args.show:
        settings = runner.settings(claim, args.quick, _device(id))
        seeds = range(args.rounds or (1 if args.quick else claim.seeds))
        runner.measure(claim, folder, settings, seeds, claim.variants, _say(console))
    saved = runner.saved(claim, folder)
    if shown := _show(saved, page.command(id), console):
        console.print(page.rich_table(saved))
    return shown


def _device(id: str) -> str:
    """The device of a comparison: `cuda` for the comparison `gpu`, otherwise `cpu`.

    If a GPU is needed and there is none, the program ends with a message of one line.
    """
    if id != "gpu":
        return "cpu"
    import torch

    if not torch.cuda.is_available():
        stop(f"{speed.LONG[id]} needs a GPU: PyTorch sees no GPU here", "benchmarks", 2)
    return "cuda"


def _claims(args: argparse.Namespace, console: Console) -> bool:
    return table.show(console)


def _claim(args: argparse.Namespace, console: Console) -> bool:
    """Measure what is missing and print the verdict. Returns False while a variant has no result."""
    claim = claims.get(args.command)
    unknown = set(args.variants) - set(claim.variants)
    if unknown:
        stop(
            f"{claim.id} has no variant {', '.join(sorted(unknown))}; it has {', '.join(claim.variants)}",
            "benchmarks",
            2,
        )
    folder = _results(args) / claim.id
    if not args.show:
        settings = runner.settings(claim, args.quick, args.device)
        seeds = range(args.seeds or (1 if args.quick else claim.seeds))
        runner.measure(claim, folder, settings, seeds, args.variants or claim.variants, _say(console))
    return _show(runner.saved(claim, folder), claim.command, console)


def _results(args: argparse.Namespace) -> Path:
    return QUICK if args.quick else RERUN if args.rerun else results.RESULTS


def _say(console: Console):
    return lambda text: console.print(text, highlight=False)


def _show(saved: runner.Series, command: str, console: Console) -> bool:
    _say(console)(f"{saved.claim.id}: {saved.claim.statement}")
    if saved.missing:
        _say(console)(f"no result yet for {', '.join(saved.missing)}. To measure: {command}")
        return False
    provisional = f" (provisional: {saved.provisional})" if saved.provisional else ""
    _say(console)(f"{saved.verdict.word}{provisional}: {saved.verdict.sentence}")
    return True


COMMANDS = {
    "calibrate": _calibrate,
    "overhead": _overhead,
    "endings": _endings,
    "hosts": _hosts,
    "throughput": _throughput,
    "speed": _speed,
    **dict.fromkeys(speed.LONG.values(), _speed),
    "where-it-pays": _where_it_pays,
    "claims": _claims,
}

ABOUT = {  # what each of the long comparisons measures, by its id
    "accuracy": "how long our programs and others take to test accuracies of 80, 88 and 90 percent",
    "kept": "whether what makes training fast costs test accuracy, over seeds",
    "gpu": "how long one worker, and four that share a GPU, take to 94 percent, beside airbench94",
    "links": "which way of exchanging gradients pays, over links of which speed, and what a cost model predicts",
    "savings": "what sending fewer bytes costs in accuracy: float16, PowerSGD, top-k, local SGD, DiLoCo",
    "start": "how long from a clone to a grade card, part by part, with empty caches and with full ones",
}


def _parse() -> argparse.Namespace:
    description = "Measure what the course claims. C01 to C32 are the claims: `C28 --help` tells a claim's options."
    parser = OneLineParser(prog="benchmarks", description=description, allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    about = "grade the reference and the naive conversion over many seeds, and see whether the target tells them apart"
    add = commands.add_parser("calibrate", help=about, description=about).add_argument
    add("--profile", choices=("full", "fast"), default="full", help="size of the runs (default: %(default)s)")
    add("--seeds", type=positive, default=10, metavar="N", help="runs of each variant (default: %(default)s)")
    add("--show", action="store_true", help="only show what has been measured")
    about = "data of your own in place of CIFAR-10; the results go to runs/"
    add("--data", type=Path, metavar="DIR", help=about)
    about = "run the reference bare and graded, in pairs, and compare their times and weights"
    add = commands.add_parser("overhead", help=about, description=about).add_argument
    add("--pairs", type=positive, default=7, metavar="N", help="pairs of runs (default: %(default)s)")
    add("--show", action="store_true", help="only show what has been measured")
    about = "launch each program that uses torch.distributed many times, and count those that do not end well"
    add = commands.add_parser("endings", help=about, description=f"{about}; what is done is not repeated").add_argument
    add("--launches", type=positive, default=200, metavar="N", help="of each program (default: %(default)s)")
    add("--only", nargs="+", choices=endings.PROGRAMS, metavar="PROGRAM", help="only these programs (default: all)")
    add(
        "--lessons",
        type=Path,
        default=Path("runs/quick"),
        metavar="DIR",
        help="the executed lessons (default: %(default)s)",
    )
    add("--show", action="store_true", help="only show what has been counted")
    about = "train on two hosts of this machine, and lose workers, a host and a link in elastic runs"
    add = commands.add_parser("hosts", help=about, description=f"{about}; what is done is not repeated").add_argument
    add("--seeds", type=positive, default=3, metavar="N", help="runs of each kind (default: %(default)s)")
    add("--show", action="store_true", help="only show what has been measured")
    about = "grade a class on one, two and three machines of equal size, and count the submissions of an hour"
    add = commands.add_parser("throughput", help=about, description=f"{about}; needs root").add_argument
    add("--rounds", type=positive, default=3, metavar="N", help="rounds of all (default: %(default)s)")
    add("--show", action="store_true", help="only show what has been measured")
    about = "compare our speed with what people would pick instead, and write the page of it"
    command = commands.add_parser("speed", help=about, description=f"{about}; what is done is not repeated")
    all_of = ", ".join(speed.SHORT)
    command.add_argument("--only", nargs="+", choices=speed.SHORT, metavar="NAME", help=f"of {all_of} (default: all)")
    _add_rounds(command)
    for id, about in ABOUT.items():
        description = f"{about}; on the same page; what is done is not repeated"
        command = commands.add_parser(speed.LONG[id], help=about, description=description)
        command.set_defaults(only=[id])
        _add_rounds(command)
    about = "write docs/where_it_pays.md: from which link on each way of exchanging gradients pays"
    commands.add_parser("where-it-pays", help=about, description=f"{about}; it reads saved results")
    about = "the table of all claims: lesson, seeds, verdict; exit status 1 while one has no result"
    commands.add_parser("claims", help=about, description=about)
    for id in claims.IDS:
        _add_claim(commands.add_parser(id, description=f"Run {id}'s experiment; what is done is not repeated."))
    return parser.parse_args()


def _add_rounds(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--rounds", type=positive, metavar="N", help="rounds of all ways (default: as many as declared)")
    _add_sizes(parser, "small, to see that it works")
    add("--show", action="store_true", help="only show what has been measured, and write the page")


def _add_sizes(parser: argparse.ArgumentParser, small: str) -> None:
    add = parser.add_mutually_exclusive_group().add_argument
    add("--quick", action="store_true", help=f"{small}; results go to {QUICK}")
    add("--rerun", action="store_true", help=f"repeat what has a committed result, at full size; results go to {RERUN}")


def _add_claim(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--seeds", type=positive, metavar="N", help="runs of each variant (default: as many as the claim declares)")
    add("--variants", nargs="+", default=[], metavar="VARIANT", help="only these variants (default: all)")
    _add_sizes(parser, "small, as in the notebooks")
    add("--device", choices=("auto", "cpu", "cuda"), default="auto", help="where to compute (default: %(default)s)")
    add("--show", action="store_true", help="only show what has been measured")


if __name__ == "__main__":
    sys.exit(main())
