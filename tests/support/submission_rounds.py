"""Grades all submissions of tests/submissions again and again, each round under a key of its own.

python -m tests.support.submission_rounds [--rounds N] [--only NAME ...] [--show]

A round trains and tests on other images than the round before, and begins with other weights. It continues where it
stopped. `--show` prints the table of all rounds, and measures nothing.
"""

import argparse
import json
import sys
import tempfile
from collections import Counter
from pathlib import Path

from benchmarks.experiment import results
from tests.support.submission_suite import KEY, SEED, Outcome, Submission, chosen, grader_hash, problems, run

FOLDER = results.RESULTS / "submissions"


def path_of(number: int) -> Path:
    """Return the file of a round. The first round has number 0."""
    return FOLDER / f"round-{number}.json"


def stored(number: int, grader: str) -> dict[str, dict]:
    """Return what a round has found so far, by submission. Raises ValueError if another grader has found it."""
    if not path_of(number).exists():
        return {}
    content = json.loads(path_of(number).read_text())
    if content["grader_sha256"] != grader:
        raise ValueError(f"{path_of(number)} was written by another grader: remove it to repeat this round")
    return content["runs"]


def in_short(submission: Submission, outcome: Outcome) -> dict:
    """Return what a round keeps of an outcome: points, what was lost and why, and what is not as expected."""
    lost = [row for row in outcome.rows if row["status"] != "met"]
    return {
        "points": outcome.points,
        "passed": outcome.passed,
        "refused": outcome.refused,
        "lost": {row["id"]: [row["status"], row["points"], row["message"]] for row in lost},
        "problems": problems(submission, outcome),
        "seconds": outcome.seconds,
    }


def measure(wanted: list[Submission], rounds: int) -> None:
    """Grade each submission once in each round, and write each result at once."""
    grader = grader_hash()
    for number in range(rounds):
        key = f"{KEY}, round {number}" if number else KEY
        found = stored(number, grader)
        for submission in wanted:
            if submission.id in found:
                continue  # it was graded before an interruption
            with tempfile.TemporaryDirectory(prefix="round-") as folder:
                outcome = run(submission, Path(folder, "run"), key, SEED + number)
            found[submission.id] = in_short(submission, outcome)
            results.write(path_of(number), {"key": key, "grader_sha256": grader, "runs": found})
            told = "; ".join(found[submission.id]["problems"]) or "as expected"
            print(f"round {number} {submission.id}: {outcome.points:g} points, {outcome.seconds:.0f} s, {told}")
            sys.stdout.flush()


def rounds_so_far() -> list[dict[str, dict]]:
    """Return the runs of each round that has a file, by submission."""
    return [json.loads(path.read_text())["runs"] for path in sorted(FOLDER.glob("round-*.json"))]


def table(wanted: list[Submission], rounds: list[dict[str, dict]]) -> str:
    """Return a Markdown table with a row for each submission: its points, how often it passed, and what was wrong."""
    lines = ["| submission | rounds | points | passed | not as expected |", "|---" * 5 + "|"]
    for submission in wanted:
        runs = [found[submission.id] for found in rounds if submission.id in found]
        if not runs:
            continue
        points = sorted({run["points"] for run in runs})
        span = f"{points[0]:g}" if len(points) == 1 else f"{points[0]:g} to {points[-1]:g}"
        passed = sum(run["passed"] for run in runs)
        wrong = Counter(told for run in runs for told in run["problems"])
        told = "; ".join(f"{problem} (in {count})" for problem, count in wrong.items())
        lines.append(f"| {submission.id} | {len(runs)} | {span} | {passed} | {told or 'nothing'} |")
    return "\n".join(lines)


def counts(wanted: list[Submission], rounds: list[dict[str, dict]]) -> str:
    """Return one line: how many right ones failed, how many wrong ones passed, and how many had any fault."""
    runs = [(submission, found[submission.id]) for found in rounds for submission in wanted if submission.id in found]
    right = [run for submission, run in runs if submission.passes]
    wrong = [run for submission, run in runs if submission.passes is False or submission.refused]
    failed, passed = sum(not run["passed"] for run in right), sum(run["passed"] for run in wrong)
    other = sum(bool(run["problems"]) for _, run in runs)
    return (
        f"{failed} of {len(right)} runs that must pass did not pass. {passed} of {len(wrong)} runs that must not pass "
        f"passed. {other} of {len(runs)} were not as expected in any way."
    )


def main(arguments: list[str] | None = None) -> int:
    """Return the exit status. It is 0 if everything is as expected."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10, metavar="N", help="how many rounds in all (default: 10)")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="only these, such as right/lamb")
    parser.add_argument("--show", action="store_true", help="print what was measured, and measure nothing")
    args = parser.parse_args(arguments)
    wanted = chosen(parser, args.only)
    if not args.show:
        try:
            measure(wanted, args.rounds)
        except ValueError as error:
            parser.error(str(error))
    rounds = rounds_so_far()
    print(table(wanted, rounds))
    print(f"\n{counts(wanted, rounds)}")
    return 1 if any(run["problems"] for found in rounds for run in found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
