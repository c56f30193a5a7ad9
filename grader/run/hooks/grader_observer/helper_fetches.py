"""Tells a worker which images its helper processes fetch.

A program may let other processes fetch its images, such as those of PyTorch's DataLoader. Each of them appends a line
to a file that the worker reads at every update.
"""

import json
import os
import sys
from collections import defaultdict
from typing import NamedTuple


class Fetch(NamedTuple):
    """One batch that a helper fetched.

    `name` is the split. `with_gradients` is whether PyTorch recorded gradients. The batches of one `loader` are used in
    the order of their `position`, which counts from 0.
    """

    name: str
    with_gradients: bool
    indices: list[int]
    loader: int
    position: int


class HelperFetches:
    """The batches that the helpers of one worker fetch. A helper that was forked shares the open file."""

    def __init__(self, folder: str, rank: int):
        self.worker = os.getpid()
        path = f"{folder}/fetches{rank}.jsonl"
        self.writing = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self.reading = os.open(path, os.O_RDONLY)
        self.rest = b""  # the beginning of a line whose end is not written yet
        self.early: dict[int, dict[int, Fetch]] = defaultdict(dict)  # by loader and position: fetched, but not next
        self.next: dict[int, int] = defaultdict(int)  # by loader: the position of the batch that is used next
        self.count = 0  # of the batches that this process fetched as a helper

    def in_helper(self) -> bool:
        """Return whether the caller is a helper process and not the worker itself."""
        return os.getpid() != self.worker

    def add(self, name: str, with_gradients: bool, indices: list[int]) -> None:
        """Note in a helper that it fetched a batch. The line is written at once, so that lines do not mix.

        The helpers of a DataLoader take turns, and their seeds are one number plus the helper's number.
        """
        info = sys.modules["torch"].utils.data.get_worker_info()
        loader = info.seed - info.id if info else os.getpid()
        position = self.count * info.num_workers + info.id if info else self.count
        self.count += 1
        os.write(self.writing, json.dumps(Fetch(name, with_gradients, indices, loader, position)).encode() + b"\n")

    def take(self) -> list[Fetch]:
        """Return the batches that came since the last call, each loader's in the order in which they are used.

        A DataLoader hands on a batch when all batches before it are there. So does this.
        """
        content = self.rest + b"".join(iter(lambda: os.read(self.reading, 2**20), b""))
        *lines, self.rest = content.split(b"\n")
        found = []
        for line in lines:
            fetch = Fetch(*json.loads(line))
            early = self.early[fetch.loader]
            early[fetch.position] = fetch
            while self.next[fetch.loader] in early:
                found.append(early.pop(self.next[fetch.loader]))
                self.next[fetch.loader] += 1
        return found
