"""A submission becomes a clean folder, or it is refused with one line.

The tests hand in hostile archives, links, devices, odd names, and files that are too many or too large.
"""

import contextlib
import io
import os
import signal
import socket
import stat
import struct
import tarfile
import tracemalloc
import unicodedata
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from grader.submission import archives, intake
from grader.submission.intake import SubmissionError
from tests.support.files import as_folder, as_zip

GOOD = {"train.py": b"print(1)\n", "helpers/data.py": b"x = 1\n"}
Files = dict[str, bytes]


def tarred(files: Files, mode: str = "w", style: int = tarfile.PAX_FORMAT) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=mode, format=style) as archive:
        for name, content in files.items():
            header = tarfile.TarInfo(name)
            header.size = len(content)
            archive.addfile(header, io.BytesIO(content))
    return stream.getvalue()


def as_tar(path: Path, files: Files) -> Path:
    path.write_bytes(tarred(files))
    return path


def as_tgz(path: Path, files: Files) -> Path:
    path.write_bytes(tarred(files, "w:gz"))
    return path


def as_gnu_tar(path: Path, files: Files) -> Path:
    path.write_bytes(tarred(files, style=tarfile.GNU_FORMAT))
    return path


ARCHIVES = [as_zip, as_tar, as_tgz, as_gnu_tar]
FORMS = [as_folder, *ARCHIVES]
each_form = pytest.mark.parametrize("form", FORMS)
each_archive = pytest.mark.parametrize("form", ARCHIVES)


def content(folder: Path) -> Files:
    """Return all files below a folder. The folder must hold nothing but files and folders."""
    found = [path for path in folder.rglob("*") if not path.is_dir()]
    assert all(stat.S_ISREG(path.lstat().st_mode) for path in found)
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Path]:
    """Yield the folder to which a submission is taken. Nothing else may appear beside it."""
    yield tmp_path / "room" / "target"
    if (tmp_path / "room").exists():
        assert set((tmp_path / "room").iterdir()) <= {tmp_path / "room" / "target"}


def taken(submission: Path, target: Path) -> Files:
    intake.take_in(submission, target)
    return content(target)


def refusal(submission: Path, target: Path) -> str:
    """Return the one line with which a submission is refused. Nothing may be left of the submission."""
    with pytest.raises(SubmissionError) as refused:
        intake.take_in(submission, target)
    assert not target.exists()
    message = str(refused.value)
    assert message.isprintable() and 0 < len(message) < 1000
    return message


@each_form
def test_each_form_gives_the_same_folder(form: Callable, tmp_path: Path, target: Path):
    assert taken(form(tmp_path / "in", GOOD), target) == GOOD


@each_form
def test_one_folder_around_everything_is_taken_off(form: Callable, tmp_path: Path, target: Path):
    wrapped = {f"Nguyen_Zoë 1234/{name}": data for name, data in GOOD.items()}
    assert taken(form(tmp_path / "in", wrapped), target) == GOOD


@each_form
@pytest.mark.parametrize(
    "names", [["main.py"], ["a/train.py", "b/train.py"], ["a/train.py", "notes.txt"], ["a/b/train.py"], []]
)
def test_without_one_clear_entry_it_is_refused(form: Callable, names: list[str], tmp_path: Path, target: Path):
    (tmp_path / "in").mkdir() if form is as_folder else None
    submission = form(tmp_path / "in", dict.fromkeys(names, b""))
    message = refusal(submission, target)
    assert "has no train.py" in message or (names == [] and "is no folder" in message)


def test_the_entry_itself_is_taken_and_nothing_beside_it(tmp_path: Path, target: Path):
    folder = as_folder(tmp_path / "in", GOOD)
    assert taken(folder / "train.py", target) == {"train.py": GOOD["train.py"]}


def test_another_single_file_is_refused(tmp_path: Path, target: Path):
    assert "is no folder" in refusal(as_folder(tmp_path, {"main.py": b"x = 1"}) / "main.py", target)
    assert "does not exist" in refusal(tmp_path / "nothing", target)


@each_archive
@pytest.mark.parametrize("name", ["hw.zip", "hw.tar.gz", "hw.txt", "train.py"])
def test_content_decides_what_an_archive_is_and_not_its_name(form: Callable, name: str, tmp_path: Path, target: Path):
    assert taken(form(tmp_path / name, GOOD), target) == GOOD


@each_form
def test_what_tools_leave_behind_is_passed_over(form: Callable, tmp_path: Path, target: Path):
    left = ["__pycache__/train.cpython-311.pyc", ".git/objects/aa/bb", ".ipynb_checkpoints/train.py", ".DS_Store"]
    left += ["__MACOSX/helpers/._data.py", "helpers/__pycache__/data.pyc", "._train.py", ".git/" + "x" * 200]
    big = dict.fromkeys(left, os.urandom(70_000))
    assert taken(form(tmp_path / "in", big | GOOD), target) == GOOD


@each_form
def test_64_kib_are_taken_and_a_byte_more_is_not(form: Callable, tmp_path: Path, target: Path):
    just = GOOD | {"rest": os.urandom(intake.MAX_SOURCE_BYTES - sum(map(len, GOOD.values())))}
    assert "more than 65,536 bytes" in refusal(form(tmp_path / "more", just | {"one": b"1"}), target)
    assert taken(form(tmp_path / "just", just), target) == just


@each_form
def test_100_files_are_taken_and_one_more_is_not(form: Callable, tmp_path: Path, target: Path):
    just = GOOD | {f"part{number}.py": b"" for number in range(98)}
    assert "more than 100 files" in refusal(form(tmp_path / "more", just | {"one.py": b""}), target)
    assert taken(form(tmp_path / "just", just), target) == just


@each_form
def test_folders_are_counted_too(form: Callable, tmp_path: Path, target: Path):
    many = GOOD | {f"a{number}/b/c/x": b"" for number in range(40)}
    assert "100 files or folders" in refusal(form(tmp_path / "in", many), target)


BAD_NAMES = {
    "unprintable": "a\x07.py", "newline": "a\nb.py", "escape": "\x1b[31m.py", "delete": "a\x7f.py",
    "bidi": "train\u202eyp.exe", "zero width": "tra\u200bin.py", "no-break space": "a\xa0b.py",
    "Cyrillic a": "tr\u0430in.py", "fullwidth": "\uff54rain.py", "backslash": "..\\train.py", "drive": "C:train.py",
    "trailing dot": "train.py.", "trailing space": "train.py ", "leading space": " train.py", "dots": "...",
    "markup": "<b>.py", "quote": "a'; drop table grade; --", "stacked accents": "a" + "\u0301\u0302\u0316\u0317.py",
    "long": "x" * 101, "long in bytes": "é" * 51, "emoji": "\U0001f600.py",
}  # fmt: skip
NOT_ON_DISK = {
    "above": "../train.py", "above within": "a/../../b.py", "absolute": "/etc/passwd", "home": "~/a.py",
    "empty part": "a//b.py", "long path": "x/" * 600 + "a.py", "5,000 characters": "x" * 5000,
}  # fmt: skip


@each_form
@pytest.mark.parametrize("kind", BAD_NAMES)
def test_a_name_that_is_not_plain_is_refused(form: Callable, kind: str, tmp_path: Path, target: Path):
    message = refusal(form(tmp_path / "in", GOOD | {BAD_NAMES[kind]: b""}), target)
    assert "100 bytes" in message if "long" in kind else message.startswith("rename ")


@pytest.mark.parametrize("form", [as_folder, as_tar, as_gnu_tar])
def test_a_name_that_is_not_utf_8_is_refused(form: Callable, tmp_path: Path, target: Path):
    assert r"rename 'a\udc80.py'" in refusal(form(tmp_path / "in", GOOD | {"a\udc80.py": b""}), target)


@each_archive
@pytest.mark.parametrize("kind", NOT_ON_DISK)
def test_a_name_that_leads_elsewhere_is_refused(form: Callable, kind: str, tmp_path: Path, target: Path):
    message = refusal(form(tmp_path / "in", GOOD | {NOT_ON_DISK[kind]: b"bad"}), target)
    assert message.endswith("is too long") if "long" in kind or "000" in kind else message.startswith("rename ")


def test_a_nul_in_a_name_does_not_shorten_it(tmp_path: Path, target: Path):
    archive = as_zip(tmp_path / "in", GOOD | {"trainXpy": b""})
    archive.write_bytes(archive.read_bytes().replace(b"trainXpy", b"train\0py"))
    assert r"'train\x00py'" in refusal(archive, target)
    pax = as_tar(tmp_path / "pax", GOOD | {"é" * 30 + "X": b""})
    pax.write_bytes(pax.read_bytes().replace(b"X\n", b"\0\n"))
    assert r"\x00" in refusal(pax, target)


@each_form
@pytest.mark.parametrize("names", [["a/b/c/d/e.py", "a/b/c/d/e/f.py"]])
def test_five_levels_are_taken_and_six_are_not(form: Callable, names: list[str], tmp_path: Path, target: Path):
    assert "more than 4 folders" in refusal(form(tmp_path / "more", GOOD | {names[1]: b""}), target)
    assert names[0] in taken(form(tmp_path / "just", GOOD | {names[0]: b""}), target)


@each_form
def test_accents_are_composed(form: Callable, tmp_path: Path, target: Path):
    apart = unicodedata.normalize("NFD", "Übung é.py")
    assert set(taken(form(tmp_path / "in", GOOD | {apart: b""}), target)) == {*GOOD, "Übung é.py"}


def test_the_accents_of_a_mac_survive_a_zip_without_the_sign_for_utf_8(tmp_path: Path, target: Path):
    archive = as_zip(tmp_path / "in", GOOD | {"XX.py": b""})
    archive.write_bytes(archive.read_bytes().replace(b"XX.py", "é.py".encode()))
    assert "é.py" in taken(archive, target)


@each_form
@pytest.mark.parametrize(
    ("one", "other"),
    [("a.py", "A.py"), ("é.py", "e\u0301.py"), ("helpers/x.py", "Helpers/y.py"), ("straße.py", "STRASSE.py")],
)
def test_two_names_that_some_systems_take_for_one_are_refused(
    form: Callable, one: str, other: str, tmp_path: Path, target: Path
):
    assert "there twice" in refusal(form(tmp_path / "in", GOOD | {one: b"1", other: b"2"}), target)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_twice_in_an_archive_is_refused(tmp_path: Path, target: Path):
    with zipfile.ZipFile(tmp_path / "in.zip", "w") as archive:
        archive.writestr("train.py", "good")
        archive.writestr("train.py", "bad")
    assert "there twice" in refusal(tmp_path / "in.zip", target)
    same = {"train.py": b"good", "./train.py": b"bad"}
    assert "there twice" in refusal(as_tar(tmp_path / "in.tar", same), target)


@pytest.mark.parametrize("names", [("a", "a/b"), ("a/b", "a")])
@each_archive
def test_a_file_that_is_a_folder_too_is_refused(form: Callable, names: tuple[str, str], tmp_path: Path, target: Path):
    assert "there twice" in refusal(form(tmp_path / "in", GOOD | dict.fromkeys(names, b"")), target)


def test_folders_may_be_listed_in_an_archive(tmp_path: Path, target: Path):
    with tarfile.open(tmp_path / "in.tar", "w") as archive:
        archive.add(as_folder(tmp_path / "in", GOOD), arcname=".")
        archive.add(tmp_path / "in" / "helpers", arcname="./helpers", recursive=False)
    assert taken(tmp_path / "in.tar", target) == GOOD


def secret(tmp_path: Path) -> Path:
    (tmp_path / "secret").write_bytes(b"the solution")
    return tmp_path / "secret"


def fifo(path: Path, tmp_path: Path) -> None:
    os.mkfifo(path)


def unix_socket(path: Path, tmp_path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # The path of a socket may have only about a hundred characters.
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path.name)
    os.chdir(here)


ODD_FILES = {
    "symbolic link": lambda path, tmp: path.symlink_to(secret(tmp)),
    "link to a folder": lambda path, tmp: path.symlink_to(tmp),
    "link to nothing": lambda path, tmp: path.symlink_to("nowhere"),
    "hard link": lambda path, tmp: path.hardlink_to(secret(tmp)),
    "pipe": fifo,
    "socket": unix_socket,
}


@pytest.mark.parametrize("kind", ODD_FILES)
@pytest.mark.parametrize("place", ["odd.py", "helpers/odd.py", "train.py", "."])
def test_links_and_pipes_on_the_disk_are_refused(kind: str, place: str, tmp_path: Path, target: Path):
    submission = as_folder(tmp_path / "in", {"helpers/data.py": b""} | (GOOD if place != "train.py" else {}))
    path = submission / place if place != "." else tmp_path / "train.py"
    ODD_FILES[kind](path, tmp_path)
    message = refusal(submission if place != "." else path, target)
    assert ("is a link" if "link" in kind else "is not a regular file") in message


def special_tar(path: Path, kind: bytes, name: str = "odd.py") -> Path:
    with tarfile.open(path, "w") as archive:
        for member, data in GOOD.items():
            header = tarfile.TarInfo(member)
            header.size = len(data)
            archive.addfile(header, io.BytesIO(data))
        header = tarfile.TarInfo(name)
        header.type, header.linkname = kind, "train.py"
        archive.addfile(header)
    return path


@pytest.mark.parametrize("kind", [b"1", b"2", b"3", b"4", b"6", b"S", b"V", b"Z"])
def test_links_and_devices_in_a_tar_are_refused(kind: bytes, tmp_path: Path, target: Path):
    message = refusal(special_tar(tmp_path / "in.tar", kind), target)
    assert ("'odd.py' is a link" if kind in b"12" else "'odd.py' is not a regular file") in message


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFSOCK, stat.S_IFDIR])
def test_links_and_devices_in_a_zip_are_refused(kind: int, tmp_path: Path, target: Path):
    with zipfile.ZipFile(as_zip(tmp_path / "in.zip", GOOD), "a") as archive:
        info = zipfile.ZipInfo("odd.py")
        info.external_attr = (kind | 0o777) << 16
        archive.writestr(info, "/etc/passwd")
    message = refusal(tmp_path / "in.zip", target)
    assert ("is a link" if kind == stat.S_IFLNK else "is not a regular file") in message


def test_a_link_where_something_is_passed_over_does_not_matter(tmp_path: Path, target: Path):
    submission = as_folder(tmp_path / "in", GOOD)
    (submission / ".git").symlink_to("/")
    assert taken(submission, target) == GOOD
    assert taken(special_tar(tmp_path / "in.tar", tarfile.SYMTYPE, ".git"), tmp_path / "other") == GOOD


def test_an_encrypted_zip_is_refused(tmp_path: Path, target: Path):
    archive = as_zip(tmp_path / "in.zip", {"train.py": b"print(1)"})
    data = bytearray(archive.read_bytes())
    data[data.index(b"PK\1\2") + 8] |= 1
    archive.write_bytes(data)
    assert "encrypted" in refusal(archive, target)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_packing_whose_memory_cannot_be_bounded_is_refused(method: int, tmp_path: Path, target: Path):
    with zipfile.ZipFile(tmp_path / "in.zip", "w", method) as archive:
        archive.writestr("train.py", "print(1)")
    assert "use plain zip" in refusal(tmp_path / "in.zip", target)


def test_nested_archives_are_just_files(tmp_path: Path, target: Path):
    inner = as_zip(tmp_path / "inner.zip", GOOD).read_bytes()
    assert taken(as_zip(tmp_path / "in.zip", GOOD | {"inner.zip": inner}), target)["inner.zip"] == inner
    assert "has no train.py" in refusal(as_zip(tmp_path / "only.zip", {"inner.zip": inner}), tmp_path / "other")


@pytest.fixture
def quick() -> Iterator[None]:
    """Make a test fail if it computes for more than 20 s, also in an endless loop."""
    signal.signal(signal.SIGPROF, lambda *_: pytest.fail("not quick"))
    signal.setitimer(signal.ITIMER_PROF, 20)
    yield
    signal.setitimer(signal.ITIMER_PROF, 0)


@contextlib.contextmanager
def little_memory() -> Iterator[None]:
    """Assert that the code in this context needs at most 64 MiB of memory."""
    tracemalloc.start(1)
    yield
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64 * 2**20


@each_archive
def test_a_bomb_is_refused_and_never_unpacked(form: Callable, tmp_path: Path, target: Path):
    bomb = form(tmp_path / "in", GOOD | {"zeros": bytes(100 * 2**20)})
    with little_memory():
        assert "more than" in refusal(bomb, target)


def test_a_zip_that_lies_about_its_sizes_gives_no_more_than_the_limit(tmp_path: Path, target: Path):
    archive = as_zip(tmp_path / "in.zip", {"train.py": bytes(100 * 2**20)})
    data = archive.read_bytes()
    for declared in (0, 10, 65_536, 2**32 - 2):
        archive.write_bytes(data.replace(struct.pack("<L", 100 * 2**20), struct.pack("<L", declared)))
        with little_memory():
            refusal(archive, target)


def test_a_zip_whose_entries_share_their_bytes_gives_no_more_than_the_limit(tmp_path: Path, target: Path, quick: None):
    data = as_zip(tmp_path / "one.zip", {"train.py": bytes(2**20)}).read_bytes()
    start, end = data.index(b"PK\1\2"), data.index(b"PK\5\6")
    many = data[start:end] * 9_000
    tail = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 9_000, 9_000, len(many), start, 0)
    (tmp_path / "in.zip").write_bytes(data[:start] + many + tail)
    assert "more than 65,536 bytes" in refusal(tmp_path / "in.zip", target)


def test_a_zip_with_a_million_entries_is_refused_quickly(tmp_path: Path, target: Path, quick: None):
    entry = struct.pack("<4s4B4HL2L5H2L", b"PK\1\2", 20, 3, 20, 0, 0, 0, 0, 33, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0) + b"a"
    tail = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 65_535, 65_535, 340_000 * len(entry), 4, 0)
    (tmp_path / "in.zip").write_bytes(b"PK\3\4" + entry * 340_000 + tail)
    assert "more than 10,000 entries" in refusal(tmp_path / "in.zip", target)


def raw_header(kind: bytes, size: bytes, name: bytes = b"x") -> bytes:
    block = bytearray(tarfile.TarInfo("x").tobuf(tarfile.USTAR_FORMAT))
    block[0:100] = name.ljust(100, b"\0")
    block[124:136], block[148:156], block[156:157] = size.ljust(12, b"\0"), b" " * 8, kind
    block[148:156] = f"{sum(block):06o}\0 ".encode()
    return bytes(block)


HOSTILE_TARS = {
    "a size below 0": raw_header(b"0", b"\xff" * 10 + b"\xfe\x00"),
    "an extended header of a size below 0": raw_header(b"x", b"\xff" * 10 + b"\xfe\x00"),
    "a size of 8 GiB": raw_header(b"0", b"77777777777"),
    "a size of 2**88": raw_header(b"0", b"\x80" + b"\xff" * 11),
    "30,000 long names": raw_header(b"L", b"0") * 30_000,
    "30,000 extended headers": raw_header(b"x", b"0") * 30_000,
    "digits without end": raw_header(b"x", b"70000000") + b"1" * 0o70000000,
    "records of length 0": raw_header(b"x", b"1000") + b"0 path=train.py\n".ljust(512, b"0"),
    "records longer than all": raw_header(b"x", b"1000") + b"9999 path=train.py\n".ljust(512, b"0"),
    "a million records": raw_header(b"x", b"60000000") + b"5 a=\n" * (0o60000000 // 5 + 1),
    "a file name of 14 MiB": raw_header(b"L", b"70000000") + b"x" * 0o70000000 + raw_header(b"0", b"0"),
    "a thousand passed over, then nothing": raw_header(b"0", b"0", b".git/x") * 30_000,
}


@pytest.mark.parametrize("kind", HOSTILE_TARS)
def test_a_hostile_tar_is_refused_quickly(kind: str, tmp_path: Path, target: Path, quick: None):
    (tmp_path / "in.tar").write_bytes(tarred({"train.py": b""})[:512] + HOSTILE_TARS[kind])
    refusal(tmp_path / "in.tar", target)


@each_archive
def test_an_archive_that_ends_early_is_refused(form: Callable, tmp_path: Path, target: Path):
    whole = form(tmp_path / "whole", GOOD).read_bytes()
    for length in (len(whole) // 4, len(whole) // 2, 600, 20):
        (tmp_path / "in").write_bytes(whole[: min(length, len(whole) - 30)].rstrip(b"\0"))
        refusal(tmp_path / "in", target)


def test_an_archive_larger_than_the_limit_is_not_read(tmp_path: Path, target: Path):
    with (tmp_path / "in.zip").open("wb") as file:
        file.write(b"PK\3\4")
        file.truncate(2**40)
    assert "more than 16,777,216 bytes" in refusal(tmp_path / "in.zip", target)


def test_of_a_folder_with_very_many_entries_no_more_are_looked_at_than_it_takes_to_refuse_it(tmp_path: Path):
    files = as_folder(tmp_path / "files", {str(number): b"" for number in range(300)})
    folders = as_folder(tmp_path / "folders", {f"{number}/x": b"" for number in range(300)})
    for folder, enough in ((files, 101), (folders, 202)):
        looked_at = []
        with pytest.raises(SubmissionError, match="more than 100 files or folders"):
            intake._collect(looked_at.append(entry) or entry for entry in archives._folder_entries(folder))
        assert len(looked_at) <= enough


def test_a_folder_that_is_swapped_for_a_link_while_it_is_read_shows_no_other_file(tmp_path: Path):
    submission, hidden = as_folder(tmp_path / "in", GOOD), as_folder(tmp_path / "hidden", {"data.py": b"secret"})
    entries = archives._folder_entries(submission)
    name, read = next(entry for entry in entries if entry[0] == "helpers/data.py")
    (submission / "helpers").rename(tmp_path / "aside")
    (submission / "helpers").symlink_to(hidden)
    assert read(100) == GOOD[name]


def test_a_folder_that_becomes_a_link_before_it_is_read_is_refused(tmp_path: Path):
    submission = as_folder(tmp_path / "in", GOOD)
    entries = archives._folder_entries(submission)
    assert "helpers" in iter(name for name, _ in entries)
    (submission / "helpers").rename(tmp_path / "aside")
    (submission / "helpers").symlink_to(tmp_path / "aside")
    with pytest.raises(OSError):
        next(entries)


def test_what_stood_in_the_target_is_not_lost_by_a_refusal(tmp_path: Path):
    target = as_folder(tmp_path / "target", {"mine": b"1"})
    with pytest.raises(SubmissionError):
        intake.take_in(as_folder(tmp_path / "in", {"main.py": b""}), target)
    with pytest.raises(OSError):
        intake.take_in(as_folder(tmp_path / "good", GOOD), target)
    assert content(target) == {"mine": b"1"}
    assert {path.name for path in tmp_path.iterdir()} == {"target", "in", "good"}


def test_an_empty_target_is_filled(tmp_path: Path, target: Path):
    target.mkdir(parents=True)
    assert taken(as_folder(tmp_path / "in", GOOD), target) == GOOD


def test_a_message_names_the_entry_and_cannot_steer_a_terminal(tmp_path: Path, target: Path):
    message = refusal(as_tar(tmp_path / "in.tar", GOOD | {"\x1b]0;owned\x07" + "x" * 300: b""}), target)
    assert r"'\x1b]0;owned\x07xxx" in message and "..." in message


def test_the_current_folder_has_a_name_in_messages(tmp_path: Path, target: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    assert refusal(Path(), target).startswith("'.' has no train.py")
