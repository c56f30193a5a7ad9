"""On which links each way of exchanging gradients pays, measured and predicted."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.cost_models.cost_model import CostModel
from benchmarks.experiment.claim import Runs
from benchmarks.speed.comparisons import links
from cluster.network import bits_per_second

WORTH = 1.10  # A way pays where it trains at least so many times as fast as one exchange of all gradients.
PLAIN = "group"  # the exchange of all gradients, after the backward pass
BETWEEN_HOSTS = tuple(layout for layout, (hosts, _) in links.LAYOUTS.items() if hosts > 1)
RATES = np.array([bits_per_second(rate) for rate in links.RATES])  # of the measured links, from fast to slow
GRID = np.geomspace(RATES[-1], RATES[0], 600)  # the rates at which ways are compared
NOWHERE, EVERYWHERE = "nowhere", "everywhere"


class Band(NamedTuple):
    """The links on which a way pays, from the slowest to the fastest, in bits per second."""

    slowest: float
    fastest: float


def band(gains: np.ndarray) -> Band | None:
    """The longest band of GRID in which all gains are at least WORTH. None if there is no such gain."""
    best, start = None, None
    for at, pays in enumerate([*(gains >= WORTH), False]):
        if pays and start is None:
            start = at
        elif not pays and start is not None:
            if best is None or at - start > best[1] - best[0]:
                best = start, at
            start = None
    return Band(float(GRID[best[0]]), float(GRID[best[1] - 1])) if best else None


def measured(runs: Runs, layout: str, batch: int, way: str) -> list[Band | None]:
    """The band in which a way pays, for each launch.

    Between two measured links, the seconds of an image are taken to be a straight line over the seconds of a bit.
    """
    names = links.over_rates(layout, batch)
    seconds = {one: np.array([1 / links.speeds(runs, name, one) for name in names]) for one in (way, PLAIN)}
    return [band(_between(plain) / _between(own)) for plain, own in zip(seconds[PLAIN].T, seconds[way].T, strict=True)]


def _between(seconds: np.ndarray) -> np.ndarray:
    """The seconds at the rates of GRID, from those at RATES."""
    return np.interp(1 / GRID, 1 / RATES, seconds)


def predicted(runs: Runs, layout: str, batch: int, way: str) -> list[Band | None]:
    """The band in which the model says that a way pays, for each round."""
    models = [links.model(of_round) for of_round in links.rounds(runs)]
    return [band(predicted_gains(made, layout, batch, way, GRID)) for made in models]


def predicted_gains(made: CostModel, layout: str, batch: int, way: str, rates: np.ndarray) -> np.ndarray:
    """How many times as fast as the plain way a model says that a way is, for each of the rates (bits per second)."""
    hosts, each = links.LAYOUTS[layout]
    settings = [links.Setting(hosts * each, hosts, rate, batch) for rate in rates]
    speeds = {one: np.array([links.speed(made, setting, one) for setting in settings]) for one in (way, PLAIN)}
    return speeds[way] / speeds[PLAIN]


def told(bands: Sequence[Band | None]) -> str:
    """Bands in Mbit/s in words, like `below 310 (290 to 340)`. In brackets is the range of their fastest links."""
    found = [one for one in bands if one]
    if len(found) <= len(bands) / 2:
        return NOWHERE
    slowest, fastest = (float(np.median([one[end] for one in found])) for end in (0, 1))
    if slowest == GRID[0] and fastest == GRID[-1]:
        return EVERYWHERE
    ends = sorted({_megabits(one.fastest) for one in found}, key=lambda text: float(text.replace(",", "")))
    spread = f" ({ends[0]} to {ends[-1]})" if len(ends) > 1 else ""
    if slowest == GRID[0]:
        return f"below {_megabits(fastest)}{spread}"
    return f"{_megabits(slowest)} to {_megabits(fastest)}{spread}"


def _megabits(rate: float) -> str:
    return f"{float(f'{rate / 1e6:.2g}'):,.0f}"
