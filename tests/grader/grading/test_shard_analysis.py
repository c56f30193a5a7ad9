"""How the workers divided the images is read from their logs."""

from dataclasses import replace

from grader.grading import shard_analysis
from tests.support.short_worker import worker


def test_epochs_show_whether_workers_have_shards_or_the_same_images():
    sharded = [worker(1, [([0, 1], 5), ([2, 3], 6)]), worker(1, [([2, 3], 5), ([0, 1], 6)])]
    assert shard_analysis.epochs(sharded, train_images=4) == [shard_analysis.Epoch(1.0, 0.0)] * 2
    equal = [worker(1, [([0, 1], 5), ([1, 0], 6)])] * 2
    assert shard_analysis.epochs(equal, train_images=4) == [shard_analysis.Epoch(0.5, 0.5)] * 2


def test_a_batch_that_is_tried_before_the_training_is_left_out():
    workers = [
        worker(1, [([9, first], 5), ([other], 6), ([other], 7), ([first], 8)]) for first, other in ((0, 1), (2, 3))
    ]
    for each in workers:
        each.updates[0] = replace(each.updates[0], calls=2)
    assert shard_analysis.epochs(workers, train_images=4) == [shard_analysis.Epoch(1.0, 0.0)] * 2


def test_the_same_order_in_two_epochs_is_noticed():
    first = [0, 1, 2, 3, 4, 5]
    assert shard_analysis.kept_order(worker(1, [(first, 5), (first, 6)]).images(), count=2) == 1
    assert shard_analysis.kept_order(worker(1, [(first, 5), ([1, 2, 3, 4, 5, 0], 6)]).images(), count=2) == 0.8
    assert shard_analysis.kept_order(worker(1, [(first, 5), ([0, 2, 4, 1, 3, 5], 6)]).images(), count=2) == 0


def test_an_order_that_stays_the_same_in_most_epochs_is_noticed():
    first, other = [0, 1, 2, 3, 4, 5], [0, 2, 4, 1, 3, 5]
    assert shard_analysis.kept_order(worker(1, [(first, 5), (other, 6), (other, 7), (other, 8)]).images(), count=4) == 1
