"""The factors of the learning rate are right at each update."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cifar.schedule import decay_factor, warmup_factor


@given(update=st.integers(0, 999), updates=st.integers(0, 500), size=st.integers(1, 64))
def test_warmup_climbs_from_1_to_size_and_stays(update, updates, size):
    factor = warmup_factor(update, updates, size)
    assert 1 <= factor <= size
    assert factor <= warmup_factor(update + 1, updates, size)
    assert update < updates or factor == size


def test_warmup_is_linear():
    assert [warmup_factor(update, 4, 5) for update in range(6)] == [1, 2, 3, 4, 5, 5]


def test_decay_is_linear_between_its_ends():
    assert [decay_factor(update, 2, 6) for update in (0, 2, 3, 4, 6, 9)] == [1, 1, 0.75, 0.5, 0, 0]


def test_nonsense_is_refused():
    with pytest.raises(ValueError, match="warmup_updates must be 0 or more"):
        warmup_factor(0, -1, 4)
    with pytest.raises(ValueError, match="size 1 or more"):
        warmup_factor(0, 3, 0)
    with pytest.raises(ValueError, match="end after it begins"):
        decay_factor(0, 5, 5)
