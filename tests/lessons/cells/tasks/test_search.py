"""The search of lesson 06 trains with one rate after the other, and shows each of them."""

import matplotlib.pyplot as plt
import pytest

from lessons.cells.tasks import search


def test_a_training_follows_the_warmup_that_it_is_given(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(search, "EPOCHS", 1)
    asked = []

    def warmup_factor(update: int, warmup: int, size: int) -> float:
        asked.append((update, warmup, size))
        return 1.0

    accuracy = search.accuracy_with(0.02, warmup_factor)
    updates = search.IMAGES // (search.WORKERS * search.BATCH)
    assert 0.1 < accuracy < 1
    assert asked == [(update, updates // 4, search.WORKERS) for update in range(updates)]


def test_the_figure_names_the_best_rate(monkeypatch: pytest.MonkeyPatch):
    told = []
    monkeypatch.setattr(search, "show", lambda figure, alt, caption: told.extend((alt, caption)))
    search.show_search({0.02: 0.48, 0.01: 0.46})
    plt.close("all")
    assert "The highest is at 0.02." in told[0] and told[1].startswith("The best of 2 rates is 0.02.")
