"""A real timeline of Horovod is read, and a broken or hostile one does no harm."""

import json
import math
import time
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from grader.report import timeline
from tests.conftest import examples, run_workers

PROGRAM = """
import sys
import time
import horovod.torch as hvd
import torch

hvd.init()
net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(8, 2))
optimizer = hvd.DistributedOptimizer(torch.optim.SGD(net.parameters(), lr=0.1), net.named_parameters())
for update in range(8):
    if update == 3:
        hvd.start_timeline(sys.argv[1])
    net(torch.ones(16, 4)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    time.sleep(1)  # as long as no gradient waits
    if update == 4:
        hvd.allreduce(torch.ones(()), name="loss")
hvd.stop_timeline()
"""
GRADIENTS = {"1.bias", "1.weight", "0.bias", "0.weight"}


def trace(updates: list[list[str]], close: bool = True) -> bytes:
    """Return a timeline as Horovod writes it.

    Each update computes for 100 ms, and then exchanges each of its tensors for 10 ms.
    """
    names = list(dict.fromkeys(name for update in updates for name in update))
    marks, now = [], 1_000_000
    for pid, name in enumerate(names, start=1):
        marks.append({"name": "process_name", "ph": "M", "pid": pid, "args": {"name": name}})
    for update in updates:
        now += 100_000
        for name in update:
            pid = names.index(name) + 1
            marks += [
                {"ph": "B", "name": "NEGOTIATE_ALLREDUCE", "ts": now, "pid": pid},
                {"ph": "X", "name": "0", "ts": now, "pid": pid, "dur": 0},
                {"ph": "E", "ts": now + 2_000, "pid": pid},
                {"ph": "B", "name": "ALLREDUCE", "ts": now + 2_000, "pid": pid},
                {"ph": "B", "name": "GLOO_ALLREDUCE", "ts": now + 3_000, "pid": pid},
                {"ph": "E", "ts": now + 9_000, "pid": pid},
                {"ph": "E", "ts": now + 10_000, "pid": pid, "args": {"dtype": "float32", "shape": f"[{pid}]"}},
            ]
            now += 10_000
    return ("[\n" + ",".join(map(json.dumps, marks)) + "]" * close).encode()


def plain(updates: int) -> bytes:
    return trace([["allreduce.a", "allreduce.b"]] * updates)


def test_horovods_own_timeline_gives_one_update_with_each_gradient_once(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("HOROVOD_TIMELINE", "DYNAMIC")
    (tmp_path / "program.py").write_text(PROGRAM)
    done = run_workers(2, tmp_path / "program.py", tmp_path / "timeline.json")
    assert done.returncode == 0, done.stderr
    update = timeline.one_update(timeline.read((tmp_path / "timeline.json").read_bytes()))
    assert update[0].phase == timeline.COMPUTE
    negotiated = [event.tensor for event in update if event.phase == "NEGOTIATE_ALLREDUCE"]
    assert sorted(negotiated) == sorted(GRADIENTS)


def test_phases_have_their_tensor_start_and_length():
    events = timeline.read(plain(1))
    assert [(event.tensor, event.phase) for event in events[:3]] == [
        ("a", "NEGOTIATE_ALLREDUCE"), ("a", "GLOO_ALLREDUCE"), ("a", "ALLREDUCE"),
    ]  # fmt: skip
    assert math.isclose(events[1].start, 1.103) and math.isclose(events[1].seconds, 0.006)


def test_a_timeline_that_is_cut_off_keeps_its_whole_phases():
    whole = plain(3)
    events = timeline.read(whole[: len(whole) * 2 // 3])
    assert events == timeline.read(whole)[: len(events)]
    assert len(events) >= 8


def test_a_timeline_whose_beginning_is_missing_has_no_names_but_its_phases():
    whole = plain(3)
    events = timeline.read(whole[whole.index(b'{"ph": "E"') :])
    assert len(events) == len(timeline.read(whole)) - 1
    assert {event.tensor for event in events} == {""}


def test_one_update_is_from_the_middle_and_begins_with_what_was_computed():
    update = timeline.one_update(timeline.read(plain(9)))
    assert [event.phase for event in update[:2]] == [timeline.COMPUTE, "NEGOTIATE_ALLREDUCE"]
    assert math.isclose(update[0].seconds, 0.1, abs_tol=1e-6)
    assert 1.3 < update[0].start < 1.8  # The nine updates last from 1.0 s to 2.1 s.
    assert len(update) == 1 + 2 * 3


def test_an_update_with_an_epochs_metrics_is_not_the_usual_one():
    gradients = ["allreduce.a", "allreduce.b"]
    update = timeline.one_update(
        timeline.read(trace([gradients, gradients, [*gradients, "allreduce.loss"], gradients]))
    )
    assert {event.tensor for event in update} == {"", "a", "b"}


def test_tensors_that_get_a_new_number_at_each_call_are_told_apart_by_shape():
    calls = [[f"allreduce.noname.{2 * call}", f"allreduce.noname.{2 * call + 1}"] for call in range(4)]
    content = trace(calls)
    for call in range(4):  # Each update has the same two shapes.
        content = content.replace(f'"[{2 * call + 1}]"'.encode(), b'"[16, 3]"').replace(
            f'"[{2 * call + 2}]"'.encode(), b'"[16]"'
        )
    update = timeline.one_update(timeline.read(content))
    assert [event.tensor for event in update if event.phase == "NEGOTIATE_ALLREDUCE"] == ["[16, 3]", "[16]"]


def test_there_is_no_update_without_events():
    assert timeline.one_update(timeline.read(b"")) == []
    assert timeline.one_update([timeline.Event("a", "ALLREDUCE", 1.0, 1.0)]) == []


def check(content: bytes) -> None:
    """Assert that phases are valid and few, and that one update can be chosen, whatever the content is."""
    events = timeline.read(content)
    assert len(events) <= timeline.MAX_MARKS
    for event in [*events, *timeline.one_update(events)]:
        assert 0 <= event.start <= timeline.MAX_SECONDS and 0 <= event.seconds <= timeline.MAX_SECONDS
        assert len(event.tensor) <= 600 and len(event.phase) <= 200


PIECES = st.sampled_from(
    [b"{", b"}", b"[", b'"ph": "B"', b'"ph": "E"', b'"ph": "M"', b'"ts": 1e999', b'"ts": NaN', b'"ts": -1', b'"ts": 7',
     b'"pid": 1', b'"pid": 1e400', b'"pid": []', b'"name": "NEGOTIATE_ALLREDUCE"', b'"args": {"name": 5}',
     b'"args": {"name": "x"}', b",", b" ", b"\xff", b"\\u0000", b'"']
)  # fmt: skip


@given(st.binary(max_size=300) | st.lists(PIECES, max_size=60).map(b"".join))
@settings(max_examples=examples(500), deadline=None)
def test_any_bytes_are_survived(content: bytes):
    check(content)


@given(st.integers(0, 2_000), st.integers(0, 2_000), st.binary(max_size=20))
@settings(max_examples=examples(500), deadline=None)
def test_a_damaged_timeline_is_survived(start: int, stop: int, instead: bytes):
    whole = plain(3)
    check(whole[:start] + instead + whole[stop:])


NUMBERS = st.integers() | st.floats() | st.text(max_size=5) | st.none()
MARKS = st.fixed_dictionaries(
    {"ph": st.sampled_from("BEMX"), "pid": st.integers(0, 3) | NUMBERS, "ts": st.integers(0, 10**7) | NUMBERS},
    optional={
        "name": st.sampled_from(["NEGOTIATE_ALLREDUCE", "ALLREDUCE", "GLOO_ALLREDUCE"]) | st.text(max_size=300),
        "args": st.dictionaries(st.sampled_from(["name", "shape"]), st.text(max_size=300) | NUMBERS, max_size=2),
    },
)


@given(st.lists(MARKS, max_size=40))
@settings(max_examples=examples(200), deadline=None)
def test_any_events_are_survived(marks: list[dict]):
    check(json.dumps(marks).encode())


def test_hostile_content_takes_no_longer_than_a_long_timeline():
    size = timeline.MAX_BYTES
    for piece in (
        b"{",
        b'{"a":',
        b'{"ph":"B",',
        b"{" + b"a" * 599,
        b"{" * 9 + b"a" * 290 + b"{",
        b'{"ph":"B","pid":1}',
    ):
        content = piece * (2 * size // len(piece))
        started = time.process_time()
        check(content)
        assert time.process_time() - started < 5, piece[:20]
