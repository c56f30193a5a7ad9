"""Learners' cells run on test cases in the sandbox. Some are right in several styles, some wrong, some hostile."""

import json
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from grader import exercises
from grader.exercises import sandboxed, scoring, test_cases
from grader.sandbox.bubblewrap import Bubblewrap
from grader.sandbox.guest_scripts import call_functions
from grader.sandbox.unsandboxed import Unsandboxed
from tests.conftest import examples

PLAIN = {
    "average_gradients": """
def average_gradients(gradients, counts):
    images = sum(counts)
    result = [0.0] * len(gradients[0])
    for gradient, count in zip(gradients, counts):
        for position, value in enumerate(gradient):
            result[position] += value * count / images
    return tuple(result)
""",
    "ring_step": """
def ring_step(chunks, step):
    size = len(chunks)
    for receiver in range(size):
        sender = (receiver - 1) % size
        chunk = (sender - step) % size
        mine = chunks[receiver][chunk]
        for position, value in enumerate(chunks[sender][chunk]):
            mine[position] += value
    return chunks
""",
    "ring_plan": """
def ring_plan(rank, step, size):
    sent = rank
    for _ in range(step):
        sent = sent - 1 if sent else size - 1
    return [sent, (sent + size - 1) % size, step + 1 < size]
""",
    "noise_scale": """
def noise_scale(b, B, n, N):
    noise = (n - N) * b * B / (B - b)
    gradient = n - noise / b
    return noise / gradient
""",
    "warmup_factor": """
def warmup_factor(update, warmup, size):
    share = min(1, update / warmup) if warmup else 1
    return 1 + share * (size - 1)
""",
    "trust_ratio": """
from math import hypot
def trust_ratio(weights, direction, decay):
    above, below = hypot(*weights), hypot(*(r + decay * w for w, r in zip(weights, direction)))
    return above / below if above * below else 1
""",
    "shard_indices": """
import random
def shard_indices(count, rank, size, seed, epoch):
    order = list(range(count))
    random.Random(seed * 1_000_003 + epoch).shuffle(order)
    return order[rank * (count // size):][: count // size]
""",
    "bug_zoo": """
def diagnose(symptoms):
    if symptoms["tested_images"] > symptoms["test_images"]:
        return "padded evaluation"
    if symptoms["tested_images"] < symptoms["test_images"]:
        return "rank 0's metrics"
    if symptoms["top_rate"] / symptoms["base_rate"] > symptoms["workers"] + 0.5:
        return "double rate scaling"
    return "identical shards" if len(set(symptoms["start_hashes"])) == 1 else "no broadcast"
""",
    "squared_error": """
def squared_error(gradients, batch):
    result = 0
    for column in zip(*gradients):
        mean = sum(column) / len(column)
        result += sum((value - mean) ** 2 for value in column) / len(column)
    return result / batch
""",
    "step_time": """
def step_time(batches, seconds):
    n, x, y = len(batches), sum(batches), sum(seconds)
    xx, xy = sum(b * b for b in batches), sum(b * s for b, s in zip(batches, seconds))
    below = n * xx - x * x
    c = (n * xy - x * y) / below
    return (y - c * x) / n, c
""",
    "pipeline_rate": """
def pipeline_rate(seconds, batch, overlapped):
    if overlapped:
        return min(batch / stage for stage in seconds)
    return 1 / sum(stage / batch for stage in seconds)
""",
    "traffic": """
def traffic(scheme, workers, size):
    sent = [0] * workers
    for rank in range(workers):
        if scheme == "ring":
            for step in range(2 * (workers - 1)):
                sent[rank] += size // workers
        elif rank > 0:
            sent[rank] += size
            sent[0] += size
    return sent
""",
    "rate_at": """
import math
def rate_at(update, images, batch, workers, rate, decay_epochs):
    updates = math.ceil(images / (batch * workers))
    for epoch in decay_epochs:
        if update >= epoch * updates:
            rate /= 10
    return rate
""",
    "compare_arms": """
import statistics as s
def compare_arms(a, b):
    if len(a) == 1 or len(b) == 1:
        return "too few runs"
    error = (s.variance(a) / len(a) + s.stdev(b) ** 2 / len(b)) ** 0.5
    ahead = (s.mean(a) - s.mean(b)) / error
    return "a is higher" if ahead > 2 else "b is higher" if ahead < -2 else "no difference seen"
""",
    "rates_to_try": """
def rates_to_try(rates, accuracies):
    best, _ = max(zip(rates, accuracies), key=lambda pair: pair[1])
    new = []
    if best / 2 not in rates:
        new.append(best / 2)
    if best * 2 not in rates:
        new.append(best * 2)
    return new
""",
    "effective_batch": """
def effective_batch(workers, batch, sharded, same_seed):
    if same_seed and not sharded:
        return batch
    return batch * workers
""",
    "updates_made": """
def updates_made(images, batch, workers, epochs):
    shard = images // workers
    updates = 0
    for epoch in range(epochs):
        for start in range(0, shard, batch):
            updates += 1
    return updates
""",
    "worth_having": """
def worth_having(computing, alpha, beta, gamma, n):
    for workers in range(4096, 1, -1):
        if gamma + 2 * (workers - 1) * alpha + 2 * (workers - 1) / workers * n * beta <= computing:
            return workers
    return 1
""",
    "share_lost": """
def share_lost(interval, writing, between, workers):
    return (writing + interval * interval * workers / (2 * between)) / interval
""",
    "workers_needed": """
def workers_needed(weights, averages, activations, images, memory):
    fitting = (memory - 4 * weights * (2 + averages)) // activations
    return 0 if fitting < 1 else -(-images // fitting)
""",
    "batch_time": """
def batch_time(forward, backward, latency, sending, way):
    exchange = latency + (sending / 2 if way == "float16" else sending)
    if way == "earlier":
        return max(forward + backward, forward + exchange)
    if way == "4 batches":
        return (4 * forward + 4 * backward + exchange) / 4
    return forward + backward + exchange
""",
    "bytes_on_each": """
def bytes_on_each(weights, workers, stage):
    kept = 4 * weights if stage < 3 else 4 * weights / workers
    kept += 4 * weights if stage < 2 else 4 * weights / workers
    kept += 8 * weights if stage < 1 else 8 * weights / workers
    return kept
""",
}

ARRAYS = {
    "average_gradients": """
import torch
def average_gradients(gradients, counts):
    weights = torch.tensor(counts, dtype=torch.float32)
    return torch.einsum("w,wd->d", weights, torch.tensor(gradients)) / weights.sum()
""",
    "ring_step": """
import numpy as np
def ring_step(chunks, step):
    state = [[np.array(chunk) for chunk in worker] for worker in chunks]
    N = len(state)
    sent = {(r + 1) % N: ((r - step) % N, state[r][(r - step) % N].copy()) for r in range(N)}
    return [[c + sent[r][1] if i == sent[r][0] else c for i, c in enumerate(state[r])] for r in range(N)]
""",
    "ring_plan": """
import numpy as np
def ring_plan(rank, step, size):
    return *np.mod([rank - step, rank - 1 - step], size), np.bool_(step < size - 1)
""",
    "noise_scale": """
import numpy as np
def noise_scale(small_batch, big_batch, norm2_small, norm2_big):
    # two equations, norm2 = |g|^2 + tr / B
    g2, trace = np.linalg.solve([[1, 1 / small_batch], [1, 1 / big_batch]], [norm2_small, norm2_big])
    return np.float32(trace / g2)
""",
    "warmup_factor": """
import numpy as np
%matplotlib inline
class Warmup:
    def __call__(self, update, warmup, size):
        return np.interp(update, [0, warmup], [1, size]) if warmup else np.int64(size)
warmup_factor = Warmup()
warmup_factor(1, 2, 3), nothing_of_that_name
""",
    "trust_ratio": """
import torch
def trust_ratio(weights, direction, decay):
    w, r = torch.tensor(weights), torch.tensor(direction)
    ratio = w.norm() / (r + decay * w).norm()
    return torch.where(torch.isfinite(ratio) & (ratio > 0), ratio, 1.0)
""",
    "shard_indices": """
import numpy as np
def shard_indices(count, rank, size, seed, epoch):
    print("answer: [0]")
    order = np.random.RandomState(1000 * seed + epoch).permutation(count)
    return order[rank:count // size * size:size]
""",
    "bug_zoo": """
RULES = [
    ("no broadcast", lambda s: len(set(s["start_hashes"])) > 1),
    ("identical shards", lambda s: s["distinct_images"] < s["used_images"]),
    ("double rate scaling", lambda s: s["top_rate"] > 1.5 * s["base_rate"] * s["workers"]),
    ("rank 0's metrics", lambda s: abs(s["reported_accuracy"] - s["measured_accuracy"]) > 0.002),
    ("padded evaluation", lambda s: True),
]
diagnose = lambda symptoms: next(name for name, rule in RULES if rule(symptoms))
""",
    "squared_error": """
import torch
def squared_error(gradients, batch):
    return torch.cov(torch.tensor(gradients).T, correction=0).reshape(len(gradients[0]), -1).trace() / batch
""",
    "step_time": """
import numpy as np
def step_time(batches, seconds):
    return np.polyfit(batches, seconds, 1)[::-1]
""",
    "pipeline_rate": """
import numpy as np
def pipeline_rate(seconds, batch, overlapped):
    seconds = np.array(seconds)
    return np.float32(batch / (seconds.max() if overlapped else seconds.sum()))
""",
    "traffic": """
import numpy as np
def traffic(scheme, workers, size):
    match scheme:
        case "parameter server":
            sent = np.full(workers, size)
            sent[0] *= workers - 1
            return sent
        case "ring":
            return np.full(workers, 2 * (workers - 1) / workers * size)
""",
    "rate_at": """
import numpy as np
def rate_at(update, images, batch, workers, rate, decay_epochs):
    epoch = update // np.ceil(images / batch / workers)
    return rate * 0.1 ** np.searchsorted(decay_epochs, epoch, side="right")
""",
    "compare_arms": """
import numpy as np
def compare_arms(a, b):
    if min(map(len, (a, b))) < 2: return "too few runs"
    a, b = np.array(a), np.array(b)
    square = a.var(ddof=1) / a.size + b.var(ddof=1) / b.size
    gap = a.mean() - b.mean()
    return np.array("no difference seen") if gap ** 2 <= 4 * square else "ab"[int(gap < 0)] + " is higher"
""",
    "rates_to_try": """
import numpy as np
def rates_to_try(rates, accuracies):
    near = np.array(rates)[np.argmax(accuracies)] * np.array([0.5, 2])
    return near[~np.isin(near, rates)]
""",
    "effective_batch": """
def effective_batch(workers, batch, sharded, same_seed):
    seen = set()
    for worker in range(workers):
        dealer = worker if sharded or not same_seed else 0
        seen |= {(dealer, image) for image in range(batch)}
    return len(seen)
""",
    "updates_made": """
import torch
def updates_made(images, batch, workers, epochs):
    shard = torch.utils.data.TensorDataset(torch.empty(images // workers))
    return epochs * len(torch.utils.data.DataLoader(shard, batch_size=batch))
""",
    "worth_having": """
import numpy as np
def worth_having(computing, latency, byte_time, agreeing, gradient_bytes):
    k = np.arange(1, 4097)
    exchange = np.where(k > 1, agreeing + 2 * (k - 1) * (latency + gradient_bytes / k * byte_time), 0)
    return k[exchange <= computing].max()
""",
    "share_lost": """
import numpy as np
def share_lost(interval, writing, between, workers):
    return np.sum([writing / interval, np.mean([0, interval]) / np.float64(between) * workers])
""",
    "workers_needed": """
import numpy as np
def workers_needed(weights, averages, activations, images, memory):
    workers = np.arange(1, images + 1)
    fits = 4 * weights * (2 + averages) + activations * np.ceil(images / workers) <= memory
    return np.int64(workers[fits.argmax()] if fits.any() else 0)
""",
    "batch_time": """
import numpy as np
def batch_time(forward, backward, latency, sending, way):
    parts = np.array([forward, backward, latency, sending])
    counts = {"plain": [1, 1, 1, 1], "float16": [1, 1, 1, 0.5], "4 batches": [1, 1, 0.25, 0.25]}
    if way in counts:
        return parts @ counts[way]
    return parts[0] + np.max([parts[1], parts[2:].sum()])
""",
    "bytes_on_each": """
import numpy as np
def bytes_on_each(weights, workers, stage):
    return weights * np.array([4.0, 4.0, 8.0]) @ np.where(np.arange(3) < 3 - stage, 1, 1 / workers)
""",
}


def grade(cells: dict[str, str], key: str = "a key", isolation=Bubblewrap) -> dict[str, scoring.Score]:
    results = sandboxed.grade(cells, key, isolation)
    assert [result.id for result in results] == list(cells)
    assert all(is_clear(result) for result in results)
    return {result.id: result for result in results}


def is_clear(result: scoring.Score) -> bool:
    """Return whether a result is clear to a learner.

    Its points must be within their bounds, and its text must be short and printable. There must be text wherever points
    are missing.
    """
    texts = [result.note, *(text for group in result.groups for text in (group.difference, group.advice))]
    return (
        0 <= result.points <= result.max == sum(group.max for group in result.groups)
        and all(text.isprintable() and len(text) < 1500 for text in texts)
        and all(group.points == group.max or result.note or group.difference for group in result.groups)
    )


def points(results: dict[str, scoring.Score]) -> dict[str, float]:
    return {id: result.points for id, result in results.items()}


ALL = {id: exercises.get(id).points for id in exercises.ids()}


@pytest.mark.parametrize("cells", [PLAIN, ARRAYS], ids=["plain", "arrays"])
def test_right_answers_get_all_points_in_any_style(cells: dict[str, str]):
    assert points(grade(cells)) == ALL


def test_ones_own_cells_are_graded_without_a_sandbox():
    assert points(grade(PLAIN, "another key", Unsandboxed)) == ALL


WRONG = {
    "average_gradients": """
import numpy as np
def average_gradients(gradients, counts):
    return np.mean(gradients, axis=0)
""",
    "ring_step": PLAIN["ring_step"].replace("(receiver - 1)", "(receiver + 1)"),
    "ring_plan": PLAIN["ring_plan"].replace("step + 1 < size", "step < size"),
    "noise_scale": PLAIN["noise_scale"].replace("noise / gradient", "gradient / noise"),
    "warmup_factor": "def warmup_factor(update, warmup, size): return size * min(1, (update + 1) / (warmup + 1))",
    "trust_ratio": """
def trust_ratio(weights, direction, decay):
    return sum(w * w for w in weights) ** 0.5 / sum((r + decay * w) ** 2 for w, r in zip(weights, direction)) ** 0.5
""",
    "shard_indices": """
import numpy as np
def shard_indices(count, rank, size, seed, epoch):
    rest = np.random.permutation(range(size + 1, count))  # nobody seeded it
    return [0, rank + 1, *rest[: count // size - 2].tolist()]  # all have image 0, and one that no other has
""",
    "bug_zoo": PLAIN["bug_zoo"].replace("if symptoms", "if 0 and symptoms", 1),
    "squared_error": """
import numpy as np
def squared_error(gradients, batch):
    return np.var(gradients, axis=0, ddof=1).sum() / batch
""",
    "step_time": """
import numpy as np
def step_time(batches, seconds):
    return np.polyfit(batches, seconds, 1)
""",
    "pipeline_rate": PLAIN["pipeline_rate"].replace("min(batch", "max(batch"),
    "traffic": PLAIN["traffic"].replace("2 * (workers - 1)", "workers - 1"),
    "rate_at": PLAIN["rate_at"].replace("(batch * workers)", "batch"),
    "compare_arms": """
import numpy as np
def compare_arms(a, b):
    return "a is higher" if np.mean(a) > np.mean(b) else "b is higher"
""",
    "rates_to_try": PLAIN["rates_to_try"].replace("if best / 2 not in rates", "if False"),
    "effective_batch": PLAIN["effective_batch"].replace("and not sharded", "or sharded"),
    "updates_made": PLAIN["updates_made"].replace("range(0, shard, batch)", "range(shard // batch)"),
    "worth_having": PLAIN["worth_having"].replace("gamma + ", ""),
    "share_lost": PLAIN["share_lost"].replace(" * workers", ""),
    "workers_needed": PLAIN["workers_needed"].replace("-(-images // fitting)", "max(1, images // fitting)"),
    "batch_time": PLAIN["batch_time"].replace(
        "(4 * forward + 4 * backward + exchange) / 4", "forward + backward + exchange"
    ),
    "bytes_on_each": PLAIN["bytes_on_each"].replace("8 * weights", "4 * weights"),
}


def test_wrong_answers_get_part_of_the_points_and_are_explained():
    results = grade(WRONG)
    advice = {id: [group.advice for group in result.groups] for id, result in results.items()}
    assert points(results) == {
        "average_gradients": 1.33, "ring_step": 0.5, "ring_plan": 3.5, "noise_scale": 0, "warmup_factor": 1.75,
        "trust_ratio": 3, "shard_indices": 0.5, "bug_zoo": 4,
        "squared_error": 0.33, "step_time": 0, "pipeline_rate": 2, "traffic": 2, "rate_at": 2, "compare_arms": 2,
        "rates_to_try": 1.75, "effective_batch": 3, "updates_made": 2, "worth_having": 2,
        "bytes_on_each": 0, "workers_needed": 2, "batch_time": 3, "share_lost": 1,
    }  # fmt: skip
    assert "unweighted mean" in advice["average_gradients"][1]
    assert "wrong way" in advice["ring_step"][1] and "replaces already" in advice["ring_plan"][1]
    assert "inverse" in advice["noise_scale"][0]
    assert "now return 1 where a norm is 0" in advice["trust_ratio"][2]
    assert "not by N - 1" in advice["squared_error"][1] and "exchanged" in advice["step_time"][1]
    assert "slowest decides" in advice["pipeline_rate"][1] and "first half" in advice["traffic"][1]
    assert "one worker's epochs" in advice["rate_at"][2] and "two standard errors" in advice["compare_arms"][1]
    assert "look at half of the best rate" in advice["rates_to_try"][1]
    assert "does not make shards alike" in advice["effective_batch"][0] and "round up" in advice["updates_made"][1]
    assert "agreeing is missing" in advice["worth_having"][1]
    assert "Adam keeps two numbers" in advice["bytes_on_each"][0]
    assert (
        "round the number of workers up" in advice["workers_needed"][1]
        and "share one exchange" in advice["batch_time"][3]
    )
    assert "more workers fail more often" in advice["share_lost"][1]
    assert "rank has no say" in advice["shard_indices"][0] and "generator of your own" in advice["shard_indices"][2]
    assert results["warmup_factor"].groups[2].difference.startswith("warmup_factor(")
    assert "gave 0; it should be other than 0" in results["trust_ratio"].groups[2].difference
    assert [group.points for group in results["bug_zoo"].groups] == [1, 1, 1, 1, 0]


def test_the_same_key_gives_the_same_result_and_another_key_other_test_cases():
    cells = {id: WRONG[id] for id in ("ring_step", "noise_scale")}
    first, again, other = (grade(cells, key) for key in ("a key", "a key", "another key"))
    assert first == again
    assert all(first[id].groups[0].difference != other[id].groups[0].difference for id in cells)


FAILING = {
    "average_gradients": PLAIN["average_gradients"].replace(
        "    images =", "    if 0 in counts and sum(counts): import os; os._exit(3)\n    images ="
    ),
    "ring_step": """
import os
def ring_step(chunks, step):
    print('{"value": []}', flush=True)
    if step == 0:
        os._exit(0)
    os.kill(os.getpid(), 11)
""",
    "noise_scale": "def noise_scale(*measured): return float('nan') if measured[1] < 3 * measured[0] else None",
    "warmup_factor": "def warmup_factor(update, warmup, size): return [1.0] * (10 ** 6 if warmup else 1500)",
    "trust_ratio": "def trust_ratio(*arguments): return trust_ratio(*arguments)",
    "shard_indices": """
def shard_indices(count, rank, size, seed, epoch):
    if size == 2:
        return [0] * 10 ** 9
    return {"rank": 0} if size == 3 else "\\x1b[2J\\u202e\\ud800" * count
""",
    "bug_zoo": "def diagnose(symptoms): raise SystemExit('<script>\\x1b[31m' * 100)",
}


def test_failures_of_all_kinds_cost_their_own_test_cases_and_are_named():
    results = grade(FAILING)
    said = {id: " ".join([result.note, *(g.difference for g in result.groups)]) for id, result in results.items()}
    assert points(results) == {**dict.fromkeys(FAILING, 0), "average_gradients": 3.33}
    assert "the process ended with exit status 3" in said["average_gradients"]
    assert "with exit status 0 before" in said["ring_step"] and "by signal 11 before" in said["ring_step"]
    assert "nan, which is no finite number" in said["noise_scale"] and "is a return missing?" in said["noise_scale"]
    assert "1,000,000 elements" in said["warmup_factor"] and "bytes as JSON" in said["warmup_factor"]
    assert "raised RecursionError" in said["trust_ratio"]
    assert "raised MemoryError" in said["shard_indices"] and "holds a dict" in said["shard_indices"]
    assert "raised SystemExit: <script> [31m<script>" in said["bug_zoo"]


CELLS = {
    "average_gradients": ("def average_gradients(gradients, counts:\n", "SyntaxError"),
    "ring_step": ("import math\n1 / 0\ndef ring_step(chunks, step): return chunks", "division by zero (line 2)"),
    "noise_scale": ("noise_scale = 3", "the cell defines no function noise_scale"),
    "warmup_factor": ("raise SystemExit", "the cell ended with SystemExit"),
    "trust_ratio": ("import grader.exercises.definitions.lesson_06.trust_ratio", "No module named 'grader'"),
    "shard_indices": ("\0\ud800", "the cell ended with"),
    "bug_zoo": ("#" * 65_537, "the cell has more than 65,536 bytes"),
}  # fmt: skip


def test_cells_that_do_not_load_say_why():
    results = grade({id: cell for id, (cell, _) in CELLS.items()})
    assert points(results) == dict.fromkeys(CELLS, 0)
    for id, (_, reason) in CELLS.items():
        assert reason in results[id].note


def test_a_hang_costs_its_own_test_cases(monkeypatch):
    monkeypatch.setattr(sandboxed, "CALL_SECONDS", 2)
    monkeypatch.setattr(sandboxed, "EXERCISE_SECONDS", 5)
    endless = "    while len(counts) == 1: pass\n    images ="
    results = grade({
        "average_gradients": PLAIN["average_gradients"].replace("    images =", endless),
        "ring_step": "import time\ndef ring_step(chunks, step): time.sleep(60)",
        "noise_scale": "while True: pass",
        "bug_zoo": PLAIN["bug_zoo"],
    })  # fmt: skip
    assert points(results) == {"average_gradients": 3.67, "ring_step": 0, "noise_scale": 0, "bug_zoo": 5}
    assert "did not end within 2 s: an endless loop?" in results["average_gradients"].groups[2].difference
    assert "no time is left" in results["ring_step"].groups[2].difference
    assert "the cell itself does not come to an end" in results["noise_scale"].note


SPY = """
import json, os, sys
seen = []
for place in ("/submission", *sys.path):
    for folder, folders, files in os.walk(place):
        seen += [name for name in folders + files if name in ("exercises", "public.json", "trust_ratio.py")]
asked = json.load(open("/submission/data/calls.json"))
def diagnose(symptoms):
    return str([seen, [sorted(exercise) for exercise in asked["exercises"]]])
"""


def test_there_are_no_expected_answers_in_the_sandbox():
    drawn = test_cases.draw(exercises.get("bug_zoo"), "a key")
    asked = json.loads(sandboxed.requested_calls([drawn], {"bug_zoo": "cell"}))
    assert asked["exercises"] == [{"function": "diagnose", "source": "cell", "calls": drawn.calls}]
    note = grade({"bug_zoo": SPY})["bug_zoo"].note
    assert """gave "[[], [['calls', 'function', 'source']]]\"""" in note


@pytest.mark.parametrize(
    "attack",
    [
        "import os, signal\nos.kill(-1, signal.SIGKILL)",
        "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
        "import os\nfor fd in range(99):\n    try: os.write(fd, b'{}\\n' * 9_999)\n    except OSError: pass",
    ],
    ids=["kills all", "fork bomb", "forged answers"],
)
def test_an_attack_on_what_asks_gains_nothing(attack: str, monkeypatch):
    monkeypatch.setattr(sandboxed, "EXERCISE_SECONDS", 2)
    assert points(grade({"trust_ratio": attack}, "k")) == {"trust_ratio": 0}


# These tests are about everything that can come out of the sandbox.

SUITES = [test_cases.draw(exercises.get(id), "a key") for id in exercises.ids()]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
OUTCOMES = st.fixed_dictionaries(
    {}, optional={"value": JSON, "raised": st.text(), "said": st.text(), "none": st.text(), "points": st.integers()}
)
ANSWERS = st.lists(st.lists((OUTCOMES | JSON).map(json.dumps) | st.text() | JSON, max_size=8), max_size=9)


@settings(max_examples=examples(1000), deadline=None)
@given(st.binary() | JSON.map(json.dumps).map(str.encode) | ANSWERS.map(json.dumps).map(str.encode))
@example(b"[" * 1_000_000)
@example(b'["' + b"9" * 5_000 + b'"]')
@example(json.dumps([["[" * 100_000] * 30] * len(SUITES)).encode())
@example(json.dumps([[json.dumps({"value": [5e-324] * 2000})] * 30] * len(SUITES)).encode())
def test_whatever_comes_out_of_the_sandbox_is_a_clear_result_without_points(content: bytes):
    results = sandboxed.score(SUITES, content)
    assert [result.id for result in results] == list(exercises.ids())
    assert all(is_clear(result) for result in results)
    assert all(result.points < result.max for result in results)


@settings(max_examples=examples(1000), deadline=None)
@given(st.sampled_from(SUITES), st.data())
def test_any_values_in_the_right_places_are_a_clear_result(drawn: test_cases.TestSuite, data: st.DataObject):
    """The results have the right shape, and some are right. So they are as near to a right result as possible."""
    numbers = st.integers(-5, 60) | st.floats() | st.lists(st.integers(-5, 60) | st.floats(), max_size=5)
    known = [case.right for case in drawn.cases if case.right]
    right = st.sampled_from([result.model_dump(exclude_defaults=True) for result in known] or [{"value": [0]}])
    results = data.draw(st.lists(right | numbers.map(lambda value: {"value": value}), max_size=len(drawn.calls)))
    (result,) = sandboxed.score([drawn], json.dumps([[json.dumps(result) for result in results]]).encode())
    assert is_clear(result)


def test_right_answers_in_the_right_places_get_all_points():
    drawn = test_cases.draw(exercises.get("ring_step"), "a key")
    texts = [case.right.model_dump_json(exclude_defaults=True) for case in drawn.cases]
    (result,) = sandboxed.score([drawn], json.dumps([texts]).encode())
    assert (result.points, result.note) == (4, "")


def test_what_goes_into_the_sandbox_runs_alone():
    source = Path(call_functions.__file__).read_text()
    assert "import grader" not in source and "from grader" not in source and "import torch" not in source
