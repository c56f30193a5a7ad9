"""Measures how well the audit of gradients tells computed gradients from invented ones.

python -m tests.support.audit_calibration [--seeds N] [--full N] [--show]

All right submissions and all forgers run on the fast profile with each seed, and a few of them on the full profile.
It continues where it stopped. `--show` prints the table and draws the figure, and measures nothing.
"""

import argparse
import json
import sys
import tempfile
from collections import defaultdict
from dataclasses import asdict
from pathlib import Path
from statistics import fmean, stdev

from rich.console import Console

from benchmarks.experiment import plots, results
from grader.check import CheckOptions, check
from grader.common import contract
from grader.grading.audit import FITS
from grader.grading.checks.gradients import MIN_CHANGE, MIN_FITTING
from tests.support.submission_suite import REPOSITORY, Submission, submissions

FOLDER = results.RESULTS / "audit"
FIGURE = REPOSITORY / "docs" / "pictures" / "audit.svg"
FORGERS = (
    "forges_gradients", "forges_at_most_updates", "forges_one_gradient_for_all", "names_other_images",
    "forges_with_few_images_of_many", "changes_weights_by_other_gradients",
)  # fmt: skip
# Right submissions whose gradients or changes differ most from those that the grader computes, and the attack.
ON_FULL = ("reference", "sync_batch_norm", "adam", "lamb", "forges_gradients")
TOO_SLOW = ("plain_pytorch", "stock_horovod")  # where workers share cores they wait long, and the grader stops them
Key = tuple[str, str]  # the name of a submission, and the profile


def wanted(seeds: int, full: int) -> list[tuple[Submission, contract.Profile, int]]:
    """Return what to run: a submission, the profile and the seed."""
    chosen = [one for one in submissions() if one.kind == "right" or one.name in FORGERS]
    chosen = [one for one in chosen if one.name not in TOO_SLOW]
    runs = [(one, contract.load("fast"), seed) for seed in range(seeds) for one in chosen]
    return runs + [(one, contract.load("full"), seed) for seed in range(full) for one in chosen if one.name in ON_FULL]


def run(submission: Submission, profile: contract.Profile, seed: int) -> dict:
    """Grade a submission under a key of this seed, and return what the audit and the card say."""
    with tempfile.TemporaryDirectory(prefix="audit-") as folder:
        submission.write(Path(folder, "in"))
        options = CheckOptions(profile=profile, key=f"audit {seed}", seed=seed)
        report = check(Path(folder, "in"), Path(folder, "out"), options, Console(quiet=True))
    lost = [row.id for row in report.rows if row.status != "met"]
    audit = asdict(report.record.audit)
    return {"submission": submission.id, "profile": profile.name, "seed": seed, "audit": audit, "lost": lost}


def measure(seeds: int, full: int) -> None:
    """Run what has no result yet, and write each result at once."""
    runs = wanted(seeds, full)
    for number, (submission, profile, seed) in enumerate(runs, start=1):
        path = FOLDER / f"{submission.name}-{profile.name}-{seed}.json"
        if not path.exists():
            found = run(submission, profile, seed)
            results.write(path, found)
            fits = sum(cosine >= FITS for cosine in found["audit"]["agreement"])
            print(f"{number}/{len(runs)} {path.stem}: {fits} of {found['audit']['asked']} fit", flush=True)


def audits() -> dict[Key, list[dict]]:
    """Return the audits that have been measured, by submission and profile."""
    found = defaultdict(list)
    for path in sorted(FOLDER.glob("*.json")):
        result = json.loads(path.read_text())
        found[result["submission"], result["profile"]].append(result["audit"])
    return dict(sorted(found.items(), key=lambda item: (item[0][1], item[0][0].startswith("hostile"), item[0][0])))


def table(found: dict[Key, list[dict]]) -> str:
    """Return a Markdown table with a row for each submission and profile."""
    lines = ["| submission | profile | runs | cosine of one update | share that fits, lowest | change of the weights |"]
    lines.append("|---" * 6 + "|")
    for (name, profile), runs in found.items():
        agreement = [cosine for audit in runs for cosine in audit["agreement"]]
        changes = [cosine for audit in runs for cosine in audit["changes"]]
        if len(agreement) > 1:
            spread = f"{fmean(agreement):.2f} ± {stdev(agreement):.2f}"
            lowest = min(share(audit) for audit in runs)
            lines.append(f"| {name} | {profile} | {len(runs)} | {spread} | {lowest:.0%} | {fmean(changes):.3f} |")
    return "\n".join(lines)


def share(audit: dict) -> float:
    """Return the share of the audited updates whose gradients fit."""
    fits = [cosine >= FITS for cosine in audit["agreement"]]
    return sum(fits) / len(fits) if fits else 0.0


def draw(found: dict[Key, list[dict]]) -> None:
    """Draw the share that fits and the change of the weights, a point for each run."""
    labels = [f"{name.partition('/')[2]}{' (full)' * (profile == 'full')}" for name, profile in found]
    height = 1.2 + 0.19 * len(labels)
    with plots.styled():
        figure, (left, right) = plots.panels(
            ("updates whose gradients fit (%)", ""), ("cosine of change and gradient", ""), size=(8, height)
        )
        for row, ((name, _), runs) in enumerate(found.items()):
            look = {"linestyle": "", "color": plots.COLOURS[1 if name.startswith("hostile") else 0]}
            marker = "x" if name.startswith("hostile") else "o"
            left.plot([100 * share(audit) for audit in runs], [row] * len(runs), marker=marker, **look)
            means = [fmean(audit["changes"]) for audit in runs if audit["changes"]]
            right.plot(means, [row] * len(means), marker=marker, **look)
        left.axvline(100 * MIN_FITTING, color="black", linestyle=":", marker="")
        right.axvline(MIN_CHANGE, color="black", linestyle=":", marker="")
        left.set_yticks(range(len(labels)), labels)
        right.set_yticks(range(len(labels)), [""] * len(labels))
        right.set_xscale("symlog", linthresh=0.01)
        for ax in (left, right):
            ax.invert_yaxis()
        figure.savefig(FIGURE, metadata={"Date": None})


def main(arguments: list[str] | None = None) -> int:
    """Return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3, metavar="N", help="seeds on the fast profile (default: 3)")
    parser.add_argument("--full", type=int, default=1, metavar="N", help="seeds on the full profile (default: 1)")
    parser.add_argument("--show", action="store_true", help="print and draw what was measured, and measure nothing")
    args = parser.parse_args(arguments)
    if not args.show:
        measure(args.seeds, args.full)
    found = audits()
    print(table(found))
    draw(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
