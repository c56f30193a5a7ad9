"""After equal time, a way is as accurate as its epochs were in that time."""

import numpy as np
import pytest

from benchmarks.experiment.claim import Runs
from benchmarks.speed import equal_time
from benchmarks.speed.comparisons import links, savings
from tests.benchmarks.speed import test_links

EPOCHS = [0.2, 0.3, 0.4, 0.5]  # the accuracy after each epoch, of all ways


def trained() -> Runs:
    return {way: [{"test_accuracy": EPOCHS}] * 2 for way in savings.WAYS}


def test_a_worker_sends_fewer_bytes_in_each_way_than_in_the_exact_one():
    whole = equal_time.sent(savings.EXACT)
    assert whole == 1.5 * links.gradient_bytes(links.NETWORK)
    assert equal_time.sent("fp16") == whole / 2
    assert equal_time.sent("local") == equal_time.sent("diloco") == whole / 8
    assert equal_time.sent("topk") == pytest.approx(0.04 * whole, rel=0.01)
    assert equal_time.sent("powersgd") < whole / 8


@pytest.mark.parametrize("rate", links.RATES)
def test_the_fastest_way_trains_all_epochs_and_a_slower_one_only_some(rate: str):
    timed = test_links.runs()
    seconds = {way: equal_time.epoch_seconds(timed, rate, way) for way in savings.WAYS}
    fastest = min(seconds, key=seconds.get)
    found = {way: equal_time.accuracies(trained(), timed, rate, way) for way in savings.WAYS}
    assert found[fastest] == pytest.approx(EPOCHS[-1])
    for way in savings.WAYS:
        epochs = len(EPOCHS) * seconds[fastest] / seconds[way]
        assert found[way] == pytest.approx(np.interp(epochs, range(5), [0.1, *EPOCHS]))


def test_the_tables_have_a_row_for_each_way():
    table = equal_time.after_equal_time(trained(), test_links.runs())
    assert len(table.heads) == 1 + len(links.RATES) and table.heads[1].startswith("10 Gbit/s, ")
    assert [row[0] for row in table.rows] == [row[0] for row in equal_time.costs(trained()).rows]
    assert [row[0] for row in table.rows] == list(savings.WAYS.values())
