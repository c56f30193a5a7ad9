"""The figure of lesson 02 draws what a learner's function predicts, beside what was measured."""

import pytest
from matplotlib.figure import Figure

from benchmarks.claims.lesson_02 import c19_input_pipeline as c19
from lessons.cells.plots import prefetching
from lessons.saved_runs import runs


def test_the_diamonds_are_those_of_the_learners_function(monkeypatch: pytest.MonkeyPatch):
    asked, figures = [], []

    def twice_too_fast(seconds: list[float], batch: int, overlapped: bool) -> float:
        asked.append((len(seconds), overlapped))
        return 2 * batch / (max(seconds) if overlapped else sum(seconds))

    monkeypatch.setattr(prefetching, "show", lambda figure, alt, caption: figures.append((figure, caption)))
    prefetching.show_prefetching(twice_too_fast)
    ((figure, caption),) = figures
    assert set(asked) == {(2, False), (2, True)}
    assert diamonds(figure)[True] == pytest.approx(
        [1000 / 2 / c19.speeds(runs("C19"), name, "prefetched")[1] for name in prefetching.PIPELINES], rel=0.02
    )
    assert "vectorised: " in caption and "decoded: " in caption and "loop" not in caption


def diamonds(figure: Figure) -> dict[bool, list[float]]:
    """Return the milliseconds of the diamonds, by whether the next batch was prefetched."""
    lines = [line for line in figure.axes[1].lines if line.get_marker() == "D"]
    return dict(zip((False, True), [list(line.get_xdata()) for line in lines], strict=True))
