"""A series of runs is resumed and judged, and is provisional if it is small. The commands print the right messages."""

import dataclasses
import functools
import json
import math
import subprocess
import sys

import nbformat
import pytest

from benchmarks import __main__ as command
from benchmarks import claims
from benchmarks.claims import table
from benchmarks.experiment import intervals, results, runner
from benchmarks.experiment.claim import Claim, Picture, Verdict
from benchmarks.experiment.plots import axes
from benchmarks.instruments.horovod_launch import WorkersError, on_workers

CLAIM = Claim(
    id="C00", statement="A sum is larger than its parts.", source="S9", lesson="none", variants=("a", "a-b"), seeds=2,
    settings={"images": 10}, quick={"images": 3}, caution="",
    run=lambda variant, seed, settings: {"sum": seed + len(variant), "images": settings["images"]},
    judge=lambda runs: Verdict("holds" if runs["a-b"][0]["sum"] > 1 else "fails", ""),
    picture=lambda runs: Picture(axes("x", "y")[0], "a", "b"),
)  # fmt: skip


def measured(folder, seeds=2, **settings):
    runner.measure(CLAIM, folder, {**CLAIM.settings, "device": "cpu", **settings}, range(seeds), CLAIM.variants)
    return runner.saved(CLAIM, folder)


def test_each_run_leaves_a_file_that_says_what_it_is(tmp_path):
    found = measured(tmp_path)
    file = json.loads((tmp_path / "a-b-1.json").read_text())
    assert file["values"] == {"sum": 4, "images": 10} and file["settings"]["images"] == 10
    assert {"cpu", "cores", "date", "torch", "horovod", "commit"} <= set(file["machine"])
    assert found.runs["a"] == [{"sum": 1, "images": 10}, {"sum": 2, "images": 10}], (
        "a variant whose name begins another's"
    )


def test_what_is_done_is_not_repeated(tmp_path):
    measured(tmp_path, seeds=1)
    before = (tmp_path / "a-0.json").read_bytes()
    heard = []
    runner.measure(CLAIM, tmp_path, CLAIM.settings, range(2), CLAIM.variants, heard.append)
    assert (tmp_path / "a-0.json").read_bytes() == before and len(heard) == 2


def test_a_repetition_stands_beside_the_committed_results_and_goes_on(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command.claims, "get", lambda id: CLAIM)
    monkeypatch.setattr(command.signal, "signal", lambda *_: None)
    monkeypatch.setattr(sys, "argv", ["benchmarks", "C03", "--rerun", "--seeds", "2"])
    assert command.main() == 0 and "(4 of 4)" in capsys.readouterr().out
    assert len(list((tmp_path / "runs" / "again" / CLAIM.id).glob("*.json"))) == 4
    assert command.main() == 0 and "seed" not in capsys.readouterr().out


def test_what_is_smaller_or_timed_on_another_machine_is_measured_anew(tmp_path, monkeypatch):
    heard, timed = [], dataclasses.replace(CLAIM, timing_sensitive=True)
    measured(tmp_path, images=3)
    runner.measure(CLAIM, tmp_path, CLAIM.settings, range(2), CLAIM.variants, heard.append)
    assert len(heard) == 5 and "4 of its results" in heard[0]
    here = results.machine()
    monkeypatch.setattr(results, "machine", lambda: here | {"cores": 99, "gpu": None})
    runner.measure(CLAIM, tmp_path, CLAIM.settings, range(2), CLAIM.variants, heard.append)
    assert len(heard) == 5
    measure = functools.partial(runner.measure, timed, tmp_path, CLAIM.settings, said=heard.append)
    measure(range(1), CLAIM.variants[:1])
    assert len(heard) == 7 and "1 of its results" in heard[5]
    found = runner.saved(timed, tmp_path)
    assert found.provisional == "1 of 2 seeds" and not found.machine.startswith("99 cores of "), "no mixing"
    measure(range(2), CLAIM.variants)
    found = runner.saved(timed, tmp_path)
    assert found.provisional == "" and found.machine.startswith("99 cores of ") and len(heard) == 11


def test_a_whole_round_of_another_machine_counts_if_each_round_is_judged_by_itself(tmp_path, monkeypatch):
    heard, apart = [], dataclasses.replace(CLAIM, timing_sensitive=True, rounds_apart=True)
    measure = functools.partial(runner.measure, apart, tmp_path, CLAIM.settings, said=heard.append)
    measure(range(1), CLAIM.variants)
    measure(range(2), CLAIM.variants[:1])  # the second round is begun here
    here = results.machine()
    monkeypatch.setattr(results, "machine", lambda: here | {"cores": 99, "gpu": None})
    assert runner.saved(apart, tmp_path).whole_rounds == {0}
    measure(range(2), CLAIM.variants)
    assert len(heard) == 3 + 1 + 2 and "1 of its results" in heard[3]
    found = runner.saved(apart, tmp_path)
    assert found.provisional == "" and found.whole_rounds == {0, 1}
    first, second = found.machine.split("; ")
    assert first.startswith("round 1: ") and second.startswith("round 2: 99 cores of ")


def test_variants_with_a_shared_launch_are_measured_once_per_seed(tmp_path):
    calls = []

    def run_all(seed, settings):
        calls.append((seed, settings["images"]))
        return {variant: {"sum": seed + len(variant)} for variant in CLAIM.variants}

    claim = dataclasses.replace(CLAIM, run=None, run_all=run_all)
    runner.measure(claim, tmp_path, CLAIM.settings, range(2), claim.variants)
    assert calls == [(0, 10), (1, 10)]
    assert runner.saved(claim, tmp_path).runs == {"a": [{"sum": 1}, {"sum": 2}], "a-b": [{"sum": 3}, {"sum": 4}]}
    seconds = [json.loads((tmp_path / f"{variant}-0.json").read_text())["seconds"] for variant in claim.variants]
    assert len(set(seconds)) == 1, "the seconds of a launch are divided equally"
    kept = (tmp_path / "a-1.json").read_bytes()
    (tmp_path / "a-b-1.json").unlink()
    runner.measure(claim, tmp_path, CLAIM.settings, range(2), claim.variants)
    assert calls[2:] == [(1, 10)] and (tmp_path / "a-1.json").read_bytes() == kept
    assert json.loads((tmp_path / "a-b-1.json").read_text())["values"] == {"sum": 4}


def test_an_interrupted_run_leaves_nothing(tmp_path):
    def interrupted(variant, seed, settings):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        runner.measure(dataclasses.replace(CLAIM, run=interrupted), tmp_path, {}, range(1), CLAIM.variants)
    assert not list(tmp_path.iterdir())


def test_few_seeds_and_small_settings_are_provisional(tmp_path):
    assert measured(tmp_path / "a", seeds=1).provisional == "1 of 2 seeds"
    assert measured(tmp_path / "b", images=3).provisional == "smaller than declared: images"
    assert measured(tmp_path / "c", images=11).provisional == ""


def test_a_variant_that_only_chooses_a_setting_needs_fewer_seeds(tmp_path):
    claim, heard = dataclasses.replace(CLAIM, seeds_to_choose={"a-b": 1}), []
    runner.measure(claim, tmp_path, CLAIM.settings, range(3), CLAIM.variants, heard.append)
    found = runner.saved(claim, tmp_path)
    assert len(heard) == 4 and (len(found.runs["a"]), len(found.runs["a-b"])) == (3, 1)
    assert found.seeds == 3 and found.provisional == "" and found.verdict.word == "holds"
    (tmp_path / "a-2.json").unlink()
    (tmp_path / "a-1.json").unlink()
    assert runner.saved(claim, tmp_path).provisional == "1 of 2 seeds"
    more = dataclasses.replace(CLAIM, seeds=1, seeds_to_choose={"a-b": 2})
    assert runner.saved(more, tmp_path).provisional == "1 of 2 seeds of a-b"


def test_without_a_variant_there_is_no_verdict(tmp_path):
    found = measured(tmp_path)
    assert found.verdict.word == "holds"
    for path in tmp_path.glob("a-b-*.json"):
        path.unlink()
    found = runner.saved(CLAIM, tmp_path)
    assert found.missing == ["a-b"] and found.verdict is None


def test_intervals():
    one, same, apart = [0.5], [0.50, 0.51, 0.49], [0.60, 0.61, 0.59]
    assert not intervals.difference(one, apart).seen and math.isinf(intervals.difference(one, apart).low)
    assert not intervals.difference(same, [0.51, 0.50, 0.50]).seen
    difference = intervals.difference(apart, same)
    assert difference.seen and difference.low < 0.1 < difference.high
    # For 4 degrees of freedom t = 2.776, and both deviations are 0.01.
    assert difference.high - difference.mean == pytest.approx(2.776 * 0.01 * math.sqrt(2 / 3), rel=1e-3)
    assert intervals.paired([1.0, 2.0, 3.0], [0.9, 1.9, 2.9]).seen
    assert intervals.mean_std([1.0, 3.0]) == "2.00 ± 1.41" and intervals.mean_std([1.0]) == "1.00"
    by_run = [[1.0, 4.0], [3.0, 4.0]]
    assert intervals.deviation(by_run) == pytest.approx([math.sqrt(2), 0]) and list(
        intervals.deviation(by_run[:1])
    ) == [0, 0]


@pytest.mark.filterwarnings("error")
def test_a_variant_without_spread_leaves_the_others():
    difference = intervals.difference([0.60, 0.61, 0.59], [1.0, 1.0, 1.0])
    # For 2 degrees of freedom t = 4.303.
    assert difference.high - difference.mean == pytest.approx(4.303 * 0.01 / math.sqrt(3), rel=1e-3)


def test_every_claim_is_complete():
    for id in claims.IDS:
        claim = claims.get(id)
        assert claim.id == id and claim.statement.endswith(".") and claim.source and claim.caution.endswith("."), id
        assert (claim.run is None) != (claim.run_all is None), id
        assert claim.seeds >= 1 and set(claim.quick) - {"test_images"} <= set(claim.settings) | {"test_images"}, id
        json.dumps(claim.settings)


def test_the_table_has_all_claims_with_their_cells_and_says_which_have_no_result(monkeypatch, tmp_path):
    rows = table.rows()
    assert [row.id for row in rows] == list(claims.IDS)
    for row in rows:
        cell = nbformat.read(table.NOTEBOOKS / f"{row.lesson}.ipynb", as_version=4).cells[row.cell - 1]
        assert cell.id == row.cell_id and f'saved("{row.id}"' in cell.source
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    assert all(row.verdict == "" and row.sentence.startswith("no result yet") for row in table.rows())


def benchmarks(*arguments, cwd=None):
    command = [sys.executable, "-m", "benchmarks", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=300)


def test_help_and_errors_are_short():
    assert "C01 to C32" in benchmarks("--help").stdout
    unknown = benchmarks("C99")
    assert unknown.returncode == 2 and unknown.stderr.count("\n") == 1
    variant = benchmarks("C32", "--variants", "9-base")
    assert variant.returncode == 2 and "C32 has no variant 9-base; it has 1-base" in variant.stderr


def rank_and_sum(start):
    import horovod.torch as hvd
    import torch

    return [hvd.rank(), hvd.allreduce(torch.tensor([float(start + hvd.rank())]), op=hvd.Sum).item()]


def fails_on_rank_1():
    import horovod.torch as hvd

    if hvd.rank() == 1:
        raise ValueError("rank 1 is not well")


def test_a_function_runs_on_real_workers():
    assert on_workers(f"{__name__}:rank_and_sum", 2, start=3) == [[0, 7.0], [1, 7.0]]


def test_workers_that_fail_say_why():
    with pytest.raises(WorkersError, match="rank 1 is not well"):
        on_workers(f"{__name__}:fails_on_rank_1", 2)
