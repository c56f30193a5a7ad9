"""Parts are carried to a machine without a network. The trial there can be resumed, and its results taken home."""

import hashlib
import json
import shutil
import sys
import tarfile
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY, SCRIPTS

sys.path.insert(0, str(SCRIPTS / "install"))
import pack
import trial


def test_only_what_the_course_needs_on_that_machine_is_carried():
    wanted = pack.requirements("3.12")
    names = {line.partition("==")[0] for line in wanted}
    assert {"numpy", "papermill", "aiohttp", "setuptools", "pip"} <= names
    assert not names & {"torch", "playwright", "pytest", "uv", "pywinpty", "importlib-metadata"}
    assert "importlib-metadata" in {line.partition("==")[0] for line in pack.requirements("3.11")}


def test_no_part_is_larger_than_a_call_can_carry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pack, "PART_BYTES", 100)
    files = [tmp_path / f"{number}" for number in range(20)]
    for number, file in enumerate(files):
        file.write_bytes(bytes(10 + 4 * number))
    found = pack.parts(files)
    assert sorted(file for part in found for file in part) == sorted(files)
    sizes = [sum(file.stat().st_size for file in part) for part in found]
    assert max(sizes) <= 100 and len(found) <= 2 * sum(sizes) / 100 + 1


@pytest.fixture
def carried(tmp_path: Path) -> Path:
    """Return two made-up parts."""
    parts = [{"a.whl": b"aaa"}, {"b.whl": b"bbb"}]
    about = {
        "commit": "0123456789ab", "requirements": ["a==1"], "tracked": {"LICENSE": digest(REPOSITORY / "LICENSE")},
        "parts": [{name: hashlib.sha256(content).hexdigest() for name, content in part.items()} for part in parts],
    }  # fmt: skip
    for number, part in enumerate(parts, 1):
        folder = tmp_path / "parts" / f"part-{number:02}"
        folder.mkdir(parents=True)
        (folder / "parts.json").write_text(json.dumps(about))
        for name, content in part.items():
            (folder / name).write_bytes(content)
    return tmp_path / "parts"


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def call(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["trial.py", *map(str, arguments)])
    return trial.main()


def test_parts_may_come_one_by_one(carried: Path, tmp_path: Path, monkeypatch, capsys):
    (carried / "part-02").rename(tmp_path / "later")
    arguments = ("--parts", carried, "--folder", tmp_path / "trial")
    assert call(monkeypatch, *arguments, "--collect") == 0
    assert capsys.readouterr().out == "trial: 1 of 2 parts are here\n"
    with pytest.raises(SystemExit, match="trial: missing: part-02"):
        call(monkeypatch, *arguments)
    (carried / "part-01" / "a.whl").unlink()
    (tmp_path / "later").rename(carried / "part-02")
    capsys.readouterr()
    assert call(monkeypatch, *arguments, "--collect") == 0
    assert capsys.readouterr().out == "trial: 2 of 2 parts are here\n"


def test_a_part_that_was_cut_off_is_missing(carried: Path, tmp_path: Path, monkeypatch):
    (carried / "part-02" / "b.whl").write_bytes(b"b")
    with pytest.raises(SystemExit, match="trial: missing: part-02"):
        call(monkeypatch, "--parts", carried, "--folder", tmp_path / "trial")


def test_a_folder_without_parts_is_said(tmp_path: Path, monkeypatch):
    with pytest.raises(SystemExit, match=r"trial: no part in .*: name the folder that pack\.py has written"):
        call(monkeypatch, "--parts", tmp_path / "none", "--folder", tmp_path / "trial")


def test_files_that_differ_from_the_packed_commit_make_it_dirty(capsys):
    about = {"commit": "0123456789ab", "tracked": {"LICENSE": digest(REPOSITORY / "LICENSE")}}
    assert trial.commit(about) == "0123456789ab"
    about["tracked"]["README.md"] = "0" * 64
    assert trial.commit(about) == "0123456789ab-dirty"
    assert capsys.readouterr().out.endswith("the first is README.md\n")


def made_up_steps(tmp_path: Path, second: str) -> list[trial.Step]:
    count = "open('count', 'a').write('x')"
    return [
        trial.Step("first", [sys.executable, "-c", f"import os; os.chdir({str(tmp_path)!r}); {count}"]),
        trial.Step("second", [sys.executable, "-c", second]),
        trial.Step("third", [sys.executable, "-c", "import os; print(os.environ['COURSE_COMMIT'])"]),
    ]


def test_steps_that_succeeded_are_not_repeated_and_a_failed_one_stops_no_other(
    carried: Path, tmp_path: Path, monkeypatch, capsys
):
    places = trial.Places(tmp_path / "trial")
    about = trial.collect(carried, places)
    monkeypatch.setattr(trial, "steps", lambda *_: made_up_steps(tmp_path, "raise SystemExit('no card')"))
    assert trial.trial(places, about, quick=True) == 1
    assert "2/3 second: status 1" in (said := capsys.readouterr().out) and "    no card\n" in said
    monkeypatch.setattr(trial, "steps", lambda *_: made_up_steps(tmp_path, "print('a card')"))
    assert trial.trial(places, about, quick=True) == 0
    assert (tmp_path / "count").read_text() == "x", "the first step was done once"
    record = json.loads((places.home / "trial.json").read_text())
    assert record["steps"]["third"]["last_lines"] == ["0123456789ab"] == [record["commit"]]
    with tarfile.open(places.home / "trial.tar.gz") as tar:
        assert "results/logs/second.log" in tar.getnames()


def test_after_an_interrupt_what_was_measured_is_taken_home_and_brought_back(
    carried: Path, tmp_path: Path, monkeypatch
):
    measured, places = tmp_path / "speed" / "gpu", trial.Places(tmp_path / "trial")
    monkeypatch.setattr(trial, "MEASURED", measured)
    kill = f"import os, pathlib, signal; pathlib.Path({str(measured)!r}).mkdir(parents=True); "
    kill += f"pathlib.Path({str(measured)!r}, 'a.json').write_text('1'); os.kill(os.getppid(), signal.SIGINT)"
    steps = [trial.Step("measure", [sys.executable, "-c", kill])]
    monkeypatch.setattr(trial, "steps", lambda *_: steps)
    about = trial.collect(carried, places)
    with pytest.raises(KeyboardInterrupt):
        trial.trial(places, about, quick=True)
    assert json.loads((places.home / "trial.json").read_text())["steps"] == {}
    shutil.rmtree(measured)
    steps[0] = trial.Step("measure", [sys.executable, "-c", f"assert open({str(measured / 'a.json')!r}).read() == '1'"])
    assert trial.trial(places, about, quick=True) == 0


def test_after_a_step_that_must_succeed_nothing_is_tried(carried: Path, tmp_path: Path, monkeypatch):
    places = trial.Places(tmp_path / "trial")
    failing = trial.Step("set-up", [sys.executable, "-c", "raise SystemExit(3)"], must_succeed=True)
    monkeypatch.setattr(trial, "steps", lambda *_: [failing, *made_up_steps(tmp_path, "")])
    assert trial.trial(places, trial.collect(carried, places), quick=True) == 1
    assert not (tmp_path / "count").exists()
