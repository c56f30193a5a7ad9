"""The model of clusters counts bytes and steps correctly, and foresees what others have published."""

import pytest

from benchmarks.cost_models import cluster_model, published
from benchmarks.cost_models.clusters import Cluster, Training, efficiency, exchange_seconds, update_seconds

RING = Cluster(hosts=4, devices=4, inner_rate=10e9, inner_latency=1e-6, outer_rate=1e9, outer_latency=1e-5)
TRAINING = Training(alone=0.3, weights=25e6, bucket=25e6)


def test_in_one_host_the_exchange_is_a_plain_ring():
    one = RING._replace(hosts=1)
    expected = cluster_model.ring_seconds(4, 100e6, one.inner_rate, one.inner_latency)
    assert exchange_seconds(one, 100e6) == pytest.approx(expected)


def test_a_ring_over_hosts_is_as_fast_as_its_slowest_link_and_crosses_it_once_a_host_and_round():
    bytes_sent = 2 * 15 / 16 * 100e6
    steps = 2 * 3 * 1e-5 + (2 * 15 - 2 * 3) * 1e-6
    assert exchange_seconds(RING, 100e6) == pytest.approx(bytes_sent / 1e9 + steps)


def test_a_tree_sends_one_sum_for_each_host():
    tree = RING._replace(exchange="tree")
    inside = 2 * 3 / 4 * 100e6 / 10e9 + 2 * 3 * 1e-6
    between = 2 * 3 / 4 * 100e6 / 1e9 + 2 * 2 * 1e-5
    assert exchange_seconds(tree, 100e6) == pytest.approx(inside + between)


def test_without_overlap_an_update_is_the_sum_and_with_it_never_longer():
    apart = TRAINING._replace(overlaps=False)
    computing = update_seconds(RING._replace(hosts=1, devices=1), TRAINING) * cluster_model.slowest(16, 0.02)
    assert update_seconds(RING, apart) == pytest.approx(computing + exchange_seconds(RING, 100e6))
    assert computing < update_seconds(RING, TRAINING) < update_seconds(RING, apart)


@pytest.mark.parametrize("slower", [2, 10, 100])
def test_a_slower_link_never_raises_the_efficiency(slower: int):
    fast, slow = RING, RING._replace(outer_rate=RING.outer_rate / slower)
    assert 0 < efficiency(slow, TRAINING) <= efficiency(fast, TRAINING) < 1


def test_each_published_efficiency_is_foreseen_within_a_fifth():
    found = list(published.measurements())
    assert {one.source for one in found} == set(published.SOURCES) and len(found) > 40
    assert {one.network for one in found} <= set(published.WEIGHTS)
    for one in found:
        assert 0.3 < one.efficiency < 1, one
        assert one.ratio == pytest.approx(1, abs=0.20), one


def test_each_constant_has_a_source():
    assert all(one.source and one.value > 0 for one in published.CONSTANTS.values())
