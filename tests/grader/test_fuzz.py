"""Random bytes from a learner or a run give a value, or the one expected error with one line, in limited time."""

import contextlib
import gzip
import io
import json
import math
import multiprocessing
import os
import pickle
import pickletools
import re
import resource
import shutil
import signal
import stat
import tarfile
import tempfile
import unicodedata
import warnings
import zipfile
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Annotated, get_type_hints

import nbformat
import pytest
import torch
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, NonNegativeInt, PositiveInt
from pydantic.fields import FieldInfo

from cifar.model import ResNet9
from grader.common import untrusted
from grader.grading import checkpoint
from grader.run import worker_log
from grader.sandbox import run_in_sandbox
from grader.sandbox.guest_scripts import classify_images
from grader.submission import intake, notebook
from tests.conftest import examples

SECONDS = 5  # seconds: the most computing time for one example
fuzz = settings(
    max_examples=examples(1000),
    # The tests limit computing time instead of the time on the clock, because other programs may use the machine.
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
    # hypothesis would warn of large archives and checkpoints, and of fixtures that all examples share.
)


@contextlib.contextmanager
def in_time() -> Iterator[None]:
    """Make a test fail if it computes for more than `SECONDS`, also in an endless loop."""
    signal.signal(signal.SIGPROF, lambda *_: pytest.fail(f"more than {SECONDS} s of computing"))
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def is_line(message: object) -> bool:
    """Return whether a message can be shown to a learner.

    It must be one line of limited length, and it must not control a terminal.
    """
    text = str(message)
    return 0 < len(text) < 1000 and text.isprintable()


# These strategies make JSON in which anything may be wrong, and damage bytes.

TOKENS = {
    "@huge": "1e999999", "@long": "9" * 5000, "@longer": "0." + "1" * 20_000, "@nan": "NaN", "@inf": "-Infinity",
    "@lists": "[" * 2000 + "]" * 2000, "@open": "[" * 2000, "@deep": '{"a":' * 2000 + "1" + "}" * 2000,
    "@half": '"\\ud800"', "@twice": '{"epoch": 1, "epoch": 2}', "@zero": "-0.0", "@raw": '"\x1b[2J"', "@end": "}",
    "@colour": '"\\u001b[31m"',
}  # fmt: skip


def mostly(usual: st.SearchStrategy, odd: st.SearchStrategy) -> st.SearchStrategy:
    """Return a strategy that gives something odd in a fourth of the examples."""
    return st.integers(0, 3).flatmap(lambda number: odd if number == 3 else usual)


scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.sampled_from(sorted(TOKENS)),
    st.sampled_from([0, 1, -1, 2, 0.5, 1e308, -1e-320, 2**31, 2**63, 2**64, 10**400]),
    st.sampled_from(["", "1", "code", "\x00", "\u202e", "\x1b[2J\n"]),
)  # fmt: skip
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=4,
)  # fmt: skip


def as_json(value: object) -> str:
    """Return JSON in which the names in TOKENS are replaced by text that Python would not write."""
    text = json.dumps(value)
    for name, token in TOKENS.items():
        text = text.replace(f'"{name}"', token)
    return text


places, bits = st.integers(0, 2**20), st.binary(min_size=1, max_size=8)
kinds = st.sampled_from(["cut", "flip", "insert", "delete", "copy"])
damages = mostly(st.just([]), st.lists(st.tuples(kinds, places, places, bits), max_size=4))


def damaged(content: bytes, damage: list[tuple[str, int, int, bytes]]) -> bytes:
    for kind, place, other, new in damage:
        place, other = place % (len(content) + 1), other % (len(content) + 1)
        if kind == "cut":
            content = content[:place]
        elif kind == "flip":
            content = content[:place] + new + content[place + len(new) :]
        elif kind == "insert":
            content = content[:place] + new + content[place:]
        elif kind == "delete":
            content = content[:place] + content[place + other % 64 :]
        else:
            content = content[:place] + content[other : other + 64] + content[place:]
    return content


# These tests are about notebooks.

IDS = ["ring_step", "warmup_factor", "shard"]


def real_cells() -> list[dict]:
    """Return the cells of a released notebook. Each answer has its name as its grade_id and as its cell id."""
    cells = [nbformat.v4.new_markdown_cell("# Ring"), nbformat.v4.new_code_cell("import torch")]
    for id in IDS:
        nbgrader = {"grade_id": id, "grade": False, "locked": False, "solution": True, "schema_version": 3}
        cells.append(nbformat.v4.new_code_cell(f"def {id}(x):\n    return x", metadata={"nbgrader": nbgrader}, id=id))
    return json.loads(json.dumps(cells))


def as_notebook(cells: list, **changes: object) -> dict:
    return json.loads(json.dumps(nbformat.v4.new_notebook())) | {"cells": cells} | changes


def test_the_notebook_that_is_fuzzed_is_a_real_one():
    nbformat.validate(nbformat.from_dict(as_notebook(real_cells())))


likely = [
    *IDS, "other", "", "RING_STEP", "markdown", "raw", "a\0b", "@half", ["a\n", "b"], ["@half"], ["a", 1], "x" * 70_000,
]  # fmt: skip
new_values = mostly(st.sampled_from(likely), values)
changes = st.lists(
    st.tuples(
        st.sampled_from(["delete", "double", "move", "junk", "grade_id", "id", "cell_type", "source", "metadata"]),
        st.integers(0, 7), st.integers(0, 7), new_values,
    ), max_size=5,
)  # fmt: skip


def change(cells: list, kind: str, place: int, other: int, value: object) -> None:
    """Make one change that can happen to the cells of a notebook."""
    if kind == "junk" or not cells:
        return cells.insert(place, value)
    place, other = place % len(cells), other % len(cells)
    cell = cells[place]
    if kind == "delete":
        del cells[place]
    elif kind == "double":
        cells.insert(other, json.loads(json.dumps(cell)))
    elif kind == "move":
        cells.insert(other, cells.pop(place))
    elif isinstance(cell, dict) and kind == "grade_id":
        cell["metadata"] = {"nbgrader": {"grade_id": value, "solution": True}}
    elif isinstance(cell, dict):
        cell[kind] = value
    return None


def read_notebook(content: bytes) -> notebook.Answers | None:
    """Return the answers after checking them, or None if the notebook was refused with one line."""
    try:
        with in_time():
            answers = notebook.answers(content, IDS)
    except notebook.NotebookError as error:
        assert is_line(error)
        event("refused")
        return None
    event(f"{len(answers.sources)} answers")
    assert set(IDS) == answers.sources.keys() | {problem.id for problem in answers.problems}
    assert all(problem.id in IDS and is_line(problem.message) for problem in answers.problems)
    assert all(len(source.encode()) <= 65_536 and "\0" not in source for source in answers.sources.values())
    return answers


@fuzz
@given(changes, damages)
def test_a_changed_notebook_gives_the_untouched_answers(changed: list, damage: list):
    cells = real_cells()
    for one in changed:
        change(cells, *one)
    content = as_json(as_notebook(cells)).encode()
    answers = read_notebook(damaged(content, damage))
    if damage or not answers:
        return
    claims = Counter(grade_id(cell) for cell in cells)
    for whole in real_cells()[2:]:
        if whole in cells and claims[whole["id"]] == 1:
            assert answers.sources[whole["id"]] == whole["source"]
            assert whole["id"] not in {problem.id for problem in answers.problems}
    written = [cell for cell in json.loads(content, parse_int=float)["cells"] if isinstance(cell, dict)]
    code = [cell["source"] for cell in written if cell.get("cell_type") == "code" and "source" in cell]
    for source in answers.sources.values():
        assert source in code or any(isinstance(lines, list) and "".join(map(str, lines)) == source for lines in code)


def grade_id(cell: object) -> str | None:
    """Return the name of a cell in nbgrader's metadata, or None if it has none."""
    for key in ("metadata", "nbgrader", "grade_id"):
        cell = cell.get(key) if isinstance(cell, dict) else None
    return cell if isinstance(cell, str) else None


@fuzz
@given(
    st.one_of(
        st.binary(max_size=200),
        values.map(as_json).map(str.encode),
        st.lists(values, max_size=4).map(as_notebook).map(as_json).map(str.encode),
        st.dictionaries(st.sampled_from(["cells", "nbformat", "metadata"]), values).map(as_json).map(str.encode),
    )
)
def test_any_json_or_bytes_are_a_notebook_or_one_line(content: bytes):
    read_notebook(content)


# These tests are about submissions: their names, archives and folders.

TRICKS = [
    "../train.py", "/etc/passwd", "a/../b", "..", ".", "./train.py", "a//b", "train.py/", "", "C:\\a.py", "a\\b", "~",
    "train.py\0.txt", "\x1b[2J", "tr\u0430in.py", "train\u202e.py", "a\u200b", "e\u0301.py", "\xe9.py", "TRAIN.PY",
    ".git/x", "__pycache__/x", "._x", "a/b/c/d/e/f", "x" * 101, "x" * 5000, "\udc80", "con", " x", "x ", "x.",
    "\u212a.py", "k.py",
]  # fmt: skip
plain_names = st.from_regex(r"[a-z_]{1,8}(/[a-z]{1,3}){0,4}(\.py)?", fullmatch=True)
odd_names = st.sampled_from(TRICKS) | st.text(max_size=12) | st.text("aB/. é\u0301\\", max_size=8)
any_names = mostly(plain_names, odd_names)
contents = st.binary(max_size=20) | st.sampled_from([b"", b"print(1)\n", bytes(30_000), bytes(65_537)])


def harmless(name: str) -> bool:
    """Return whether a name that was accepted is harmless.

    This is written independently of the intake's own rule.
    """
    parts = name.split("/")
    letters = [letter for part in parts for letter in part]
    return (
        unicodedata.is_normalized("NFC", name)
        and len(parts) <= 5
        and all(0 < len(part.encode()) <= 100 and part == part.strip(" ") and part[-1] != "." for part in parts)
        and all(
            letter in " ._-0123456789" or unicodedata.name(letter).startswith(("LATIN SMALL ", "LATIN CAPITAL "))
            for letter in letters
        )
    )


@pytest.fixture
def room() -> Iterator[Path]:
    """Yield a folder for one example after another. It is in memory if the machine has such a file system."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder).resolve()


def take(submission: Path, room: Path) -> dict[str, bytes] | None:
    """Return the checked files of a submission that is alone in `room`, or None if it was refused with one line."""
    target = room / "out" / "target"
    try:
        with in_time():
            intake.take_in(submission, target)
    except intake.SubmissionError as error:
        assert is_line(error)
        event("refused")
        assert not (room / "out").exists() or list((room / "out").iterdir()) == []
        return None
    assert set(room.iterdir()) == {submission, room / "out"} and list((room / "out").iterdir()) == [target]
    paths = [path for path in target.rglob("*") if not stat.S_ISDIR(path.lstat().st_mode)]
    assert all(stat.S_ISREG(path.lstat().st_mode) and path.stat().st_nlink == 1 for path in paths)
    event("taken")
    files = {path.relative_to(target).as_posix(): path.read_bytes() for path in paths}
    assert "train.py" in files and len(files) <= 100 and sum(map(len, files.values())) <= 65_536
    assert all(map(harmless, files))
    assert len({name.casefold() for name in files}) == len(files)
    return files


def clear(room: Path) -> None:
    for path in room.iterdir():
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


types = st.sampled_from([b"0", b"1", b"2", b"3", b"5", b"6", b"7", b"\0", b"L", b"K", b"x", b"g", b"S", b"Z"])
sizes = st.sampled_from([0, 1, -1, -512, 511, 2**20, 2**33, 2**60])
headers = st.tuples(any_names, contents, mostly(st.just(b"0"), types), mostly(st.just(None), sizes))


def as_tar(members: list, style: int, packed: bool) -> bytes:
    """Return a tar archive that is made by hand, so that a header can give any size."""
    blocks = []
    for name, content, kind, size in members:
        header = tarfile.TarInfo(name)
        header.type, header.linkname, header.size = kind, "/etc/passwd", len(content) if size is None else size
        with contextlib.suppress(ValueError, UnicodeError):  # The format may not be able to express this header.
            padded = content.ljust(-(-len(content) // 512) * 512, b"\0")
            blocks += [header.tobuf(style, "utf-8", "surrogateescape"), padded]
    whole = b"".join(blocks) + bytes(1024)
    return gzip.compress(whole, 1) if packed else whole


def as_zip(members: list, patches: list[tuple[int, int, bytes]]) -> bytes:
    """Return a zip archive that is changed by `patches`.

    A patch has new bytes for the n-th entry of the archive's directory, so that the directory lies about this entry.
    """
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive, warnings.catch_warnings(action="ignore"):
        for name, content, kind, _ in members:
            info = zipfile.ZipInfo(name.encode(errors="replace").decode())
            info.external_attr, info.compress_type = UNIX.get(kind, 0) << 16, zipfile.ZIP_DEFLATED
            archive.writestr(info, content)
    content = bytearray(stream.getvalue())
    entries = [found.start() for found in re.finditer(b"PK\1\2", content)]
    for number, field, new in patches if entries else []:
        place = entries[number % len(entries)] + field
        content[place : place + len(new)] = new
    return bytes(content)


UNIX = {b"1": stat.S_IFREG, b"2": stat.S_IFLNK, b"3": stat.S_IFCHR, b"5": stat.S_IFDIR, b"6": stat.S_IFIFO}
# These are the offsets of the flags, method, check sum, sizes, lengths, mode and position in an entry of the directory.
ZIP_FIELDS = [6, 8, 10, 16, 20, 24, 28, 30, 32, 38, 40, 42, 46]
patches = st.lists(st.tuples(st.integers(0, 9), st.sampled_from(ZIP_FIELDS), bits), max_size=3)
members = st.lists(headers, max_size=5).map(lambda some: [("train.py", b"print(1)\n", b"0", None), *some])
STYLES = [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]
tars = st.builds(as_tar, members, st.sampled_from(STYLES), st.booleans())
zips = st.builds(as_zip, members, mostly(st.just([]), patches))


@fuzz
@given(tars | zips, damages)
def test_any_archive_is_a_clean_folder_or_one_line(room: Path, content: bytes, damage: list):
    clear(room)
    (room / "in").write_bytes(damaged(content, damage))
    take(room / "in", room)


@fuzz
@given(odd_names | plain_names, st.sampled_from([as_tar, as_zip]))
def test_any_name_is_harmless_or_one_line(room: Path, name: str, form: Callable):
    clear(room)
    members = [("train.py", b"", b"0", None), (name, b"1", b"0", None)]
    arguments = ([],) if form is as_zip else (tarfile.PAX_FORMAT, False)
    (room / "in").write_bytes(form(members, *arguments))
    files = take(room / "in", room)
    if re.fullmatch(r"[a-z]{1,8}(/[a-z]{1,3}){0,4}(\.py)?", name) and name.split("/")[0] != "train.py":
        assert files == {"train.py": b"", name: b"1"}


things = st.lists(
    st.tuples(any_names, contents, st.sampled_from(["file"] * 6 + ["folder", "link", "hard link", "pipe"])), max_size=6
)


def make(path: Path, content: bytes, kind: str) -> None:
    """Put something on the disk.

    Nothing is made if this is impossible, or if it would be outside of the folder.
    """
    with contextlib.suppress(OSError, ValueError):  # A ValueError comes from a name that no disk can hold.
        if path.parent.resolve() != path.parent or os.path.lexists(path):
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        if kind == "file":
            path.write_bytes(content)
        elif kind == "folder":
            path.mkdir()
        elif kind == "pipe":
            os.mkfifo(path)
        elif kind == "link":
            path.symlink_to("/etc")
        else:
            path.hardlink_to(path.with_name("train.py"))


@fuzz
@given(things)
def test_any_folder_is_a_clean_folder_or_one_line(room: Path, lie_there: list):
    clear(room)
    make(room / "in" / "train.py", b"print(1)\n", "file")
    for name, content, kind in lie_there:
        if (room / "in") in Path(os.path.normpath(room / "in" / name)).parents:
            make(room / "in" / name, content, kind)
    take(room / "in", room)


# These tests are about what a run leaves: metrics and observations.


COUNTS = {
    "bytes": NonNegativeInt, "size": PositiveInt, "update": PositiveInt, "calls": NonNegativeInt, "end": NonNegativeInt,
    "images": list[NonNegativeInt],
}  # fmt: skip


def lines_of(model: type) -> st.SearchStrategy[dict]:
    """Return a strategy for lines that fit `model` in most examples.

    In the other examples, one or two fields hold anything at all.
    """
    if issubclass(model, BaseModel):
        types = {name: whole_type(field) for name, field in model.model_fields.items()}
    else:  # In a line of a worker's log, most of the numbers are counts.
        types = {name: COUNTS.get(name, hint) for name, hint in get_type_hints(model).items()}
    fields = {name: st.from_type(hint) for name, hint in types.items()}
    odd = st.dictionaries(st.sampled_from([*fields, "other"]), values, max_size=2)
    return st.builds(dict.__or__, st.fixed_dictionaries(fields), mostly(st.just({}), odd))


def whole_type(field: FieldInfo) -> object:
    """Return the type of a field with its bounds."""
    return Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation


def as_lines(lines: list, end: str) -> bytes:
    return "".join(as_json(line) + end for line in lines).encode(errors="surrogatepass")


ends = mostly(st.just("\n"), st.sampled_from(["", "\r\n", "\n\n", "\u2028"]))


def numbered(lines: list[dict], key: str) -> list[dict]:
    return [line | {key: number} for number, line in enumerate(lines, start=1)]


def in_order(lines: st.SearchStrategy[dict], key: str) -> st.SearchStrategy[list]:
    """Return a strategy for lines with 1, 2, 3 ... under `key`, and perhaps an odd line at the end."""
    odd = st.builds(lambda line, value: [line | {key: value}], lines, values) | st.lists(values, max_size=2)
    right = st.lists(lines, max_size=3).map(partial(numbered, key=key))
    return st.builds(list.__add__, right, mostly(st.just([]), odd))


@fuzz
@given(in_order(lines_of(checkpoint.Metrics), "epoch"), ends, damages)
def test_any_metrics_are_figures_or_one_line(room: Path, lines: list, end: str, damage: list):
    path = room / "metrics.jsonl"
    path.write_bytes(damaged(as_lines(lines, end), damage))
    try:
        with in_time():
            read = checkpoint.read_metrics(path)
    except untrusted.UnreadableError as error:
        assert is_line(error)
        event("refused")
        return
    event(f"{len(read)} lines")
    assert [line.epoch for line in read] == list(range(1, len(read) + 1))
    assert all(math.isfinite(value) for line in read for value in line.model_dump().values())
    assert all(0 <= line.test_accuracy <= 1 for line in read)


@fuzz
@given(
    lines_of(worker_log.First),
    in_order(lines_of(worker_log.Update), "update"),
    st.lists(lines_of(worker_log.End), max_size=1),
    ends,
    damages,
)
def test_any_observation_is_a_worker(room: Path, first: object, updates: list, rest: list, end: str, damage: list):
    path = room / "rank0.jsonl"
    path.write_bytes(damaged(as_lines([first, *updates, *rest], end), damage))
    with in_time():
        worker, so_far = worker_log.read_worker(path), worker_log.updates_so_far(path)
    event(f"{len(worker.updates)} updates")
    assert [update.update for update in worker.updates] == list(range(1, len(worker.updates) + 1))
    assert worker.first or not (worker.updates or worker.end)
    assert isinstance(so_far, int) and 0 <= so_far < 2**63


# These tests are about checkpoints. They are read in another process. In the grader, that process is in a sandbox.

WIDTH = 1
MEMORY_BYTES = 8 * 2**30  # bytes of address space: PyTorch alone takes 3 GiB


def read_checkpoints(connection: Connection) -> None:
    """Answer each checkpoint with `["network" or "refused", message]`, or with the name of an unexpected error."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    torch.set_num_threads(1)
    while True:
        content = connection.recv_bytes()
        try:
            result = ["network", type(classify_images.load(content, WIDTH)).__name__]
        except classify_images.WrongCheckpoint as error:
            result = ["refused", str(error)]
        except Exception as error:
            result = [type(error).__name__, str(error)]
        connection.send_bytes(json.dumps(result).encode())


class Reader:
    """Read checkpoints in another process. A new process is started if the last one has died."""

    def __init__(self):
        self.process = None

    def start(self) -> None:
        """Start a process."""
        self.connection, other = multiprocessing.Pipe()
        self.process = multiprocessing.get_context("spawn").Process(target=read_checkpoints, args=(other,), daemon=True)
        self.process.start()
        other.close()

    def read(self, content: bytes) -> list[str]:
        """Return what happened to a checkpoint."""
        if self.process is None:
            self.start()
        self.connection.send_bytes(content)
        try:
            assert self.connection.poll(180), "no answer"
            return json.loads(self.connection.recv_bytes())
        except (AssertionError, EOFError):
            self.stop()
            raise

    def stop(self) -> None:
        """End the process."""
        if self.process:
            self.process.kill()
            self.process.join()
            self.connection.close()
        self.process = None


@pytest.fixture(scope="module")
def reader() -> Iterator[Reader]:
    made = Reader()
    yield made
    made.stop()


def saved(state: object, zipped: bool = True) -> bytes:
    stream = io.BytesIO()
    torch.save(state, stream, _use_new_zipfile_serialization=zipped)
    return stream.getvalue()


@cache
def good_state() -> OrderedDict:
    torch.manual_seed(0)
    return ResNet9(WIDTH).state_dict()


@cache
def good_files() -> dict[str, bytes]:
    """Return the files in a real checkpoint, which is a zip archive."""
    with zipfile.ZipFile(io.BytesIO(saved(good_state()))) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


def zipped(files: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()


def with_pickle(content: bytes) -> bytes:
    """Return the archive of a real checkpoint with another pickle in it."""
    return zipped({name: content if name.endswith("data.pkl") else old for name, old in good_files().items()})


@cache
def good_steps() -> tuple[bytes, ...]:
    """Return the instructions of the pickle in a real checkpoint."""
    whole = next(content for name, content in good_files().items() if name.endswith("data.pkl"))
    starts = [place for *_, place in pickletools.genops(whole)]
    return tuple(whole[start:end] for start, end in pairwise([*starts, len(whole)]))


FUNCTIONS = [
    "posix system", "builtins eval", "torch FloatStorage", "torch DoubleStorage", "torch float32", "torch Size",
    "torch device", "torch Tensor", "torch._utils _rebuild_tensor_v2", "torch._utils _rebuild_sparse_tensor",
    "torch._utils _rebuild_parameter", "torch._utils _rebuild_meta_tensor_no_storage", "torch._utils _rebuild_qtensor",
    "torch._utils _rebuild_nested_tensor", "torch._tensor _rebuild_from_type_v2", "torch.nn.parameter Parameter",
    "torch.serialization _get_layout", "collections OrderedDict", "collections Counter",
]  # fmt: skip
STEPS = [
    *(b"N", b"]", b"}", b")", b"(", b"t", b"R", b"b", b"u", b"s", b"a", b"e", b"Q", b"0", b"1", b"2", b"."),
    *(b"\x81", b"\x93", b"\x85", b"\x86", b"\x87", b"\x88", b"K\x00", b"K\xff", b"M\xff\xff", b"J\xff\xff\xff\xff"),
    *(b"J\xff\xff\xff\x7f", b"\x8a\x08" + b"\xff" * 7 + b"\x7f", b"h\x00", b"q\x00", b"h\xfe", b"\x80\x02"),
    *(b"X\x03\x00\x00\x00a\x1bb", b"X\x01\x00\x00\x000", b"G\x7f\xf0" + bytes(6), b"\x95" + b"\xff" * 8),
    *(f"c{name}\n".replace(" ", "\n").encode() for name in FUNCTIONS),
]
step_changes = st.lists(
    st.tuples(st.sampled_from(["delete", "double", "replace", "insert"]), places, places, st.sampled_from(STEPS)),
    max_size=6,
)


def changed_pickle(changes: list[tuple[str, int, int, bytes]]) -> bytes:
    steps = list(good_steps())
    for kind, place, other, new in changes:
        place, other = place % len(steps), other % len(steps)
        if kind == "delete":
            del steps[place]
        else:
            steps[place : place + (kind == "replace")] = [steps[other] if kind == "double" else new]
    return with_pickle(b"".join(steps))


WEIGHT = "classify.weight"
ODD_TENSORS: dict[str, Callable[[torch.Tensor], object]] = {
    "sparse": lambda value: value.to_sparse(),
    "sparse rows": lambda value: value.to_sparse_csr(),
    "meta": lambda value: value.to("meta"),
    "double": lambda value: value.double(),
    "complex": lambda value: value.to(torch.complex64).conj(),
    "bool": lambda value: value > 0,
    "float8": lambda value: value.to(torch.float8_e4m3fn),
    "quantised": lambda value: torch.quantize_per_tensor(value, 0.1, 0, torch.qint8),
    "nested": lambda value: torch.nested.nested_tensor([value, value[:1]]),
    "parameter": torch.nn.Parameter,
    "with gradient": lambda value: value.clone().requires_grad_(),
    "view": lambda value: torch.cat([value, value])[: len(value)],
    "reversed": lambda value: value.T.contiguous().T,
    "one number for all": lambda value: torch.ones(1).expand(value.shape),
    "vast": lambda value: torch.ones(1).expand(2**20, 2**40),
    "empty": lambda value: value[:0],
    "no dimension": lambda value: torch.tensor(1.0),
    "not finite": lambda value: value / 0,
    "numbers": lambda value: value.tolist(),
    "nothing": lambda value: None,
    "text": lambda value: "\x1b[2J",
    "numpy": lambda value: value.numpy(),
    "size": lambda value: value.shape,
}
ODD_KEYS = [*[WEIGHT] * 9, "extra", "module.x", "\x1b[2J\n", "\u202e", "", 3, None, (1, "a"), 1.5, b"x", "x" * 5000]


def odd_state(odd: dict[object, str], prefix: str, metadata: object) -> OrderedDict:
    state = OrderedDict((prefix + name, value) for name, value in good_state().items())
    for key, kind in odd.items():
        state[key] = ODD_TENSORS[kind](good_state()[WEIGHT])
    if metadata is not None:
        state._metadata = metadata
    return state


odd_states = st.builds(
    odd_state,
    st.dictionaries(st.sampled_from(ODD_KEYS), st.sampled_from(sorted(ODD_TENSORS)), max_size=2),
    st.sampled_from([""] * 4 + ["module.", "\x07"]), st.none() | values,
)  # fmt: skip
pickles = st.builds(pickle.dumps, values | st.binary(max_size=9) | st.just(range), st.integers(0, 5))
checkpoints = st.one_of(
    step_changes.map(changed_pickle),
    st.builds(saved, odd_states, st.booleans()),
    st.builds(saved, values, st.booleans()),
    pickles, pickles.map(with_pickle), st.binary(max_size=200).map(with_pickle),
    st.builds(damaged, st.booleans().map(lambda new: saved(good_state(), new)), damages), st.binary(max_size=200),
)  # fmt: skip


answer_lines = mostly(st.just({"error": "", "weights": 1}), lines_of(checkpoint.Answer) | values)
logits = mostly(st.just(bytes(80)), st.sampled_from([0, 40, 79, 120]).map(bytes))


@fuzz
@given(answer_lines, logits, damages)
def test_any_answer_about_a_checkpoint_is_logits_or_one_line(line: object, rest: bytes, damage: list):
    """A checkpoint may take control of the process that loads it, so the process's answer is not trusted."""
    content = damaged(as_lines([line], "\n") + rest, damage)
    try:
        with in_time():
            told, read = checkpoint._read_answer(content, images=2)
    except run_in_sandbox.NoAnswerError as error:
        assert is_line(error)
        return
    event("error" if told.error else "logits")
    assert read.shape == (2, 10)
    assert told.error.isprintable()


@fuzz
@given(checkpoints)
def test_any_checkpoint_is_a_network_or_one_line(reader: Reader, content: bytes):
    result, message = reader.read(content)
    event(result)
    assert result in ("network", "refused"), message
    assert is_line(message), repr(message)
