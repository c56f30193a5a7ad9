"""A learner's own run is drawn over the figure of the full experiment, but only where both show the same things."""

import matplotlib

matplotlib.use("Agg")

import numpy as np
import pytest
from matplotlib.colors import same_color
from matplotlib.figure import Figure

from lessons.cells.display.overlay import draw_over

FULL = [(1, 40.0), (2, 50.0), (3, 55.0)]
OWN = [(1, 35.0), (2, 42.0)]


def curve(points, label="accuracy", marker="o", colour="green"):
    figure = Figure()
    ax = figure.subplots()
    ax.plot(*zip(*points, strict=True), marker=marker, color=colour)
    ax.set(xlabel="epoch", ylabel=label)
    return figure


def rows(names, lengths):
    figure = Figure()
    ax = figure.subplots()
    ax.barh(range(len(names)), lengths)
    ax.set_yticks(range(len(names)), names)
    return figure


def columns(names, heights):
    figure = Figure()
    figure.subplots().bar(names, heights)
    return figure


def stars(figure):
    return [line for line in figure.axes[0].get_lines() if line.get_marker() == "*"]


def outlines(figure):
    return [line for line in figure.axes[0].get_lines() if line.get_marker() == "" and len(line.get_xdata()) == 5]


def test_a_run_is_drawn_as_stars_in_its_own_colour():
    full = curve(FULL)
    assert draw_over(full, curve(OWN))
    [star] = stars(full)
    np.testing.assert_array_equal(star.get_xydata(), OWN)
    assert same_color(star.get_color(), "green")


def test_what_both_figures_show_is_not_drawn_twice():
    full = curve(FULL)
    assert not draw_over(full, curve(FULL))
    assert not stars(full)


def test_theory_is_not_drawn_again():
    full = curve(FULL)
    assert not draw_over(full, curve(OWN, marker=""))
    assert not stars(full)


def test_the_limits_grow_so_that_each_star_is_seen():
    full = curve(FULL)
    draw_over(full, curve([(1, 5.0), (9, 99.0)]))
    low, high = full.axes[0].get_ylim()
    assert low <= 5 and high >= 99
    assert full.axes[0].get_xlim()[1] >= 9


def test_the_limits_grow_so_that_each_outline_is_seen():
    full = rows(["a", "b"], [3.0, 4.0])
    draw_over(full, rows(["a", "b"], [2.0, 9.0]))
    assert full.axes[0].get_xlim()[1] >= 9


def test_a_map_is_left_alone():
    full, own = curve(FULL), curve(OWN)
    for figure in (full, own):
        figure.axes[0].set_aspect("equal")
    assert not draw_over(full, own)


def test_bars_become_outlines():
    full = columns(["one", "two"], [40, 50])
    assert draw_over(full, columns(["one", "two"], [35, 42]))
    assert [max(line.get_ydata()) for line in outlines(full)] == [35, 42]


@pytest.mark.parametrize(
    ("full", "own"),
    [
        (curve(FULL), curve(OWN, label="loss")),
        (columns(["one", "two", "four"], [1, 2, 3]), columns(["one", "two"], [1, 2])),
        (rows(["plain", "warmup", "LAMB"], [1, 2, 3]), rows(["plain", "LAMB"], [1, 2])),
    ],
    ids=["other_axis", "other_columns", "other_rows"],
)
def test_a_run_is_not_drawn_over_a_figure_of_other_things(full, own):
    assert not draw_over(full, own)
    assert not stars(full) and not outlines(full)
