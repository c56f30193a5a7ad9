"""Whether the workers' weights stay equal is read from their logs."""

from grader.grading import gradient_analysis
from tests.support.short_worker import worker


def test_the_first_difference_between_workers_is_found():
    first = worker(1, [([0], 5), ([1], 6), ([2], 7)])
    assert gradient_analysis.first_difference([first, first]) is None
    assert gradient_analysis.first_difference([first, worker(1, [([0], 5), ([1], 8), ([2], 7)])]) == 2
    assert gradient_analysis.first_difference([first, worker(2, [([0], 5), ([1], 6), ([2], 7)])]) == 0
