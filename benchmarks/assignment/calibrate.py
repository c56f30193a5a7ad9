"""Is the assignment's target well below the reference's accuracy, and well above that of the naive conversion?

The grader itself grades each variant over several seeds. Each seed has its own key, and the key decides which test
images are secret. The spread thus includes this choice. `python -m benchmarks calibrate` continues an interrupted
calibration.
"""

import statistics
from pathlib import Path

from rich.console import Console

from benchmarks.experiment import results
from cifar.support.environment import stop
from grader.check import CheckOptions, check
from grader.common.contract import Profile
from grader.sandbox.unsandboxed import Unsandboxed

REPOSITORY = Path(__file__).resolve().parents[2]
VARIANTS = {
    "reference": REPOSITORY / "solutions" / "assignment",
    "naive": REPOSITORY / "tests" / "submissions" / "naive",
}
# How many standard deviations a variant's mean must be away from the target. The fast profile is for tests, whose key
# and seed are fixed. Its few updates make the spread large, so three deviations are enough.
DEVIATIONS = {"full": 4, "fast": 3}


def folder(profile: Profile, data: Path | None = None) -> Path:
    """The folder with the runs of a profile. Runs on data of one's own lie elsewhere, and are not committed."""
    if data is None:
        return results.RESULTS / f"calibration-{profile.name}"
    return REPOSITORY / "runs" / f"calibration-{data.resolve().name}-{profile.name}"


def run(profile: Profile, seeds: int, console: Console, data: Path | None = None) -> None:
    """Grade every variant with the seeds 0 to `seeds - 1`. Runs that have a result are skipped."""
    for seed in range(seeds):
        for variant, submission in VARIANTS.items():
            path = folder(profile, data) / f"{variant}-{seed}.json"
            if path.exists():
                continue
            scratch = REPOSITORY / "runs" / "calibration" / f"{profile.name}-{variant}-{seed}"
            key = f"calibration-{seed}"
            options = CheckOptions(profile=profile, key=key, seed=seed, isolation=Unsandboxed, data=data)
            report = check(submission, scratch, options, console)
            seen = {row.id: row.seen for row in report.rows}
            record = report.record
            settings = profile.of_the_run()
            result = {
                "arm": variant, "seed": seed, "secret_accuracy": record.secret_accuracy, "seconds": record.seconds,
                "settings": settings, "source_sha256": record.source_sha256, "seen": seen,
            }  # fmt: skip
            results.write(path, result)
            console.print(f"{variant} {seed}: {record.secret_accuracy:.2%} in {record.seconds:.0f} s", highlight=False)


def summary(profile: Profile, data: Path | None = None) -> dict[str, dict[str, float]]:
    """The number of runs, and the mean, sample standard deviation and median seconds of each variant.

    Mean and deviation are those of the secret accuracy (0 to 1). The program ends with a message if a variant has fewer
    than two runs.
    """
    table = {}
    for variant in VARIANTS:
        runs = results.read(folder(profile, data), variant)
        if len(runs) < 2:
            where = folder(profile, data)
            stop(f"{len(runs)} runs of {variant} in {where}: a spread needs two; --seeds 2 measures them.")
        accuracies = [run["secret_accuracy"] for run in runs]
        table[variant] = {
            "runs": len(runs),
            "mean": statistics.mean(accuracies),
            "deviation": statistics.stdev(accuracies),
            "seconds": statistics.median(run["seconds"] for run in runs),
        }
    return table


def bounds(profile: Profile, data: Path | None = None) -> tuple[float, float]:
    """The two accuracies (0 to 1) between which the target must lie.

    They are the naive variant's mean plus, and the reference's mean minus, the profile's number of deviations.
    """
    table, times = summary(profile, data), DEVIATIONS[profile.name]
    low = table["naive"]["mean"] + times * table["naive"]["deviation"]
    return low, table["reference"]["mean"] - times * table["reference"]["deviation"]


def show(profile: Profile, console: Console, data: Path | None = None) -> bool:
    """Print the calibration. Returns whether the profile's target lies between the bounds.

    On data of one's own it proposes the target in the middle, and returns whether there is one.
    """
    for variant, row in summary(profile, data).items():
        spread = f"{row['mean']:.2%} +- {row['deviation']:.2%} over {row['runs']} seeds"
        console.print(f"{variant:10} {spread}, {row['seconds']:.0f} s a run", highlight=False)
    low, high = bounds(profile, data)
    if data:
        text = f"for policy.toml: target = {(low + high) / 2:.3f}" if low < high else "no target tells the two apart"
        console.print(f"{text} (between {low:.2%} and {high:.2%})", highlight=False)
        return low < high
    holds = low < profile.target < high
    verdict = "lies between" if holds else "DOES NOT lie between"
    console.print(f"target {profile.target:.2%} {verdict} {low:.2%} and {high:.2%}", highlight=False)
    return holds
