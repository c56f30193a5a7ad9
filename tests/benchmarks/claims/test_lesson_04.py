"""The verdicts of lesson 04's claims follow the data, and its functions read and compute the right values."""

import numpy as np
import pytest

from benchmarks.claims.lesson_04 import c13_strong_scaling as c13
from benchmarks.claims.lesson_04 import c26_overlap as c26
from benchmarks.claims.lesson_04 import c27_horovod_key_changes as c27
from benchmarks.experiment.claim import Runs
from cifar.support.environment import cores
from grader.report.timeline import Event
from tests.support.claims import check


def scattered(value: float, scatter: float, seed: int, count: int = 5) -> list[float]:
    return (value * (1 + scatter * np.random.default_rng(seed).standard_normal(count))).tolist()


# These tests are about claim C13.


def scaling(strong: dict[int, float], weak: dict[int, float], scatter: float = 0.02, luck: float = 0.0) -> Runs:
    """Return runs in which the exchange leaves these shares of the speed, by number of workers.

    The rounds of a launch share its `luck`.
    """
    runs = {}
    for variant, size in c13.SIZES.items():
        left = {"strong": strong.get(size, 1.0), "weak": weak.get(size, 1.0)}
        runs[variant] = [
            {
                f"{way}{end}": scattered(
                    1000 * size * (1 if end else scattered(left[way], luck, seed + 100 * place, 1)[0]),
                    scatter,
                    seed + 10 * place,
                )
                for place, (way, end) in enumerate((way, end) for way in left for end in ("", "_alone"))
            }
            | {"single": [1000.0] * 5}
            for seed in range(5)
        ]
    return runs


@pytest.mark.parametrize(
    ("strong", "weak", "scatter", "word"),
    [
        ({2: 0.8, 4: 0.6}, {2: 0.95, 4: 0.9}, 0.02, "holds"),
        ({2: 0.95, 4: 0.9}, {2: 0.8, 4: 0.6}, 0.02, "fails"),
        ({2: 0.9, 4: 0.9}, {2: 0.9, 4: 0.9}, 0.02, "no difference seen"),
        # There is a difference, but it is smaller than the noise.
        ({2: 0.8, 4: 0.85}, {2: 0.95, 4: 0.9}, 0.5, "no difference seen"),
    ],
)
def test_c13_verdict(strong: dict[int, float], weak: dict[int, float], scatter: float, word: str):
    check(c13.CLAIM, scaling(strong, weak, scatter), word)


def test_c13_counts_launches_not_rounds():
    variants = ({2: 0.8, 4: 0.7}, {2: 0.9, 4: 0.8})
    assert c13.judge(scaling(*variants, luck=0.02)).word == "holds"
    assert c13.judge(scaling(*variants, luck=0.3)).word == "no difference seen"


# These tests are about claim C26.


SPANS = [[f"weight {number}", "ALLREDUCE", 0.02, 0.03] for number in range(10)]  # ten gradients, so the last is a tenth
TRACE = {"program": [["forward", 0.0, 0.01], ["backward", 0.01, 0.03], ["exchange", 0.03, 0.04]], "horovod": SPANS}


def updates(hidden: dict[str, float], compute: float = 0.05, exchange: float = 0.02, scatter: float = 0.01) -> Runs:
    """Return step times. `hidden` gives the share of what can be hidden that each variant hides."""
    runs = {}
    for variant, share in hidden.items():
        seconds = {"compute": compute, "exchange": exchange, "off": compute + exchange}
        seconds["on"] = compute + exchange - share * 0.9 * exchange
        runs[variant] = [
            {
                "seconds": {
                    way: scattered(value, scatter, 10 * seed + place)
                    for place, (way, value) in enumerate(seconds.items())
                },
                "traces": {"off": TRACE, "on": TRACE},
            }
            for seed in range(5)
        ]
    return runs


@pytest.mark.parametrize(
    ("few", "many", "word"),
    [
        (0.9, 0.8, "holds"),
        (0.1, -0.5, "fails"),
        (0.9, 0.1, "depends"),
        (0.5, 0.5, "no difference seen"),
    ],
)
def test_c26_verdict(few: float, many: float, word: str):
    check(c26.CLAIM, updates({"2_workers": few, "4_workers": many}), word)


@pytest.mark.parametrize(
    ("compute", "exchange", "on", "share"),
    [
        (0.06, 0.02, 0.08, 0.0),  # the sum
        (0.06, 0.02, 0.062, 1.0),  # computing, and then the exchange of the last gradient
        (0.06, 0.02, 0.071, 0.5),
        (0.06, 0.10, 0.12, 1.0),  # the forward pass, and then the whole exchange
        (0.06, 0.10, 0.20, -1.0),
    ],
)
def test_hidden_share_is_none_at_the_sum_and_all_in_the_best_case(
    compute: float, exchange: float, on: float, share: float
):
    seconds = {"compute": [compute], "exchange": [exchange], "off": [compute + exchange], "on": [on]}
    run = {"seconds": seconds, "traces": {"off": TRACE, "on": TRACE}}
    assert c26.hidden({"2_workers": [run]}, "2_workers") == pytest.approx(share)


def test_horovods_clock_is_the_programs_where_a_marker_was_heard_of_soonest():
    events = [
        Event("marker.0", "NEGOTIATE_ALLREDUCE", 4.98, 0.001),
        Event("marker.0", "ALLREDUCE", 4.981, 0.009),
        Event("marker.1", "ALLREDUCE", 5.0, 0.009),
        Event("after.a", "NEGOTIATE_ALLREDUCE", 5.02, 0.01),
        Event("after.a", "GLOO_ALLREDUCE", 5.03, 0.01),
        Event("b", "ALLREDUCE", 5.04, 0.01),
        Event("barrier", "ALLREDUCE", 5.06, 0.01),
    ]
    # These times are 103 s and 103.003 s later than those of the timeline.
    returned = {"marker.0": 107.99, "marker.1": 108.012}
    found = c26._exchanges(events, returned, began=108.01)  # In the timeline, this moment is 5.01.
    assert [span[:2] for span in found] == [["a", "NEGOTIATE_ALLREDUCE"], ["b", "ALLREDUCE"]]
    assert [span[2:] for span in found] == [pytest.approx([0.01, 0.02]), pytest.approx([0.03, 0.04])]


# These tests are about claim C27.


def observed(variant: str, symptom: str | None, size: int = 4) -> dict:
    """Return what observers would report of a program with one symptom."""
    apart, same, one, all_write = (symptom == name for name in c27.SYMPTOMS)
    return {
        "hashes": [[7, 8 + rank * apart] for rank in range(size)],
        "devices": [rank * (not one) for rank in range(size)], "threads": [1] * size,
        "files": [["model.pt"] if rank == 0 or all_write else [] for rank in range(size)],
        "errors": [""] * size, "spread": [0.0, 0.5 * apart], "used": 256 * (size if same else 1), "distinct": 256,
        "epochs": 1, "lines": 1, "pretended": True,
    }  # fmt: skip


def programs(**instead: str | None) -> Runs:
    """Return runs in which every program has its own symptom. `instead` names exceptions."""
    symptoms = {"all_changes": None, **c27.EXPECTED, **instead}
    return {variant: [observed(variant, symptoms[variant])] * 2 for variant in c27.LEFT_OUT}


@pytest.mark.parametrize(
    ("runs", "word"),
    [
        (programs(), "holds"),
        (programs(no_broadcast=None), "depends"),
        (programs(all_changes="writing workers"), "depends"),  # A symptom then does not show which change was left out.
        (programs(**dict.fromkeys(c27.EXPECTED)), "fails"),
    ],
)
def test_c27_verdict(runs: Runs, word: str):
    check(c27.CLAIM, runs, word)


def test_c27_names_the_change_without_a_symptom():
    assert "no symptom of no sharding" in c27.judge(programs(no_sharding="writing workers")).sentence


@pytest.mark.parametrize("variant", c27.LEFT_OUT)
def test_a_program_is_the_script_but_for_the_change_left_out(variant: str):
    script, program = c27.SCRIPT.read_text().splitlines(), c27.program(variant).splitlines()
    changed = sum(before != after for before, after in zip(script, program, strict=True))
    assert changed == len(c27.LEFT_OUT[variant])


def test_a_script_without_the_change_is_an_error(monkeypatch):
    monkeypatch.setitem(c27.LEFT_OUT, "all_changes", {"hvd.shutdown()": ""})
    with pytest.raises(ValueError, match="has 0 times"):
        c27.program("all_changes")


def test_c27_of_two_real_workers():
    settings = {"workers": 2, "images": 64, "epochs": 1, "batch_size": 16, "test_images": 20, "device": "cpu"}
    runs = {variant: [values] for variant, values in c27.measure(3, settings).items()}
    check(c27.CLAIM, runs, "holds")
    assert runs["all_changes"][0]["threads"] == [max(1, cores() // 2)] * 2
    assert runs["no_pinning"][0]["threads"] == [cores()] * 2
