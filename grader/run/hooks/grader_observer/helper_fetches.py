"""Tells a worker which images its helper processes fetch.

A program may let other processes fetch its images, such as those of PyTorch's DataLoader. Each of them appends a line
to a file that the worker reads at every update.
"""

import json
import os
import sys
from collections import defaultdict
from typing import NamedTuple

TASK_OF = "_worker_loop"  # the function of PyTorch in which a DataLoader's helper does one task after the other
DEPTH = 60  # calls; the function above is not so far away from where a program fetches an image


class Fetch(NamedTuple):
    """Images that a helper fetched at once.

    `name` is the split. `with_gradients` is whether PyTorch recorded gradients. The batches of one `loader` are used in
    the order of their `position`, which counts from 0. A batch is complete when `samples` images of it were fetched.
    """

    name: str
    with_gradients: bool
    indices: list[int]
    loader: str
    position: int
    samples: int


class HelperFetches:
    """The batches that the helpers of one worker fetch. A helper that was forked shares the open file."""

    def __init__(self, folder: str, rank: int):
        self.worker = os.getpid()
        path = f"{folder}/fetches{rank}.jsonl"
        self.writing = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self.reading = os.open(path, os.O_RDONLY)
        self.rest = b""  # the beginning of a line whose end is not written yet
        self.early: dict[tuple, dict[int, list[Fetch]]] = defaultdict(lambda: defaultdict(list))  # not used yet
        self.next: dict[tuple, int] = defaultdict(int)  # by loader and split: the position of the next batch
        self.count = 0  # of the calls by which this process fetched images as a helper
        self.task: tuple | None = None  # what this process does now as a helper of a DataLoader
        self.epoch = 0  # of the DataLoader; its helpers may live for several

    def in_helper(self) -> bool:
        """Return whether the caller is a helper process and not the worker itself."""
        return os.getpid() != self.worker

    def add(self, name: str, with_gradients: bool, indices: list[int]) -> None:
        """Note in a helper what it fetched. The line is written at once, so that lines do not mix."""
        info, task = sys.modules["torch"].utils.data.get_worker_info(), _task()
        if info and task:
            if task is not self.task:
                self.epoch += self.task is not None and task[0] <= self.task[0]
                self.task = task
            # The seeds of the helpers of one loader are one number plus the helper's number.
            loader, position, samples = f"{info.seed - info.id}-{self.epoch}", task[0], len(task[1])
        elif info:  # the helpers of a DataLoader take turns
            position, samples = self.count * info.num_workers + info.id, len(indices)
            loader = f"{info.seed - info.id}"
        else:
            loader, position, samples = f"process {os.getpid()}", self.count, len(indices)
        self.count += 1
        fetch = Fetch(name, with_gradients, indices, loader, position, samples)
        os.write(self.writing, json.dumps(fetch).encode() + b"\n")

    def take(self) -> list[Fetch]:
        """Return the batches that came since the last call, each loader's in the order in which they are used.

        A DataLoader hands on a batch when all batches before it are there. So does this. A program may fetch the images
        of a batch one by one, and they are one batch all the same.
        """
        content = self.rest + b"".join(iter(lambda: os.read(self.reading, 2**20), b""))
        *lines, self.rest = content.split(b"\n")
        found = []
        for line in lines:
            fetch = Fetch(*json.loads(line))
            key = fetch.loader, fetch.name
            if fetch.position < self.next[key]:  # more images of a batch that was handed on already
                found.append(fetch)
                continue
            self.early[key][fetch.position].append(fetch)
            while (parts := self.early[key].get(self.next[key])) and _is_complete(parts):
                indices = [index for part in parts for index in part.indices]
                found.append(parts[0]._replace(indices=indices))
                del self.early[key][self.next[key]]
                self.next[key] += 1
        return found


def _is_complete(parts: list[Fetch]) -> bool:
    return sum(len(part.indices) for part in parts) >= parts[0].samples


def _task() -> tuple | None:
    """Return what PyTorch has told this helper to fetch: the number of the batch in its epoch, and its samples.

    It is None if this is not a helper of a DataLoader that has a list of samples for each batch. Where a data set can
    only be iterated, PyTorch does not know the samples.
    """
    frame, depth = sys._getframe(), 0
    while frame and depth < DEPTH:
        if frame.f_code.co_name == TASK_OF:
            task = frame.f_locals.get("r")
            usable = isinstance(task, tuple) and len(task) == 2 and isinstance(task[1], list) and None not in task[1]
            return task if usable else None
        frame, depth = frame.f_back, depth + 1
    return None
