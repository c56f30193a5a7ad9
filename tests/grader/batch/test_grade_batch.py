"""Classes graded on real Dask clusters: with a short grading function, and at the end with the real one."""

import contextlib
import csv
import hashlib
import io
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain, pairwise
from pathlib import Path

import cloudpickle
import psutil
import pytest
from filelock import FileLock
from rich.console import Console

from grader.__main__ import main
from grader.batch import dask_cluster, grade_batch, journal
from grader.batch.dask_cluster import Files, Slot, Submission
from grader.batch.names import safe_name
from tests.conftest import REPOSITORY, run_python, until

# Slots start sooner if they need not import this module: cloudpickle then sends them functions as they are, and Dask
# asks cloudpickle for what has no name, like a lambda.
cloudpickle.register_pickle_by_value(sys.modules[__name__])
CORES = sorted(os.sched_getaffinity(0))
TWO_SLOTS = [Slot(CORES, []), Slot(CORES, [])]
LINES = {"begins": 40, "target": 60}


def tiny(submission: Submission, settings: journal.Settings, folder: Path) -> Files:
    """Does what the submission's `train.py` says in JSON, and notes when it began and ended."""
    orders = json.loads(submission.files["train.py"])
    began = time.time()
    note(orders, submission.name, "began")
    time.sleep(orders.get("seconds", 0))
    if orders.get("kills", 0) >= _begun(orders, submission.name):
        os.kill(os.getpid(), signal.SIGKILL)
    if orders.get("fails", 0) >= _begun(orders, submission.name):
        raise ZeroDivisionError("a mistake of\nthe grader's [bold]")
    rows = [{"id": name, "points": most, "max": most, "message": ""} for name, most in LINES.items()]
    if not orders.get("right", True):
        rows[1] |= {"points": 0, "message": "Scale the rate."}
    points = sum(row["points"] for row in rows)
    seen = {"cores": sorted(os.sched_getaffinity(0)), "pid": os.getpid(), "began": began, "ended": time.time()}
    content = {"submission": submission.name, "passed": points == 100, "points": points, "rows": rows, "record": seen}
    return {"report.json": json.dumps(content)}


def note(orders: dict, *words: str) -> None:
    with open(orders["log"], "a") as log:  # noqa: PTH123
        log.write(" ".join([*words, str(os.getpid())]) + "\n")


def _begun(orders: dict, name: str) -> int:
    with open(orders["log"]) as log:  # noqa: PTH123
        return sum(line.startswith(f"{name} began ") for line in log)


class Class:
    """Submissions in a folder, and the batch that grades them."""

    def __init__(self, root: Path | str):
        self.root = Path(root)
        self.folder, self.output, self.log = self.root / "class", self.root / "graded", self.root / "log"
        self.folder.mkdir(exist_ok=True)
        self.log.touch()

    def add(self, name: str, **orders: object) -> None:
        (self.folder / name).mkdir(exist_ok=True)
        (self.folder / name / "train.py").write_text(json.dumps({"log": str(self.log), **orders}))

    def grade(self, *options: str, does: dask_cluster.Grade = tiny) -> tuple[int, str]:
        """Run `python -m grader batch` with `does` on two slots. The exit status, and what the terminal shows."""
        command = ["batch", str(self.folder), "--output", str(self.output), *options]
        with self.graded_by(does), contextlib.redirect_stdout(io.StringIO()) as output:
            return main(command), output.getvalue()

    @contextlib.contextmanager
    def graded_by(self, does: dask_cluster.Grade = tiny) -> Iterator[None]:
        """Let a batch grade with `does` on two slots of this machine."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(grade_batch, "grade_submission", lambda *task: does(*task))
            patch.setattr(dask_cluster, "slots_of_this_machine", lambda limit: TWO_SLOTS)
            patch.setenv("COLUMNS", "200")
            yield

    def begun(self) -> list[str]:
        return [line.split()[0] for line in self.log.read_text().splitlines()]

    def pids(self) -> list[int]:
        return [int(line.split()[-1]) for line in self.log.read_text().splitlines()]

    def rows(self) -> list[dict]:
        with (self.output / "results.csv").open(newline="") as file:
            return list(csv.DictReader(file))

    def report(self, name: str) -> dict:
        return json.loads((self.output / safe_name(name) / "report.json").read_text())

    def journaled(self) -> list[str]:
        path = self.output / "journal.jsonl"
        return [result.name for result in journal.read(path.read_bytes()).results] if path.exists() else []


@pytest.fixture
def group(tmp_path: Path) -> Class:
    return Class(tmp_path)


def test_a_class_is_graded_side_by_side_each_slot_one_at_a_time(group: Class, capfd):
    for number in (3, 1, 2, 4):
        group.add(f"s{number}", seconds=2, right=number != 2)
    status, told = group.grade()
    assert (status, capfd.readouterr().err) == (0, "")
    assert "0 of 4 submissions have a result" in told and "3 of 4 passed" in told
    assert "4 of 4: s" in told and re.search(r"100 points, passed; about \d+ s left", told)
    runs = [group.report(f"s{number}")["record"] for number in (1, 2, 3, 4)]
    moments = sorted([(run["began"], 1) for run in runs] + [(run["ended"], -1) for run in runs])
    at_work = [sum(change for _, change in moments[: end + 1]) for end in range(len(moments))]
    assert max(at_work) == 2
    for pid in {run["pid"] for run in runs}:
        mine = sorted((run["began"], run["ended"]) for run in runs if run["pid"] == pid)
        assert all(one[1] <= other[0] for one, other in pairwise(mine))
    assert not (group.output / "work").exists()


def test_results_are_sorted_rows_as_csv_and_json(group: Class):
    for name in ("zoe", "anna", "bo"):
        group.add(name, right=name != "bo")
    assert group.grade("--key", "a key", "--seed", "7")[0] == 0
    header, *rows = list(csv.reader(io.StringIO((group.output / "results.csv").read_text())))
    assert header == ["name", "points", "passed", "begins", "target", "seconds", "message", "folder"]
    assert [row[:5] for row in rows] == [
        ["anna", "100", "yes", "40", "60"], ["bo", "40", "no", "40", "0"], ["zoe", "100", "yes", "40", "60"],
    ]  # fmt: skip
    assert rows[1][6:] == ["Scale the rate.", safe_name("bo")]
    written = json.loads((group.output / "results.json").read_text())
    assert (written["schema"], written["seed"], written["profile"]) == (1, 7, "full")
    assert [result["name"] for result in written["results"]] == ["anna", "bo", "zoe"]
    assert "a key" not in json.dumps(written)


def test_a_second_command_grades_what_is_new_or_changed_and_nothing_else(group: Class):
    for name in ("anna", "bo", "cy"):
        group.add(name)
    group.grade()
    first = (group.output / "results.csv").read_text()
    assert group.grade()[0] == 0
    assert sorted(group.begun()) == ["anna", "bo", "cy"]
    assert (group.output / "results.csv").read_text() == first
    group.add("bo", right=False)
    group.add("dan")
    (group.folder / "cy").rename(group.folder / "cyril")
    status, told = group.grade()
    assert status == 0 and "1 of 4 submissions have a result" in told
    assert sorted(group.begun()) == ["anna", "bo", "bo", "cy", "cyril", "dan"]
    assert [(row["name"], row["points"]) for row in group.rows()] == [
        ("anna", "100"), ("bo", "40"), ("cyril", "100"), ("dan", "100"),
    ]  # fmt: skip


def test_a_program_that_comes_back_gets_its_own_report_not_that_of_the_one_between(group: Class):
    for right in (False, True, False):
        group.add("anna", right=right)
        assert group.grade()[0] == 0
        assert (group.report("anna")["points"], group.rows()[0]["points"]) == ((100, "100") if right else (40, "40"))
    assert group.begun() == ["anna"] * 3


def test_what_has_a_result_is_graded_again_where_that_is_asked_for(group: Class):
    for name in ("anna", "bo"):
        group.add(name)
    group.grade()
    options = grade_batch.BatchOptions(submissions=group.folder, output=group.output, profile="full", rerun=True)
    with group.graded_by():
        assert grade_batch.grade_batch(options, Console(quiet=True)).failures == {}
    assert sorted(group.begun()) == ["anna", "anna", "bo", "bo"]


def test_other_settings_are_refused_in_one_line_and_change_nothing(group: Class, capfd):
    group.add("anna")
    group.output.mkdir()
    path = group.output / "journal.jsonl"
    with journal.Journal(path, journal.Settings("full", "a key", 1, "sandbox", dask_cluster.GRADER)):
        before = path.read_bytes()
    assert group.grade("--seed", "2")[0] == 2
    assert capfd.readouterr().err == (
        "grader: this batch began with another seed: give the same options as then, or another --output\n"
    )
    assert path.read_bytes() == before
    assert group.begun() == []


def test_a_second_batch_at_the_same_time_is_refused(group: Class, capfd, monkeypatch):
    monkeypatch.setattr(grade_batch, "LOCK_SECONDS", 0.2)
    group.add("anna")
    group.output.mkdir()
    with FileLock(group.output / "batch.lock"):
        assert group.grade()[0] == 2
    told = capfd.readouterr().err
    assert told == f"grader: another batch is at work in {group.output}: wait for its end, or use another --output\n"
    assert group.begun() == []


def test_a_dead_slots_submission_is_tried_again_and_three_deaths_are_a_result(group: Class):
    group.add("once", kills=1)
    group.add("always", kills=99)
    for number in range(4):
        group.add(f"s{number}", seconds=0.1)
    status, told = group.grade()
    assert status == 0 and "5 of 6 passed" in told
    assert Counter(group.begun()) == {"once": 2, "always": 3} | {f"s{number}": 1 for number in range(4)}
    row = next(row for row in group.rows() if row["name"] == "always")
    assert (row["points"], row["passed"]) == ("0", "no")
    assert row["message"] == "It ended the process that graded it 3 times, and is not tried again."
    assert group.grade()[0] == 0
    assert group.begun().count("always") == 3


def test_a_mistake_of_the_graders_costs_no_points_and_is_tried_again_with_the_same_key(group: Class):
    group.add("anna", fails=1)
    group.add("bo")
    status, told = group.grade()
    key = journal.read_key(group.output / "journal.jsonl")
    assert (status, len(key)) == (1, 32)
    assert [row["name"] for row in group.rows()] == ["bo"]
    assert "the same command tries again: anna: ZeroDivisionError: a mistake of the grader's [bold]" in told
    assert group.grade()[0] == 0
    assert [row["points"] for row in group.rows()] == ["100", "100"]
    assert journal.read_key(group.output / "journal.jsonl") == key


HOSTILE = [
    '=HYPERLINK("http:x")', "+1", "-1", "@SUM(1)", "\t=1", "＝1", "[bold red]x[blink]", "\x1b[31mred", "a\nb\rc", "..a",
    "\u202egnp.exe", "x" * 255, "аnna", "ß ﬁ", "'", '"', ",", ";rm -rf ~", "$(id)", "%s{0}", "-",
]  # fmt: skip


def test_hostile_names_are_shown_and_written_as_harmless_text(group: Class):
    for name in HOSTILE:
        group.add(name)
    os.makedirs(os.fsencode(group.folder) + b"/\xff\xfe")  # noqa: PTH103
    status, told = group.grade()
    assert status == 0
    assert not any(letter in told for letter in "\x1b\r\t\u202e")
    assert "[bold red]x" in told
    rows = group.rows()
    assert len(rows) == len(HOSTILE) + 1
    for row in rows:
        for value in (row["name"], row["message"]):
            assert not value.strip().startswith(("=", "+", "-", "@", "＝"))
            assert all(map(str.isprintable, value))
    folders = [path.name for path in group.output.iterdir() if path.is_dir()]
    assert sorted(folders) == sorted(row["folder"].removeprefix("'") for row in rows)
    assert all(set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-") and len(name) < 60 for name in folders)


def test_what_is_no_submission_is_a_result_with_the_reason(group: Class):
    group.add("right")
    (group.folder / "empty").mkdir()
    (group.folder / "notes.txt").write_text("hello")
    (group.folder / "broken.zip").write_bytes(b"PK\3\4 and no more")
    (group.folder / "link").symlink_to(group.folder / "right")
    status, told = group.grade()
    assert status == 0 and "4 of 5 submissions have a result" in told and "1 of 5 passed" in told
    rows = {row["name"]: row for row in group.rows()}
    assert "train.py" in rows["empty"]["message"] and "link" in rows["link"]["message"]
    for name in ("empty", "notes.txt", "broken.zip", "link"):
        assert (rows[name]["points"], rows[name]["passed"], rows[name]["begins"]) == ("0", "no", "")
        assert rows[name]["message"] and "\n" not in rows[name]["message"]
        assert group.report(name)["rows"][0]["message"] == rows[name]["message"]
    (group.folder / "notes.txt").unlink()
    group.add("notes.txt")
    assert group.grade()[0] == 0
    assert {row["name"]: row["points"] for row in group.rows()}["notes.txt"] == "100"


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (lambda group: None, "has 0 entries: a batch takes 1 to 1,000 submissions"),
        (lambda group: [(group.folder / f"{n}").touch() for n in range(1001)], "has 1,001 entries"),
        (lambda group: group.folder.rmdir(), "is not a folder of submissions"),
        (lambda group: group.output.touch(), "File exists"),
    ],
)
def test_bad_input_is_one_line_and_exit_status_2(prepare: Callable, message: str, group: Class, capfd):
    prepare(group)
    assert group.grade()[0] == 2
    told = capfd.readouterr().err
    assert message in told and told.startswith("grader: ") and told.count("\n") == 1


def test_an_output_folder_among_the_submissions_is_refused(group: Class, capfd):
    group.add("anna")
    group.output = group.folder / "graded"
    assert group.grade()[0] == 2
    assert "whose entries are submissions" in capfd.readouterr().err
    assert not group.output.exists()


def test_a_slot_has_its_share_of_the_machine():
    cores, gpus = list(range(18)), [f"GPU-{number}" for number in range(8)]
    parts = [dask_cluster.share(cores, number, 4) for number in range(4)]
    assert [*chain(*parts)] == cores and {len(part) for part in parts} == {4, 5}
    assert [dask_cluster.share(gpus, number, 2) for number in range(2)] == [gpus[:4], gpus[4:]]
    here = dask_cluster.slots_of_this_machine()
    assert len(here) == 1 or all(len(slot.gpus or slot.cores) >= 4 for slot in here)
    assert [*chain(*(slot.cores for slot in here))] == CORES
    assert len(dask_cluster.slots_of_this_machine(max_slots=1)) == 1


def listening() -> set[str]:
    """Addresses that this process and its descendants listen at."""
    found = set()
    for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
        with contextlib.suppress(psutil.Error):  # it may just have ended
            found |= {made.laddr.ip for made in process.net_connections("inet") if made.status == psutil.CONN_LISTEN}
    return found


def test_a_local_cluster_is_tied_to_its_cores_and_listens_on_the_loopback_only(tmp_path: Path):
    machine = [Slot(CORES[:1], []), Slot(CORES[-1:], ["GPU-1", "GPU-3"])]
    with dask_cluster.local_cluster(machine, tmp_path / "work") as client:
        assert list(dask_cluster.count_slots(client).values()) == [1, 1]
        assert listening() == {"127.0.0.1"}
        tied = client.run(lambda: (sorted(os.sched_getaffinity(0)), os.environ.get("CUDA_VISIBLE_DEVICES")))
    assert sorted(tied.values(), key=str) == sorted([(CORES[:1], None), (CORES[-1:], "GPU-1,GPU-3")], key=str)
    assert not (tmp_path / "work").exists()


PROGRAM = f"""
import os, signal, sys, time
sys.path.insert(0, {str(REPOSITORY)!r})
from tests.grader.batch import test_grade_batch
signal.signal(signal.SIGINT, signal.default_int_handler)  # a caller in the background has it ignored
"""


def start(program: str, root: Path, *arguments: object, **files: object) -> subprocess.Popen:
    """Start Python with a program in a process group of its own; what it leaves behind when killed is below `root`."""
    line = [sys.executable, "-c", PROGRAM + program, *map(str, [root, *arguments])]
    return subprocess.Popen(line, start_new_session=True, text=True, env=os.environ | {"TMPDIR": str(root)}, **files)


def group_of(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return None


def in_group(leader: int) -> list[int]:
    """The processes of a group that have not ended."""
    return [
        process.pid
        for process in psutil.process_iter(["status"])
        if group_of(process.pid) == leader and process.info["status"] != psutil.STATUS_ZOMBIE
    ]


def alive(mark: str) -> bool:
    return any(mark in " ".join(process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"]))


def test_what_a_killed_batch_of_trusted_code_left_is_cleared_and_nothing_else(tmp_path: Path):
    (tmp_path / "work" / "dask").mkdir(parents=True)
    left, other = (
        subprocess.Popen(["sleep", "600"], env={"GRADER_OBSERVE": f"{tmp_path}/{place}/observe"})
        for place in ("work", "works")
    )
    until(lambda: all(psutil.Process(process.pid).environ() for process in (left, other)))  # empty while it starts
    dask_cluster.clear_leftovers(tmp_path / "work")
    left.wait(timeout=10)  # its status went to the one who looked first
    assert other.poll() is None and not (tmp_path / "work").exists()
    other.kill()
    other.wait()


BATCH = "sys.exit(test_grade_batch.Class(sys.argv[1]).grade(*sys.argv[2:])[0])"


def test_after_ctrl_c_nothing_runs_and_the_same_command_goes_on(group: Class):
    for name in ("anna", "bo"):
        group.add(name)
    group.add("slow", seconds=600)
    process = start(BATCH, group.root, stderr=subprocess.PIPE)
    until(lambda: len(group.journaled()) == 2 and "slow" in group.begun())
    time.sleep(0.5)  # while a result is taken in, Python may swallow the interrupt
    os.killpg(process.pid, signal.SIGINT)
    _, told = process.communicate(timeout=120)
    assert (process.returncode, told) == (130, "grader: interrupted; the same command goes on where this one was\n")
    until(lambda: not in_group(process.pid))
    assert not (group.output / "work").exists() and not (group.output / "results.csv").exists()
    group.add("slow")
    assert group.grade()[0] == 0
    assert sorted(group.begun()) == ["anna", "bo", "slow", "slow"]


def sandboxed(submission: Submission, settings: journal.Settings, folder: Path) -> Files:
    """Sleeps for ever in the sandbox that submissions run in, started as they are from a Dask worker's thread."""
    from grader.sandbox.bubblewrap import Bubblewrap
    from grader.sandbox.run_paths import RunPaths

    folders = RunPaths(folder)
    for place in (folders.source, folders.data):
        place.mkdir()
    with Bubblewrap(folders, 1) as isolated:
        isolated.start(["sleep", "86394"])
        note(json.loads(submission.files["train.py"]), submission.name, "began")
        time.sleep(600)
    return {}


def test_a_sandboxed_run_goes_on_in_its_slots_thread_and_dies_with_the_slot_or_the_batch(group: Class):
    group.add("anna")
    process = start("test_grade_batch.Class(sys.argv[1]).grade(does=test_grade_batch.sandboxed)", group.root)
    until(lambda: group.begun() == ["anna"])
    time.sleep(1)
    assert alive("sleep 86394")
    os.kill(group.pids()[0], signal.SIGKILL)
    until(lambda: not alive("sleep 86394"))
    until(lambda: group.begun() == ["anna", "anna"])
    assert alive("sleep 86394")
    process.kill()
    process.wait()
    until(lambda: not alive("sleep 86394") and not in_group(process.pid))


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[tuple[subprocess.Popen, str]]:
    """A Dask scheduler such as a cluster of machines has, and its address."""
    file = tmp_path / "scheduler.json"
    line = ["scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", file]
    process = subprocess.Popen([Path(sys.executable).with_name("dask"), *line], stderr=subprocess.DEVNULL)
    until(lambda: file.exists() and file.read_text().endswith("}"))  # Dask opens it first, and then writes
    yield process, json.loads(file.read_text())["address"]
    process.kill()
    process.wait()


@pytest.fixture
def machines(scheduler, tmp_path: Path) -> Iterator[list[subprocess.Popen]]:
    """Two machines that offer the scheduler a slot each, or more."""
    program = "from grader.batch import dask_cluster; dask_cluster.join(sys.argv[2])"
    joined = [start(program, tmp_path, scheduler[1]) for _ in range(2)]
    with dask_cluster.remote_cluster(scheduler[1]) as client:
        until(lambda: len(dask_cluster.count_slots(client)) >= 2)
    yield joined
    for machine in joined:
        os.killpg(machine.pid, signal.SIGKILL)
        machine.wait()


def test_a_cluster_of_machines_of_which_one_is_lost_grades_the_class(group: Class, scheduler, machines):
    for number in range(6):
        group.add(f"s{number}", seconds=1)
    batch = start(BATCH, group.root, "--scheduler", scheduler[1])
    until(lambda: len(set(group.pids())) >= 2)
    os.killpg(machines[0].pid, signal.SIGKILL)
    assert batch.wait(timeout=120) == 0
    assert {row["name"]: row["points"] for row in group.rows()} == {f"s{number}": "100" for number in range(6)}
    assert len(group.begun()) <= 6 + len(dask_cluster.slots_of_this_machine())


def test_a_lost_scheduler_is_one_line_and_the_same_command_goes_on(group: Class, scheduler, machines):
    group.add("anna")
    group.add("slow", seconds=600)
    batch = start(BATCH, group.root, "--scheduler", scheduler[1], stderr=subprocess.PIPE)
    until(lambda: "slow" in group.begun() and group.journaled() == ["anna"])
    scheduler[0].kill()
    _, told = batch.communicate(timeout=120)
    assert (batch.returncode, told) == (
        2, "grader: the Dask scheduler is lost; when it is there again, the same command goes on\n"
    )  # fmt: skip
    group.add("slow")
    assert group.grade()[0] == 0
    assert group.begun().count("anna") == 1


def test_without_a_scheduler_at_the_address_one_line_says_how_to_start_one(group: Class, capfd):
    group.add("anna")
    assert group.grade("--scheduler", "tcp://127.0.0.1:9")[0] == 2
    assert capfd.readouterr().err == (
        "grader: no Dask scheduler answers at tcp://127.0.0.1:9: start one with `dask scheduler`\n"
    )


FORKS = """
for root in map(str.strip, sys.stdin):
    child = os.fork()
    os.setpgid(child, child)
    if child == 0:
        os._exit(test_grade_batch.Class(root).grade()[0])
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
"""
KILLS, MEMBERS = 10, 14


@pytest.fixture
def forks(tmp_path: Path) -> Iterator[subprocess.Popen]:
    """Starts a batch for each line of its input; it has imported PyTorch once for all of them."""
    process = start(FORKS, tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    yield process
    process.kill()
    process.wait()


def test_killed_at_random_moments_it_loses_nothing_and_grades_nothing_twice(group: Class, forks):
    draw = random.Random(1)
    for number in range(MEMBERS):
        group.add(f"s{number}", seconds=draw.uniform(0.2, 0.4))
    for _ in range(KILLS):
        had, begun = group.journaled(), len(group.begun())
        print(group.root, file=forks.stdin, flush=True)
        leader = int(forks.stdout.readline())
        wait_a_random_while(group, leader, begun, draw)
        with contextlib.suppress(ProcessLookupError):  # it has graded all
            os.killpg(leader, signal.SIGKILL)
        assert int(forks.stdout.readline()) in (-signal.SIGKILL, 0)
        assert not set(had) & set(group.begun()[begun:])
        assert group.journaled()[: len(had)] == had
    assert 0 < len(group.journaled()) < MEMBERS < len(group.begun())  # the kills met the batch at work
    assert group.grade()[0] == 0
    names = sorted(f"s{number}" for number in range(MEMBERS))
    assert [row["name"] for row in group.rows()] == names == sorted(group.journaled())
    assert {group.report(name)["points"] for name in names} == {100}
    assert len(group.begun()) <= MEMBERS + KILLS * len(TWO_SLOTS)


def wait_a_random_while(group: Class, leader: int, begun: int, draw: random.Random) -> None:
    """Until up to three more submissions have begun, and a little longer; or for some part of the batch's start."""
    more, deadline = draw.randrange(4), time.monotonic() + 60
    while len(group.begun()) < begun + more and group_of(leader) and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(draw.uniform(0, 0.3 if more else 1))


def test_a_class_of_two_with_the_real_grader_on_four_workers(group: Class):
    """About a minute."""
    shutil.copytree(REPOSITORY / "solutions" / "assignment", group.folder / "anna")
    (group.folder / "bo").mkdir()
    options = ["--profile", "fast", "--key", "a test's key", "--output", group.output]
    done = run_python("-m", "grader", "batch", group.folder, *options)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    right, wrong = group.rows()
    assert (right["name"], right["points"], right["passed"], right["message"]) == ("anna", "100", "yes", "")
    assert (wrong["name"], wrong["points"], wrong["passed"]) == ("bo", "0", "no") and "train.py" in wrong["message"]
    written = group.report("anna")
    assert written["submission"] == "anna" and "a test's key" not in json.dumps(written)
    assert written["record"]["key_sha256"] == hashlib.sha256(b"a test's key").hexdigest()
    assert written["isolation"].startswith("bubblewrap")
    page = (group.output / right["folder"] / "report.html").read_text()
    assert "<title>100 of 100: anna</title>" in page and str(group.root) not in page
    again = run_python("-m", "grader", "batch", group.folder, *options)
    assert again.returncode == 0 and "2 of 2 submissions have a result" in again.stdout
    assert not [
        process for process in psutil.process_iter(["cmdline"]) if str(group.root) in str(process.info["cmdline"])
    ]


def test_a_machine_without_a_scheduler_says_so_in_one_line(capfd):
    assert main(["join", "nowhere://1"]) == 2
    assert capfd.readouterr().err == (
        "grader: no Dask scheduler answers at nowhere://1: start one with `dask scheduler`\n"
    )
