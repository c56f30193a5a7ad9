"""The key of a cluster of machines is for its owner alone, and Dask reads the settings beside it."""

import subprocess
import sys
from pathlib import Path

import pytest

from grader.__main__ import main
from tests.conftest import run_python

ASKS = "import distributed; s = distributed.Security(); print(s.require_encryption, s.tls_client_key)"


def test_only_the_owner_can_read_the_key(tmp_path: Path):
    assert main(["create-tls", str(tmp_path / "tls")]) == 0
    assert (tmp_path / "tls").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "tls" / "key.pem").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["tls"]
    told = run_python("-c", ASKS, DASK_CONFIG=str(tmp_path / "tls")).stdout
    assert told == f"True {tmp_path / 'tls' / 'key.pem'}\n"


def test_an_older_key_is_kept(tmp_path: Path, capfd: pytest.CaptureFixture):
    main(["create-tls", str(tmp_path / "tls")])
    key = (tmp_path / "tls" / "key.pem").read_text()
    assert main(["create-tls", str(tmp_path / "tls")]) == 2
    assert "is there already; name a new folder" in capfd.readouterr().err
    assert (tmp_path / "tls" / "key.pem").read_text() == key


def test_the_commands_to_type_survive_a_space_in_the_path(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, "-m", "grader", "create-tls", tmp_path / "my key"], capture_output=True, text=True, check=True
    )
    assert f"DASK_CONFIG='{tmp_path / 'my key'}' dask scheduler" in done.stdout
