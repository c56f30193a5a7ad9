"""Submissions are imported from folders, archives and nbgrader's `submitted/`, also if they have hostile names."""

import io
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from grader.classroom.collecting import account, downloads, import_submissions, student_submission, students
from grader.classroom.course import Course
from tests.support.files import as_folder, as_zip

NAME = "06_techniques"
NOTEBOOK = b'{"cells": []}'
FILES = {
    f"ada/{NAME}.ipynb": NOTEBOOK,
    f"ada/{NAME}.py": b"not looked at",
    f"bob/{NAME}/{NAME}.ipynb": NOTEBOOK,
    f"bob/{NAME}/my_assignment/train.py": b"print()",
    f"bob/{NAME}/timestamp.txt": b"2026-01-02 03:04:05.000006 UTC",
    f"Zoë Made-Up_4711_assignsubmission_file_/{NAME}.ipynb": NOTEBOOK,
}


@pytest.fixture
def course(tmp_path: Path) -> Course:
    """Return a course with one released assignment. It has as much of a course as the import needs."""
    (tmp_path / "work" / "release" / NAME).mkdir(parents=True)
    (tmp_path / "work" / "nbgrader_config.py").write_text("c = get_config()\n")
    return Course(tmp_path / "work")


def not_graded(download: import_submissions.Download) -> dict[str, str]:
    """Return the reasons of the files that are not graded."""
    told = zip(download.names, download.fates, strict=True)
    return {name: fate.reason for name, fate in told if account.state(fate) == account.NOT_GRADED}


def tarred(path: Path, files: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


@pytest.mark.parametrize("pack", [as_folder, as_zip, tarred])
def test_a_folder_or_archive_becomes_nbgraders_folders(course: Course, tmp_path: Path, pack: Callable):
    download = import_submissions.import_submissions(pack(tmp_path / "handed-in", FILES), course)
    assert len(download.submissions) == 3
    assert set(not_graded(download)) == {f"ada/{NAME}.py", f"bob/{NAME}/timestamp.txt"}
    assert set(student_submission.find_submissions(course)) == {("Zoe-Made-Up", NAME), ("ada", NAME), ("bob", NAME)}
    bob = student_submission.read_submission(course, "bob", NAME)
    assert (bob.notebook, bob.program) == (NOTEBOOK, {"train.py": b"print()"})
    assert bob.timestamp is None, "in an archive the student could have written it"
    assert student_submission.unrecognised_paths(course) == []
    assert not list(course.root.rglob("*.py.py"))
    assert not list(course.root.rglob(f"{NAME}.py"))


def test_two_names_with_the_same_id_are_named_and_all_others_are_taken_in(course: Course, tmp_path: Path):
    names = [f"{who}/{NAME}.ipynb" for who in ("a b", "a-b", "ada")]
    download = import_submissions.import_submissions(as_folder(tmp_path / "in", dict.fromkeys(names, NOTEBOOK)), course)
    reason = "'a b' and 'a-b' would be the same student a-b; rename their folders or files"
    assert not_graded(download) == dict.fromkeys(names[:2], reason)
    assert list(student_submission.find_submissions(course)) == [("ada", NAME)]


def test_the_highest_of_several_notebooks_counts(course: Course, tmp_path: Path):
    files = {f"ada/old/{NAME}.ipynb": b"old", f"ada/{NAME}.ipynb": b"new", f"ada/z/y/{NAME}.ipynb": b"older"}
    download = import_submissions.import_submissions(as_folder(tmp_path / "in", files), course)
    reason = f"another notebook of this assignment counts, '{NAME}.ipynb'"
    assert not_graded(download) == {f"ada/old/{NAME}.ipynb": reason, f"ada/z/y/{NAME}.ipynb": reason}
    assert student_submission.read_submission(course, "ada", NAME).notebook == b"new"


def test_moodles_numbers_distinguish_students_within_one_archive(course: Course, tmp_path: Path):
    first, second = (f"Ada L_{number}_assignsubmission_{{}}_/{NAME}.ipynb" for number in (5, 6))
    import_submissions.import_submissions(
        as_zip(tmp_path / "a.zip", {first.format("file"): NOTEBOOK, first.format("onlinetext"): NOTEBOOK}), course
    )
    assert list(student_submission.find_submissions(course)) == [("Ada-L", NAME)]
    later = import_submissions.import_submissions(as_zip(tmp_path / "b.zip", {second.format("file"): b"6"}), course)
    reason = (
        "a student Ada-L with the number 5 has handed in before, and this one has 6; rename the folders of one "
        "of them, or, if both are one person, delete the entries of Ada-L in people.json"
    )
    assert not_graded(later) == {second.format("file"): reason}, "a namesake's work is not replaced"
    both = {first.format("file"): b"5", second.format("file"): b"6", f"Bob_7_assignsubmission_file/{NAME}.ipynb": b""}
    download = import_submissions.import_submissions(as_zip(tmp_path / "c.zip", both), course)
    reason = "'Ada L (5)' and 'Ada L (6)' would be the same student Ada-L; rename their folders or files"
    assert not_graded(download) == dict.fromkeys(list(both)[:2], reason)
    assert student_submission.read_submission(course, "Ada-L", NAME).notebook == NOTEBOOK, "the earlier one stays"


@pytest.mark.parametrize("pack", [as_folder, as_zip])
def test_a_folder_around_the_whole_class_is_ignored(course: Course, tmp_path: Path, pack: Callable):
    files = {f"class/{name}/{NAME}.ipynb": NOTEBOOK for name in ("ada", "bob")} | {"__MACOSX/class/x.ipynb": b""}
    download = import_submissions.import_submissions(pack(tmp_path / "in", files), course)
    assert not_graded(download) == {"__MACOSX/class/x.ipynb": "a tool made it, like git, Jupyter or macOS"}
    assert list(student_submission.find_submissions(course)) == [("ada", NAME), ("bob", NAME)]


def test_each_file_that_is_not_graded_has_a_reason(course: Course, tmp_path: Path):
    files = {
        f"ada/{NAME}.ipynb": NOTEBOOK, f"ada/{NAME}-Copy1.ipynb": b"", "ada/.ipynb_checkpoints/x.ipynb": b"",
        "bob/06_tecniques.ipynb": b"", "bob/diary.ipynb": b"", "bob/photo.png": b"", "cy/work.rar": b"",
        f"eve/{NAME}.zip": b"no zip", "loose.ipynb": b"", "fay/net.py": b"",
    }  # fmt: skip
    download = import_submissions.import_submissions(as_zip(tmp_path / "in", files), course)
    assert download.submissions == [("ada", NAME)]
    assert not_graded(download) == {
        f"ada/{NAME}-Copy1.ipynb": f"another notebook of this assignment counts, '{NAME}.ipynb'",
        "ada/.ipynb_checkpoints/x.ipynb": "a tool made it, like git, Jupyter or macOS",
        "bob/06_tecniques.ipynb": f"no assignment has the name '06_tecniques.ipynb'; if {NAME}.ipynb is meant, "
        "give it that name in the download, and repeat the command",
        "bob/diary.ipynb": "no assignment has the name 'diary.ipynb'",
        "bob/photo.png": "only the notebook and the program are graded",
        "cy/work.rar": "ask for a .zip in its place, or unpack it",
        f"eve/{NAME}.zip": "it is no .zip, .tar or .tar.gz archive",
        "loose.ipynb": "it lies in no student's folder; put it into a folder with the student's name",
        "fay/net.py": f"a program is graded together with {NAME}.ipynb, which is not there",
    }


@pytest.mark.parametrize("name", [f"{NAME} (1).ipynb", f"{NAME}(2).ipynb", f"{NAME}-1.ipynb", f"{NAME}-Copy1.ipynb"])
def test_a_copy_counts_if_there_is_nothing_else(course: Course, tmp_path: Path, name: str):
    source = as_folder(tmp_path / "in", {f"ada/{name}": NOTEBOOK, f"bob/{NAME}.ipynb": NOTEBOOK})
    assert not_graded(import_submissions.import_submissions(source, course)) == {}
    assert student_submission.read_submission(course, "ada", NAME).notebook == NOTEBOOK


@pytest.mark.parametrize("pack", [as_zip, tarred])
def test_archives_that_learners_handed_in_are_opened(course: Course, tmp_path: Path, pack: Callable):
    inner = {f"work/{NAME}.ipynb": NOTEBOOK, "work/my_assignment/train.py": b"1", "work/my_assignment/net/a.py": b"2"}
    ending = "zip" if pack is as_zip else "tar.gz"
    packed = pack(tmp_path / f"packed.{ending}", inner).read_bytes()
    program = pack(tmp_path / f"program.{ending}", {"train.py": b"3"}).read_bytes()
    files = {
        f"ada.{ending}": packed,
        f"bob/all.{ending}": packed,
        f"cy/{NAME}.ipynb": NOTEBOOK,
        f"cy/p.{ending}": program,
    }
    download = import_submissions.import_submissions(as_folder(tmp_path / "in", files), course)
    assert not_graded(download) == {}
    found = {who: student_submission.read_submission(course, who, NAME) for who in ("ada", "bob", "cy")}
    whole = {"train.py": b"1", "net/a.py": b"2"}
    assert {who: one.program for who, one in found.items()} == {"ada": whole, "bob": whole, "cy": {"train.py": b"3"}}
    assert {one.notebook for one in found.values()} == {NOTEBOOK}


def test_a_learners_archive_cannot_fill_the_memory_or_lead_out(course: Course, tmp_path: Path):
    bomb = as_zip(tmp_path / "bomb.zip", {f"{NAME}.ipynb": bytes(30 * 2**20)}).read_bytes()
    many = as_zip(tmp_path / "many.zip", {f"{n}.py": b"" for n in range(1200)}).read_bytes()
    evil = as_zip(tmp_path / "evil.zip", {f"../../{NAME}.ipynb": NOTEBOOK}).read_bytes()
    files = {"ada/bomb.zip": bomb, "bob/many.zip": many, "eve/evil.zip": evil, f"cy/{NAME}.ipynb": NOTEBOOK}
    reasons = not_graded(import_submissions.import_submissions(as_folder(tmp_path / "in", files), course))
    too_much = "it holds more than 1,000 files or 16,777,216 bytes; ask for the notebook and the program only"
    assert reasons == {
        "ada/bomb.zip": too_much, "bob/many.zip": too_much,
        f"eve/evil.zip/../../{NAME}.ipynb": "its path leads out of the download",
    }  # fmt: skip
    assert {path.relative_to(tmp_path).parts[0] for path in tmp_path.rglob("*.ipynb")} == {"work", "in"}


def test_a_damaged_file_of_an_archive_costs_this_file_only(course: Course, tmp_path: Path):
    archive = as_zip(tmp_path / "in.zip", {f"ada/{NAME}.ipynb": b"a" * 100, f"bob/{NAME}.ipynb": NOTEBOOK})
    content = bytearray(archive.read_bytes())
    start = content.index(f"ada/{NAME}.ipynb".encode()) + len(f"ada/{NAME}.ipynb")
    content[start] ^= 0xFF
    archive.write_bytes(content)
    download = import_submissions.import_submissions(archive, course)
    assert not_graded(download) == {f"ada/{NAME}.ipynb": import_submissions.UNREADABLE}
    assert student_submission.read_submission(course, "bob", NAME).notebook == NOTEBOOK


def test_a_damaged_file_does_not_replace_what_was_handed_in_before(course: Course, tmp_path: Path):
    import_submissions.import_submissions(as_folder(tmp_path / "before", {f"ada/{NAME}.ipynb": NOTEBOOK}), course)
    archive = as_zip(tmp_path / "in.zip", {f"ada/{NAME}.ipynb": b"a" * 100})
    content = bytearray(archive.read_bytes())
    content[content.index(f"ada/{NAME}.ipynb".encode()) + len(f"ada/{NAME}.ipynb")] ^= 0xFF
    archive.write_bytes(content)
    import_submissions.import_submissions(archive, course)
    assert student_submission.read_submission(course, "ada", NAME).notebook == NOTEBOOK


def test_the_files_of_a_tool_do_not_count_as_a_learners(course: Course, tmp_path: Path):
    files = {f".git/{n}": b"" for n in range(1200)} | {f"{NAME}.ipynb": NOTEBOOK}
    archive = as_zip(tmp_path / "work.zip", files).read_bytes()
    download = import_submissions.import_submissions(as_folder(tmp_path / "in", {"ada/work.zip": archive}), course)
    assert download.submissions == [("ada", NAME)]


def test_a_tar_that_ends_with_a_learners_zip_stays_a_tar(course: Course, tmp_path: Path):
    evil = as_zip(tmp_path / "evil.zip", {f"bob/{NAME}.ipynb": b"forged"}).read_bytes()
    path = tmp_path / "in.tar"
    with tarfile.open(path, "w") as archive:
        for name, content in ((f"ada/{NAME}.ipynb", NOTEBOOK), ("eve/evil.zip", evil)):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    download = import_submissions.import_submissions(path, course)
    assert {student for student, _ in download.submissions} == {"ada", "eve"}


@pytest.mark.parametrize("pack", [as_zip, tarred])
def test_no_path_leads_out_of_the_folder(course: Course, tmp_path: Path, pack: Callable):
    names = [
        f"../../evil/{NAME}.ipynb",
        f"/evil/{NAME}.ipynb",
        f"ada/../../../evil/{NAME}.ipynb",
        f"..\\evil/{NAME}.ipynb",
    ]
    import_submissions.import_submissions(
        pack(tmp_path / "in", dict.fromkeys([*names, f"ada/{NAME}.ipynb"], NOTEBOOK)), course
    )
    written = {path.relative_to(tmp_path).parts[0] for path in tmp_path.rglob("*.ipynb")}
    assert written == {"work"}
    assert {path.relative_to(course.root).parts[0] for path in course.root.rglob("*.ipynb")} == {"submitted"}


def test_links_and_devices_in_an_archive_are_ignored(course: Course, tmp_path: Path):
    path = tmp_path / "in.tar"
    with tarfile.open(path, "w") as archive:
        for name, kind in ((f"ada/{NAME}.ipynb", tarfile.SYMTYPE), (f"bob/{NAME}.ipynb", tarfile.FIFOTYPE)):
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, "/etc/passwd"
            archive.addfile(member)
    download = import_submissions.import_submissions(path, course)
    assert download.submissions == []
    assert set(not_graded(download).values()) == {"it is a link, and links are not followed", "it is no regular file"}


@pytest.mark.parametrize("content", [b"", b"PK\3\4" + b"\0" * 100, b"\x1f\x8b" + b"\0" * 50, b"text"])
def test_a_damaged_archive_is_reported_in_one_line(course: Course, tmp_path: Path, content: bytes):
    (tmp_path / "in.zip").write_bytes(content)
    with pytest.raises(downloads.SubmissionImportError) as error:
        import_submissions.import_submissions(tmp_path / "in.zip", course)
    assert "\n" not in str(error.value)


def test_an_archive_bomb_is_read_up_to_a_limit(course: Course, tmp_path: Path):
    import_submissions.import_submissions(
        as_zip(tmp_path / "in.zip", {f"ada/{NAME}.ipynb": b"0" * 200_000_000}), course
    )
    (written,) = course.root.rglob("*.ipynb")
    assert written.stat().st_size == import_submissions.MAX_BYTES + 1
    assert "bytes" in student_submission.read_submission(course, "ada", NAME).problem


@pytest.mark.parametrize(
    ("name", "student"),
    [
        ("ada", "ada"), ("Zoë Made-Up", "Zoe-Made-Up"), ("x y_17_assignsubmission_file_", "x-y"),
        ("../..", "name-"), ("=cmd()", "cmd"), ("a\x1b[31mb", "a-31mb"), ("a" * 5000, "a" * 64),
        ("", "name-"), ("ада", "name-"), ("ада_5_assignsubmission_file_", "name-"),
    ],
)  # fmt: skip
def test_a_students_id_has_plain_characters_only(name: str, student: str):
    assert students.student_id(name).startswith(student)
    assert student_submission.STUDENT.fullmatch(student)


def test_unrecognised_paths_in_submitted_are_reported(course: Course, tmp_path: Path):
    submitted = course.root / "submitted"
    (submitted / "ada" / NAME).mkdir(parents=True)
    (submitted / "a b\x1b[2J").mkdir()
    (submitted / ("x" * 200)).mkdir()
    (submitted / "bob").symlink_to("/etc")
    (submitted / "ada" / "another").mkdir()
    (submitted / "eve").mkdir()
    (submitted / "eve" / NAME).symlink_to(submitted / "ada" / NAME)
    assert list(student_submission.find_submissions(course)) == [("ada", NAME)]
    assert len(student_submission.unrecognised_paths(course)) == 5


@pytest.mark.parametrize("stamp", ["", "yesterday", "2026-13-45 99:99:99 UTC", "../../etc", "9" * 200, "\x00"])
def test_an_invalid_time_stamp_is_ignored(course: Course, stamp: str):
    folder = course.folder("submitted", "ada", NAME)
    folder.mkdir(parents=True)
    (folder / "timestamp.txt").write_text(stamp)
    assert student_submission.read_submission(course, "ada", NAME).timestamp is None


@pytest.mark.parametrize("kind", ["text", "pipe", "folder", "link"])
def test_an_invalid_time_stamp_is_removed(course: Course, kind: str):
    path = course.folder("submitted", "ada", NAME) / "timestamp.txt"
    path.parent.mkdir(parents=True)
    made = {"text": lambda: path.write_text("soon"), "pipe": lambda: os.mkfifo(path), "folder": path.mkdir,
            "link": lambda: path.symlink_to("/dev/zero")}  # fmt: skip
    made[kind]()
    student_submission.remove_invalid_timestamp(course, "ada", NAME)
    assert not os.path.lexists(path)
    path.write_text("2026-01-02 03:04:05.000006 UTC")
    student_submission.remove_invalid_timestamp(course, "ada", NAME)
    assert path.exists()


def test_links_are_not_followed(course: Course, tmp_path: Path):
    folder = course.folder("submitted", "ada", NAME)
    folder.mkdir(parents=True)
    (tmp_path / "secret").write_text("abcdefgh12345678")
    for name in (f"{NAME}.ipynb", "submission_secret.txt", "timestamp.txt", "my_assignment"):
        (folder / name).symlink_to(tmp_path / "secret")
    submission = student_submission.read_submission(course, "ada", NAME)
    assert (submission.notebook, submission.program, submission.timestamp) == (None, {}, None)
    assert "abcdefgh" not in submission.secret
    assert submission.problem
    assert submission.program_problem


def test_an_unwritable_file_does_not_stop_the_import(course: Course, tmp_path: Path):
    files = {
        **FILES,
        f"eve/{NAME}.ipynb": NOTEBOOK, "eve/my_assignment/" + "\u5b66" * 100 + ".py": b"",
        f"mallory/{NAME}.ipynb": NOTEBOOK, "mallory/my_assignment": b"a file", "mallory/my_assignment/train.py": b"",
        f"peggy/{NAME}.ipynb": NOTEBOOK, **{f"peggy/my_assignment/{n}": b"" for n in range(1500)},
    }  # fmt: skip
    archive = as_zip(tmp_path / "class.zip", files)
    download = import_submissions.import_submissions(archive, course)
    assert len(download.submissions) == 6
    reasons = set(not_graded(download).values())
    assert {
        "its name cannot be written; ask for another name",
        "the student handed in more than 1,000 files",
    } <= reasons
    for student in ("ada", "eve", "mallory", "peggy"):
        assert (course.folder("submitted", student, NAME) / f"{NAME}.ipynb").read_bytes() == NOTEBOOK


def test_a_submission_without_writable_files_still_counts(course: Course, tmp_path: Path):
    """The notebook's folder is a file here. The submission is graded like one without a notebook."""
    files = {f"eve/{NAME}.ipynb/{NAME}.ipynb": NOTEBOOK, f"ada/{NAME}.ipynb": NOTEBOOK}
    assert len(import_submissions.import_submissions(as_zip(tmp_path / "class.zip", files), course).submissions) == 2


def test_a_program_belongs_to_the_assignment_that_asks_for_one_and_is_named_without_it(tmp_path: Path):
    for name, content in (("03_by_hand", "{}"), ("08_assignment", '{"grade_id": "four_workers"}')):
        folder = tmp_path / "work" / "release" / name
        folder.mkdir(parents=True)
        (folder / f"{name}.ipynb").write_text(content)
    (tmp_path / "work" / "nbgrader_config.py").write_text("c = get_config()\n")
    course, program = Course(tmp_path / "work"), "my_assignment/train.py"
    files = {"ada/03_by_hand.ipynb": NOTEBOOK, f"ada/{program}": b"lost?", "bob/08_assignment.ipynb": NOTEBOOK}
    files |= {"bob/03_by_hand.ipynb": NOTEBOOK, f"bob/{program}": b"bob's"}
    files |= {f"cy/{program}": b"cy's, alone"}
    download = import_submissions.import_submissions(as_folder(tmp_path / "in", files), course)
    reason = "a program is graded together with 08_assignment.ipynb, which is not there"
    assert not_graded(download) == {f"ada/{program}": reason}
    programs = {one: student_submission.read_submission(course, *one).program for one in
                student_submission.find_submissions(course)}  # fmt: skip
    assert programs == {
        ("ada", "03_by_hand"): {}, ("bob", "03_by_hand"): {}, ("bob", "08_assignment"): {"train.py": b"bob's"},
        ("cy", "08_assignment"): {"train.py": b"cy's, alone"},
    }  # fmt: skip
    released = course.folder("release", ".", "08_assignment") / "08_assignment.ipynb"
    assert student_submission.read_submission(course, "cy", "08_assignment").notebook == released.read_bytes()
