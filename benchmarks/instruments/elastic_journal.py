"""Reads the journals of an elastic run: which updates counted, which images they used, and how long a change took.

The journals are written by `cifar.elastic`.
"""

import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Stretch:
    """The updates between two changes of the workers.

    A place in the run is an epoch and the number of images of this epoch that are done. `images` has those that all
    workers together used for the update at a place, `ended` the time in seconds at which it ended, and `rate` its
    learning rate. `counted` has the places of the updates that were not made again later. `weights` has the
    fingerprints of the workers' weights at the beginning: one, if all workers began with the same weights.
    """

    began: float
    start: tuple[int, int]
    size: int
    hosts: Counter = field(default_factory=Counter)
    weights: set[int] = field(default_factory=set)
    images: dict[tuple[int, int], list[int]] = field(default_factory=lambda: defaultdict(list))
    ended: dict[tuple[int, int], float] = field(default_factory=lambda: defaultdict(float))
    rate: dict[tuple[int, int], float] = field(default_factory=dict)
    counted: list[tuple[int, int]] = field(default_factory=list)

    @property
    def repeated(self) -> int:
        """The number of updates that were made again after the change that ended this stretch."""
        return len(self.images) - len(self.counted)


def read(output_dir: Path) -> list[Stretch]:
    """Return the stretches of a run in their order, from the journals of all its workers.

    A stretch that ended before its first update is left out.
    """
    found: dict[float, Stretch] = {}
    for path in sorted((output_dir / "journal").glob("*.jsonl")):
        for text in path.read_text().splitlines():
            try:
                line = json.loads(text)
            except json.JSONDecodeError:
                break  # A worker that was killed may have written half of its last line.
            place = line["epoch"], line["done"]
            if "begin" in line:
                now = found.setdefault(line["begin"], Stretch(line["begin"], place, line["size"]))
                now.hosts[line["host"]] += 1
                now.weights.add(line["weights"])
            else:
                now.images[place] += line["images"]
                now.ended[place] = max(now.ended[place], line["ended"])
                now.rate[place] = line["rate"]
    stretches = sorted((made for made in found.values() if made.images), key=lambda stretch: stretch.began)
    for number, stretch in enumerate(stretches):
        later = min((after.start for after in stretches[number + 1 :]), default=None)
        stretch.counted = sorted(place for place in stretch.images if later is None or place < later)
    return stretches


def uses(stretches: list[Stretch], epoch: int) -> Counter:
    """Return how often each image was used in the updates of an epoch that count. Absent images were not used."""
    places = [(stretch, place) for stretch in stretches for place in stretch.counted if place[0] == epoch]
    return Counter(image for stretch, place in places for image in stretch.images[place])


def pause(before: Stretch, after: Stretch) -> float:
    """Return the seconds from the last update before a change of the workers to the first update after it."""
    return min(after.ended.values()) - max(before.ended.values())
