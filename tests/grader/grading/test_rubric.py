"""The rubric judges a made-up right run, and runs with one thing changed."""

import dataclasses
import math
import statistics

import pytest

from grader.common.contract import BASE_RATE
from grader.grading.audit import Audit
from grader.grading.checkpoint import Measured
from grader.grading.error_messages import last_error
from grader.grading.evidence import Evidence, Missing
from grader.grading.grade import Report, judge
from grader.grading.rubric import PASS_NEEDS, RUBRIC
from grader.run.hooks.grader_observer.log_format import PROJECTIONS
from grader.run.worker_log import End, Update, Worker
from tests.support.right_run import PROFILE, UPDATES, WEIGHTS_BYTES, gradient, metrics, outside, right_run, run, workers


def judged(seen: Evidence) -> Report:
    return judge(seen, "made up", None)


def unmet(result: Report) -> set[str]:
    return {row.id for row in result.rows if row.status != "met"}


def test_a_right_run_has_all_points():
    result = judged(right_run())
    assert (result.passed, result.points, unmet(result)) == (True, 100, set())
    assert all(row.message == "" for row in result.rows)


def shorter(worker: Worker, count: int) -> Worker:
    """Return a worker that made only the first `count` updates."""
    return dataclasses.replace(worker, updates=worker.updates[:count], end=End(end=count, wrote=[]))


def later_each_epoch(rank: int, update: Update) -> list[int]:
    """Return the images of a worker that has its images in one order, and begins one later in each epoch."""
    epoch, number = divmod(update.update - 1, UPDATES // PROFILE.epochs)
    own = PROFILE.train_images // 4
    return [4 * ((number * PROFILE.batch_size + at + epoch) % own) + rank for at in range(PROFILE.batch_size)]


NEEDED = 6 * WEIGHTS_BYTES * UPDATES  # bytes between the workers
MISSED = Measured(weights=UPDATES, visible=0.6, secret=0.4)

ONE_MISTAKE = {
    "each worker applies its own gradient": ("averaged", {"workers": workers(lambda r, u: {"applied": u.local})}),
    "all apply worker 0's gradient": (
        "averaged", {"workers": workers(lambda r, u: {"applied": gradient(0, u.update)})}),
    "one update of many is not averaged": (
        "averaged", {"workers": workers(lambda r, u: {"applied": u.local} if u.update == 9 else {})}),
    "gradients hidden from the observer": ("averaged", {"workers": workers(lambda r, u: {"local": None})}),
    "no bytes between the workers": ("averaged", {"run": run(outside=outside(loopback=[(20, 9_000)]))}),
    "bytes sent all at once": (
        "averaged", {"run": run(outside=outside(loopback=[(n, 1 if n < 19 else NEEDED) for n in range(21)]))}),
    "nothing sent, and logs that say that nothing was to be sent": (
        "averaged", {"workers": workers(first={"bytes": 0}), "run": run(outside=outside(loopback=[(0, 0), (20, 0)]))}),
    "one worker does all the work": (
        "averaged", {"run": run(outside=outside(cpu_seconds={0: 200.0, 1: 5.0, 2: 5.0, 3: 5.0}))}),
    "gradients that do not fit the images": (
        "averaged", {"audit": Audit(asked=20, agreement=(0.8,) * 14 + (0.0,) * 6, changes=(0.6,) * 20)}),
    "weights that do not follow the gradients": (
        "averaged", {"audit": Audit(asked=20, agreement=(0.8,) * 20, changes=(0.001,) * 20)}),
    "an answer that was not promised": (
        "averaged", {"audit": Audit(asked=20, false=1, agreement=(0.8,) * 19, changes=(0.6,) * 19)}),
    "many questions without an answer": (
        "averaged", {"audit": Audit(asked=20, silent=6, agreement=(0.8,) * 14, changes=(0.6,) * 14)}),
    "no question at all": ("averaged", {"audit": Audit()}),
    "images that no gradient can be computed of": ("averaged", {"audit": Audit(asked=20, unclear=20)}),
    "gradients that could not be computed again": (
        "averaged", {"audit": Audit(asked=20, failure="no answer within 1800 s")}),
    "few bytes sent, and logs that say that few were to be sent": (
        "averaged", {"workers": workers(first={"bytes": 1000}),
                     "run": run(outside=outside(loopback=[(n, 6_000 * n) for n in range(21)]))}),
    "gradients of next to nothing": (
        "averaged", {"audit": Audit(asked=20, agreement=(0.8,) * 20, changes=(0.6,) * 20, lengths=(1e-6,) * 20)}),
    "steps that are not told": (
        "averaged", {"workers": workers(lambda r, u: {"commitment": "a", "step": None, "moved": None})}),
    "weights that something else moves between the updates": (
        "averaged", {"workers": workers(lambda r, u: {"step": 0.1, "moved": 1.0} if r == 1 else {})}),
    "four networks": ("averaged", {"workers": workers(first={"size": 1})}),
    "weights part after an update": (
        "same_start", {"workers": workers(lambda r, u: {"weights": 99} if r == 2 and u.update == 5 else {})}),
    "equal shards": ("shards", {"workers": workers(lambda r, u: {"images": [1, 2, 3, 4]})}),
    "a batch divided by the number of workers": ("batch", {"profile": dataclasses.replace(PROFILE, batch_size=16)}),
    "one order that begins one image later in each epoch": (
        "shards", {"workers": workers(lambda r, u: {"images": later_each_epoch(r, u)})}),
    "visible test images that the network knows": (
        "shards", {"checkpoint": Measured(UPDATES, 0.9, 0.5), "metrics": [metrics(1), metrics(2, test_accuracy=0.9)]}),
    "test images mixed with training images": ("shards", {"workers": workers(lambda r, u: {"test_images": 4})}),
    "test images in some updates": (
        "shards", {"workers": workers(lambda r, u: {"images": [], "test_images": 4} if u.update > 18 else {})}),
    "updates that differ in number": ("ends", {"workers": [*workers()[:3], shorter(workers()[3], 18)]}),
    "the accuracy of one worker's images": (
        "metrics", {"metrics": [metrics(1, test_accuracy=0.4), metrics(2, test_accuracy=0.604)],
                    "visible_images": 1000, "checkpoint": Measured(UPDATES, 0.602, 0.58)}),
    "a checkpoint of another architecture": (
        "checkpoint", {"checkpoint": Missing("model.pt lacks classify.weight")}),
    "the best epoch on the test set": ("checkpoint", {"checkpoint": Measured(10, 0.6, 0.58)}),
    "back to the best epoch, and one more update with the rate 0": (
        "checkpoint", {"workers": workers(lambda r, u: {"weights": 10} if u.update == UPDATES else {}),
                       "checkpoint": Measured(10, 0.6, 0.58)}),
    "nearly back to the best epoch": (
        "checkpoint", {"workers": workers(lambda r, u: {"moved": 11.0} if u.update == UPDATES - 1 else {})}),
    "three jumps, before the last updates": (
        "checkpoint", {"workers": workers(lambda r, u: {"moved": 4.0} if u.update > UPDATES - 3 else {})}),
    "weights from elsewhere": ("checkpoint", {"checkpoint": Measured(12345, 0.6, 0.58)}),
    "every worker writes the checkpoint": (
        "one_writer", {"run": run(outside=outside(writes={"model.pt": 4, "metrics.jsonl": 1}))}),
    "every worker writes metrics": ("one_writer", {"workers": workers(lambda r, u: {"wrote": ["metrics.jsonl"]})}),
    "rank 0's accuracy": ("metrics", {"metrics": [metrics(1), metrics(2, test_accuracy=0.7)]}),
    "one line for two epochs": ("metrics", {"metrics": [metrics(1)]}),
    "no metrics": ("metrics", {"metrics": Missing("metrics.jsonl was not written")}),
    "too little learnt": ("target", {"checkpoint": MISSED}),
    "trained twice as long as asked": ("target", {"profile": dataclasses.replace(PROFILE, epochs=1)}),
    "all on one of four GPUs": ("device", {"workers": workers(first={"device": "cuda:0"}), "gpus": 4}),
}  # fmt: skip


@pytest.mark.parametrize("mistake", ONE_MISTAKE)
def test_one_mistake_costs_its_own_line_alone_and_is_explained(mistake: str):
    line, changes = ONE_MISTAKE[mistake]
    result = judged(right_run(**changes))
    rows = {row.id: row for row in result.rows}
    assert {name for name, row in rows.items() if row.points < row.max} == {line}
    assert rows[line].message or rows[line].seen
    for name in unmet(result) - {line}:
        assert rows[name].message.startswith("Follows from the line")


def test_no_pass_with_weights_from_elsewhere():
    assert not judged(right_run(checkpoint=Measured(12345, 0.6, 0.58))).passed


def test_no_pass_without_averaging_or_target_though_one_mistake_costs_once():
    apart = workers(lambda r, u: {"applied": u.local, "weights": r})
    result = judged(right_run(workers=apart, checkpoint=Measured(weights=0, visible=0.3, secret=0.3)))
    assert not result.passed
    assert unmet(result) == {"averaged", "same_start", "metrics", "target"}
    assert result.points == 80


STOPPED_RUNS = {
    "stopped after its last update": (20, {"stopped": "Stopped: no update."}, 60),
    "a worker that was killed after its last update": (20, {"status": 1}, 60),
    "stopped after half of its updates": (10, {"stopped": "Stopped: no update."}, 60),
    "stopped while its rate still climbs": (2, {"stopped": "Stopped: no update."}, 45),
}


@pytest.mark.parametrize("case", STOPPED_RUNS)
def test_a_run_that_does_not_end_well_does_not_pass_and_has_at_most_60_points(case: str):
    updates, ending, points = STOPPED_RUNS[case]
    made = [shorter(worker, updates) for worker in workers()]
    left = {} if updates == 20 else {"checkpoint": Missing("no file"), "metrics": Missing("no file")}
    seen = outside(**({} if updates == 20 else {"writes": {}}))
    result = judged(right_run(workers=made, run=run(**ending, outside=seen), **left))
    assert (result.passed, result.points) == (False, points)
    assert result.needs["the run ended well"] is False
    assert all(row.points == 0 for row in result.rows if row.status == "not_judged")
    assert not any(row.status == "excused" for row in result.rows)
    assert bool(result.limit) == (points == 60)


def test_a_mistake_that_was_seen_before_a_crash_is_told():
    flat = workers(lambda r, u: {"lr": [0.4]})
    crashed = right_run(
        workers=[shorter(worker, 10) for worker in flat], run=run(status=1), checkpoint=Missing("no file")
    )
    rows = {row.id: row for row in judged(crashed).rows}
    assert rows["rate"].status == "unmet" and "Climb to the scaled rate" in rows["rate"].message
    assert rows["target"].status == "not_judged"


@pytest.mark.parametrize("end", [{"stopped": "Stopped."}, {"status": 1}], ids=["the grader ends it", "the others fail"])
def test_one_worker_that_stands_still_is_no_reason_to_say_that_it_does_not_average(end: dict):
    burnt = outside(cpu_seconds={0: 40.0, 1: 40.0, 2: 5.0, 3: 40.0}, cpu_moving=dict.fromkeys(range(4), 5.0))
    result = judged(right_run(run=run(**end, outside=burnt), checkpoint=Missing("model.pt is missing")))
    assert "averaged" not in unmet(result)


def test_a_program_without_an_optimizer_is_told_why_one_is_needed():
    none = [Worker() for _ in range(4)]
    row = judged(right_run(workers=none, log="[0]<stderr>:UserWarning: a scheduler")).rows[0]
    assert "torch.optim optimizer makes a step" in row.message and "scheduler" not in row.message


LONGER = dataclasses.replace(PROFILE, epochs=4)


@pytest.mark.parametrize(
    ("rates", "says"),
    [
        ([0.1 + 0.1 * (update // 10) for update in range(40)], "changes only once an epoch, at update 11, 21, 31"),
        ([0.01 * (update + 1) for update in range(40)], "still does so in the last epoch"),
    ],
)
def test_a_warmup_that_never_ends_is_described(rates: list[float], says: str):
    climbing = workers(lambda r, u: {"lr": [rates[u.update - 1]]}, settings=LONGER)
    seen = right_run(LONGER, workers=climbing, checkpoint=Measured(weights=40, visible=0.6, secret=0.4))
    row = next(row for row in judged(seen).rows if row.id == "rate")
    assert (row.status, row.points) == ("unmet", 5) and says in row.seen


def end_at(rate: float) -> list[Worker]:
    """Return workers that warm up and end at a rate."""
    return workers(lambda r, u: {"lr": [rate]} if u.update == UPDATES else {})


ADVICE = {
    "lesson 07": {"workers": end_at(0.0)},
    "Let it fall towards 0": {"workers": end_at(0.4)},
    "not finite at update 5": {"workers": workers(lambda r, u: {"loss": math.nan} if r == 2 and u.update == 5 else {})},
    "high for AdamW": {"workers": workers(first={"optimizer": "AdamW"})},
    "Try other rates for Adam": {"workers": workers(
        lambda r, u: {"lr": [0.001 if 3 < u.update < UPDATES else 0.0002]}, first={"optimizer": "Adam"})},
}  # fmt: skip


@pytest.mark.parametrize("advice", ADVICE)
def test_the_advice_for_a_missed_target_fits_what_was_seen(advice: str):
    row = judged(right_run(checkpoint=MISSED, **ADVICE[advice])).rows[-1]
    assert row.status == "unmet" and advice in row.message


@pytest.mark.parametrize(
    ("rates", "share"),
    [
        ([0.4] * 20, 5),  # The rate is scaled, but not warmed up.
        ([0.1] * 20, 0),  # The rate is neither scaled nor warmed up.
        ([0.025, 0.05, 0.1] + [0.1] * 17, 5),  # The rate is warmed up, but not scaled.
        ([0.4, 0.8, 1.6] + [1.6] * 17, 5),  # The rate is scaled twice.
        ([0.1, 0.2, 0.4] + [0.1] * 17, 10),
    ],
)
def test_scaling_and_warmup_are_half_of_the_rates_points_each(rates: list[float], share: int):
    seen = right_run(workers=workers(lambda r, u: {"lr": [rates[u.update - 1]]}), checkpoint=MISSED)
    assert next(row.points for row in judged(seen).rows if row.id == "rate") == share


def test_a_rate_that_reaches_the_target_is_right_whatever_it_is():
    seen = right_run(workers=workers(lambda r, u: {"lr": [u.update * BASE_RATE]}))
    assert judged(seen).points == 100


def test_summed_gradients_at_the_base_rate_are_averaged_gradients_at_the_scaled_rate():
    summed = workers(lambda r, u: {"applied": [4 * part for part in u.applied], "lr": [u.lr[0] / 4]})
    assert judged(right_run(workers=summed)).points == 100


def test_clipped_and_compressed_gradients_are_averaged_gradients():
    clipped = workers(lambda r, u: {"applied": [0.1 * part * (1 + 1e-3 * r) for part in u.applied]})
    assert judged(right_run(workers=clipped)).points == 100


def test_accumulated_batches_are_one_batch():
    halves = workers(lambda r, u: {"calls": 2})
    assert judged(right_run(workers=halves)).points == 100


@pytest.mark.parametrize(("size", "met"), [(4, True), (8, False)])
def test_images_fetched_an_epoch_at_a_time_are_counted_on_average(size: int, met: bool):
    def all_at_once(rank, update):
        shard = [index for index in range(160) if index % 4 == rank]
        first = update.update % 10 == 1
        return {"images": (shard * (size // 4) if first else []), "calls": int(first)}

    assert ("batch" not in unmet(judged(right_run(workers=workers(all_at_once))))) == met


def test_a_batch_of_all_workers_on_each_worker_is_not_accumulation():
    def all_images(rank, update):
        return {"images": [(update.images[0] + 40 * rank + n) % 160 for n in range(16)]}

    assert "batch" in unmet(judged(right_run(workers=workers(all_images))))


def test_the_same_order_each_epoch_costs_half_of_the_shards():
    same = workers()
    for worker in same:
        for early, late in zip(worker.updates[:10], worker.updates[10:], strict=True):
            late.images[:] = early.images
    row = next(row for row in judged(right_run(workers=same)).rows if row.id == "shards")
    assert row.points == 5 and "Shuffle anew" in row.message


def test_gpus_are_shared_where_there_are_fewer_than_workers():
    def on(devices):
        made = workers()
        for worker, device in zip(made, devices, strict=True):
            worker.first.device = device
        return made

    for devices, gpus, met in [
        (["cuda:0"] * 4, 1, True),
        (["cuda:0", "cuda:1"] * 2, 2, True),
        (["cuda:0"] * 3 + ["cuda:1"], 2, False),
        ([f"cuda:{rank}" for rank in range(4)], 4, True),
        (["cpu"] * 4, 4, True),  # This is a Horovod without CUDA.
    ]:
        result = judged(right_run(workers=on(devices), gpus=gpus))
        assert ("device" not in unmet(result)) == met, devices


def test_a_run_that_diverged_is_not_accused_of_invented_gradients():
    def diverges(rank: int, update: Update) -> dict:
        lost = [math.nan] * PROJECTIONS
        finite = {"commitment": "0" * 64, "step": 1.0, "moved": 0.0}
        return {"local": lost, "applied": lost, "loss": None} if update.update > 5 else finite

    missing = Missing("model.pt conv.weight holds numbers that are not finite; the training diverged")
    for audit, status in (
        (Audit(asked=12, agreement=(0.0,) * 12, changes=(math.nan,) * 12), "met"),
        (Audit(asked=12, silent=12), "unmet"),
    ):
        result = judged(right_run(workers=workers(diverges), audit=audit, checkpoint=missing))
        (row,) = [row for row in result.rows if row.id == "averaged"]
        assert row.status == status and not result.passed


def test_a_network_of_another_shape_is_told_by_its_checkpoint_and_not_accused():
    other = Missing("model.pt is not of ResNet9(width=16): prepare.0.weight is float32 (8, 3, 3, 3)")
    result = judged(right_run(audit=Audit(asked=12, silent=12), checkpoint=other))
    lines = {row.id: row for row in result.rows}
    assert lines["averaged"].status == "met" and lines["checkpoint"].status == "unmet" and not result.passed


@pytest.mark.parametrize("value", [math.nan, math.inf, 1e308, -1e308, 0.0])
def test_absurd_numbers_are_judged_like_any_other(value: float):
    absurd = workers(
        lambda r, u: {"lr": [value], "local": [value] * PROJECTIONS, "applied": [value] * PROJECTIONS, "loss": value}
    )
    result = judged(right_run(workers=absurd))
    assert not result.passed
    assert statistics.fmean(row.points for row in result.rows) >= 0


def test_a_worker_that_goes_on_after_the_checkpoint_of_the_others_is_judged_by_theirs():
    def ahead(rank: int, update: Update) -> dict:
        return {"weights": {UPDATES - 1: UPDATES, UPDATES: 999}.get(update.update, update.weights)} if rank == 0 else {}

    rows = {row.id: row for row in judged(right_run(workers=workers(ahead))).rows}
    assert rows["checkpoint"].points == rows["checkpoint"].max


def test_slow_weights_that_are_mixed_in_again_and_again_are_no_return_to_earlier_ones():
    mixed = workers(lambda r, u: {"moved": 3.5} if u.update % 5 == 0 else {})
    assert judged(right_run(workers=mixed)).points == 100


def test_the_rubric_has_100_points_and_its_lines_follow_only_lines_above_them():
    assert sum(line.points for line in RUBRIC) == 100
    seen: set[str] = set()
    for line in RUBRIC:
        assert line.asks
        assert line.points > 0
        assert set(line.follows) <= seen, "a line may only follow from lines above it"
        seen.add(line.id)
    assert {need.line for need in PASS_NEEDS} <= seen


def test_the_cause_of_a_crash_is_found_among_the_lines_of_the_launcher():
    log = "\n".join([
        "[1]<stderr>:Traceback (most recent call last):",
        '[1]<stderr>:  File "train.py", line 9, in <module>',
        "[1]<stderr>:ZeroDivisionError: division by zero",
        "[0]<stderr>:Terminated",
        "RuntimeError: Horovod detected that one or more processes exited with non-zero status",
    ])  # fmt: skip
    assert last_error(log) == "Worker 1 said: ZeroDivisionError: division by zero (train.py, line 9)"
    assert last_error("[2]<stderr>:train.py: no data folder D.") == "Worker 2 said: train.py: no data folder D."
    assert "by hand" in last_error("")


def test_a_consequence_of_a_crash_is_not_its_cause():
    shut = "[3]<stderr>:HorovodInternalError: Horovod has been shut down. This was caused by an exception on one of ..."
    assert last_error(f"[1]<stderr>:KeyError: 'lr'\n{shut}") == "Worker 1 said: KeyError: 'lr'"
    assert last_error(shut).startswith("Worker 3 still waited for the others when one of them ended.")
    told = last_error(f"[1]<stderr>:    assert self._allreduce_delay[p] > 0\n[1]<stderr>:AssertionError\n{shut}")
    assert "Step the optimizer that hvd.DistributedOptimizer returned" in told
    assert "BrokenPipeError" in last_error(f"[1]<stderr>:BrokenPipeError: [Errno 32] Broken pipe\n{shut}")


def test_a_worker_that_the_launcher_killed_is_not_taken_for_the_cause_of_the_failure():
    failed = "[3]<stderr>:KeyError: 'lr'\nProcess 3 exit with status code 1.\n"
    ended_by_launcher = (
        "Terminating remaining workers after failure of Process 3.\nProcess 2 exit with status code 137.\n"
    )
    assert last_error(failed + ended_by_launcher) == "Worker 3 said: KeyError: 'lr'"
    silent = "Process 3 exit with status code 1.\n"
    assert "by hand" in last_error(silent + ended_by_launcher)


def test_a_worker_that_waited_and_was_killed_late_is_not_taken_for_a_killed_one():
    shut = "HorovodInternalError: Horovod has been shut down."
    log = f"[1]<stderr>:{shut}\n[2]<stderr>:{shut}\nProcess 1 exit with status code 1.\n"
    told = last_error(log + "Process 2 exit with status code 137.\n")
    assert told == "Workers 1, 2 still waited for the others when one of them ended."
    silent_first = f"[1]<stderr>:{shut}\nProcess 3 exit with status code 1.\nProcess 2 exit with status code 137.\n"
    assert last_error(silent_first) == "Worker 1 still waited for the others when one of them ended."


def test_a_killed_worker_is_named_even_if_the_others_ended_before_it():
    shut = "[3]<stderr>:horovod.common.exceptions.HorovodInternalError: Horovod has been shut down.\n"
    assert last_error("Process 1 exit with status code 137.\n" + shut).startswith("Worker 1 was killed")
    late = "Process 3 exit with status code 1.\nProcess 1 exit with status code 137.\n"
    assert last_error(shut + late).startswith("Worker 1 was killed")


@pytest.mark.parametrize(
    ("images", "advice"), [([1, 2], "fetch at each update the images"), ([], "No update uses training images.")]
)
def test_an_audit_without_gradients_says_whether_training_images_are_missing(images: list[int], advice: str):
    made = workers(lambda rank, update: {"images": images})
    result = judged(right_run(workers=made, audit=Audit(asked=20, unclear=20)))
    (row,) = [row for row in result.rows if row.id == "averaged"]
    assert row.status == "unmet" and advice in row.message


@pytest.mark.parametrize(
    ("reason", "advice"),
    [
        ("model.pt was not written", "On rank 0, after training"),
        ("model.pt is not of ResNet9(width=16): it lacks classify.weight", "Train and save the starter's network"),
        ("model.pt is not a state dict that loads with weights_only=True: x", "Save only its state dict"),
        ("model.pt has names with the prefix 'module.'", "inside the wrapper"),
        ("model.pt classify.bias holds numbers that are not finite; the training diverged", "Lower the learning rate"),
    ],
)
def test_the_advice_on_a_checkpoint_fits_what_is_wrong_with_it(reason: str, advice: str):
    result = judged(right_run(checkpoint=Missing(reason)))
    (row,) = [row for row in result.rows if row.id == "checkpoint"]
    assert row.seen == reason and advice in row.message


IN_STEP = '[3]<stderr>:  File "/venv/horovod/torch/optimizer.py", line 249, in synchronize\n'


@pytest.mark.parametrize(
    ("left_out", "place", "advice"),
    [
        (0, "", "a call after the training"),
        (0, IN_STEP, "give each equally many batches"),
        (1, "", "give each equally many batches"),
    ],
)
def test_a_worker_that_waited_is_told_whether_it_waited_in_an_update(left_out: int, place: str, advice: str):
    log = f"{place}[3]<stderr>:HorovodInternalError: Horovod has been shut down. This was caused by an exception on ..."
    made = [shorter(worker, PROFILE.updates() - left_out) for worker in workers()]
    result = judged(right_run(workers=made, run=run(status=1), log=log))
    (row,) = [row for row in result.rows if row.id == "ends"]
    assert row.message.startswith("Worker 3 still waited for the others when one of them ended.")
    assert advice in row.message
