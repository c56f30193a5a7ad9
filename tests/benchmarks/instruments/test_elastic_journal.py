"""A run's journals tell which images were used, and which updates were made again."""

import json
from pathlib import Path

from benchmarks.instruments import elastic_journal


def write(path: Path, *lines: dict | str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))


def begin(when: float, done: int, size: int, host: str) -> dict:
    return {"begin": when, "epoch": 0, "done": done, "size": size, "host": host, "weights": 7}


def update(when: float, done: int, *images: int) -> dict:
    return {"ended": when, "epoch": 0, "done": done, "rate": 0.1, "images": list(images)}


def test_updates_that_were_made_again_are_not_counted(tmp_path: Path):
    """Two workers make three updates. The last commit was after the first one. Then one worker dies."""
    alpha = [begin(1, 0, 2, "alpha"), update(2, 0, 0, 1), update(3, 4, 4, 5), update(4, 8, 8)]
    write(tmp_path / "journal" / "alpha-1.jsonl", *alpha, begin(20, 4, 1, "alpha"), update(23, 4, 4, 6, 5, 7))
    write(
        tmp_path / "journal" / "beta-1.jsonl",
        begin(1, 0, 2, "beta"), update(2, 0, 2, 3), update(3.5, 4, 6, 7), '{"ended": 4, "epo',
    )  # fmt: skip
    first, second = elastic_journal.read(tmp_path)
    assert (first.size, second.size, first.repeated, second.repeated) == (2, 1, 2, 0)
    assert (first.hosts, second.hosts) == ({"alpha": 1, "beta": 1}, {"alpha": 1})
    assert elastic_journal.uses([first, second], 0) == dict.fromkeys(range(8), 1)
    assert elastic_journal.pause(first, second) == 23 - 4


def test_an_image_that_was_lost_or_used_twice_is_seen(tmp_path: Path):
    write(tmp_path / "journal" / "alpha-1.jsonl", begin(1, 0, 1, "alpha"), update(2, 0, 0, 1), update(3, 2, 1, 3))
    uses = elastic_journal.uses(elastic_journal.read(tmp_path), 0)
    assert uses[1] == 2 and uses[2] == 0
