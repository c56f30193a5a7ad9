"""Writes folders and archives of small files."""

import zipfile
from pathlib import Path


def as_folder(path: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(content)
    return path


def as_zip(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def source_folder(path: Path, files: dict[str, str]) -> Path:
    """Write text files. See `as_folder`."""
    return as_folder(path, {name: text.encode() for name, text in files.items()})
