"""The explorables compute what the course's own Python computes, and their answers are right."""

import itertools
import json
import re

import numpy as np
import pytest

from benchmarks.cost_models import cluster_model, cost_model
from benchmarks.methods import sgd_noise
from cifar.data import shard, shuffle
from grader.exercises.definitions.lesson_03.ring_step import ring_step
from grader.notebooks.build import SOLUTIONS
from lessons import explorables
from lessons.explorables import BUILT, NAMES, build, data

every_explorable = pytest.mark.parametrize("name", NAMES)


@every_explorable
def test_the_committed_explorable_is_what_its_script_gives_now(name: str):
    assert (BUILT / f"{name}.html").read_text() == build.html(name), f"{name} is stale: make picture"


def test_each_committed_explorable_is_listed():
    assert {path.stem for path in BUILT.iterdir()} == set(NAMES)


@every_explorable
def test_an_explorable_needs_nothing_from_elsewhere(name: str):
    content = (BUILT / f"{name}.html").read_text()
    assert not re.search(r"https?:|\bsrc=|\bhref=|@import|\burl\((?!#)", content)


@every_explorable
def test_without_a_script_there_is_a_picture_with_a_sentence(name: str):
    content = build.html(name).partition("<script>")[0]
    assert content.count("<svg") == 1
    sentence = re.search(r'<p class="said" role="status">([^<]+)</p>', content)[1]
    assert sentence.endswith(".") and f'aria-label="{sentence}"' in content


@every_explorable
def test_a_question_has_one_right_answer_and_a_reason(name: str):
    question = build.evaluate(name, "model.question")
    assert len(set(question["answers"])) == len(question["answers"]) >= 3
    assert 0 <= question["right"] < len(question["answers"])
    assert question["why"].endswith(".")


@pytest.mark.parametrize("size", [2, 3, 5, 8])
def test_the_ring_moves_the_chunks_that_the_lessons_ring_step_moves(size: int):
    """`ring_step` is the exercise of lesson 03, here with one number for each worker's part of a chunk."""
    chunks = [[[float(of == rank) for of in range(size)] for _ in range(size)] for rank in range(size)]
    for step in range(size - 1):
        chunks = ring_step(chunks, step)
        assert build.evaluate("ring", f"contributions({size}, {step + 1}, 'right').parts") == chunks
    last = build.evaluate("ring", f"contributions({size}, {2 * (size - 1)}, 'right').parts")
    assert last == [[[1] * size] * size] * size
    for step in range(2 * (size - 1)):
        assert build.evaluate("ring", f"complete(contributions({size}, {step}, 'right').parts)") < size * size


def test_in_the_ring_a_wrong_chunk_spoils_the_result():
    for wrong in ("same", "backwards"):
        assert build.evaluate("ring", f"complete(contributions(4, 6, '{wrong}').parts)") < 16


@pytest.mark.parametrize(("workers", "size", "rate", "latency"), [(2, 1.9e6, 12.5e6, 1e-4), (8, 553e6, 12.5e9, 1e-3)])
def test_the_times_of_server_and_ring_are_those_of_the_cluster_model(workers, size, rate, latency):
    found = build.evaluate("server", f"Object.keys(ways).map((w) => seconds(w, {workers}, {size}, {rate}, {latency}))")
    expected = [
        cluster_model.server_seconds(workers, size, rate, latency),
        cluster_model.server_seconds(workers, size, rate, latency, servers=workers),
        cluster_model.ring_seconds(workers, size, rate, latency),
    ]
    assert found == pytest.approx(expected, rel=1e-12)


def test_with_slow_messages_and_a_fast_link_the_ring_is_slower_than_the_server():
    one, _, ring = build.evaluate("server", "Object.keys(ways).map((way) => seconds(way, 8, 1.9e6, 12.5e9, 1e-3))")
    assert ring > one


@pytest.mark.parametrize("buckets", [1, 4, 32])
def test_the_timeline_is_that_of_the_cost_model(buckets: int):
    found = build.evaluate("timeline", f"exchanges(20, 40, 16, 5, {buckets})")
    assert np.array(found) == pytest.approx(np.array(cost_model.exchanges(20, 40, 16, 5, buckets)), rel=1e-12)


def test_lesson_04_states_the_times_that_its_dials_show():
    dials = {dial["id"]: dial["value"] for dial in build.evaluate("timeline", "model.controls")}
    assert dials["buckets"] == 6
    drawn = [
        build.evaluate("timeline", f"model.times({json.dumps(dials | {'buckets': count})}).end")
        for count in (6, 3, 12, 32)
    ]
    lesson = " ".join((SOLUTIONS / "04_horovod.py").read_text(encoding="utf-8").split())
    assert [f"{end:.0f}" for end in drawn] == ["66", "71", "64", "82"]
    assert "So an update takes 20 + 40 + 6 = 66 ms" in lesson and "20 + 40 + 10.7, or 71 ms" in lesson
    assert "With twelve buckets an update takes 64 ms" in lesson and "With 32 it takes 82 ms" in lesson


def test_ten_buckets_are_best_among_the_answers_about_the_timeline():
    question = build.evaluate("timeline", "model.question")
    ends = [cost_model.exchanges(20, 40, 28.8, 1, int(buckets))[-1][1] for buckets in question["answers"]]
    assert int(np.argmin(ends)) == question["right"]


def test_the_cloud_is_as_wide_as_the_formula_says():
    noise = build.evaluate("cloud", "NOISE")
    for rate, batch, curvature in itertools.product((0.01, 0.1, 0.4), (1, 64), (1, 4)):
        found = build.evaluate("cloud", f"spread({rate}, {batch}, {curvature})")
        assert found == pytest.approx(sgd_noise.spread(rate, batch, curvature, noise), rel=1e-12)
    assert build.evaluate("cloud", "spread(0.5, 16, 4) === Infinity")


def test_the_drawn_cloud_is_about_as_wide_as_the_formula_says():
    """The drawn path has 240 updates, so its width is known to about a tenth."""
    path = np.array(build.evaluate("cloud", "path(0.2, 16, 4)"))
    for axis, curvature in enumerate((1, 4)):
        assert path[30:, axis].std() == pytest.approx(sgd_noise.spread(0.2, 16, curvature, 40), rel=0.25)


def test_lesson_09_states_the_shares_that_its_dials_show():
    dials = {dial["id"]: dial["value"] for dial in build.evaluate("efficiency", "model.controls")}
    shares = [
        build.evaluate("efficiency", f"efficiency(8, {json.dumps(dials | changed)}, data)")
        for changed in ({}, {"exchange": "during"}, {"power": 7}, {"exchange": "during", "power": 7})
    ]
    lesson = " ".join((SOLUTIONS / "09_beyond_one_machine.py").read_text(encoding="utf-8").replace("\n#", "").split())
    plain, overlap, larger, both = (f"{100 * share:.0f} %" for share in shares)
    assert (
        f"with overlap the 8 workers compute for {overlap} of their time, and with 128 images for {larger}." in lesson
    )
    assert f"Before, it was {plain}." in lesson and f"and the share is {both}." in lesson


def test_the_efficiency_is_that_of_the_cluster_model():
    for network in cluster_model.NETWORKS:
        cases = ((1, 6, 0.0), (8, 3, 0.02), (4096, 13, 0.1))
        for (workers, power, spread), way in itertools.product(cases, ("during", "after")):
            state = f"{{network: '{network.name}', link: '1.25e9', latency: '5e-5', scaling: 'weak', power: {power},"
            state += f" spread: '{spread}', exchange: '{way}'}}"
            compute = 2**power / network.images_per_s
            took = cluster_model.update_seconds(workers, compute, network.size, 1.25e9, 5e-5, spread, way == "during")
            assert build.evaluate("efficiency", f"efficiency({workers}, {state}, data)") == pytest.approx(
                compute / took
            )


def test_only_the_faster_links_keep_64_workers_above_one_half_with_vgg():
    vgg = next(network for network in cluster_model.NETWORKS if network.name == "VGG-16")
    compute = 64 / vgg.images_per_s
    shares = {
        rate: compute / cluster_model.update_seconds(64, compute, vgg.size, rate * 1e9 / 8, 4e-5, 0.02)
        for rate in (1, 10, 25, 100)
    }
    assert [rate for rate, share in shares.items() if share >= 0.5] == [25, 100]


def test_the_statistics_are_those_of_numpy():
    values = data.of("statistics")["draws"][0][:16]
    found = build.evaluate("statistics", "moments(data.draws[0].slice(0, 16))")
    assert (found["mean"], found["deviation"]) == pytest.approx((np.mean(values), np.std(values)))


def test_the_shards_are_those_of_the_courses_programs():
    shards = build.evaluate("shards", "data.shards")
    for size, epoch in itertools.product(range(1, 5), range(3)):
        right = [shard(shuffle(data.IMAGES, 0, epoch), rank, size).tolist() for rank in range(size)]
        assert shards["right"][size - 1][epoch] == right
        assert shards["no epoch"][size - 1][epoch] == shards["right"][size - 1][0]
        padded = shards["padded"][size - 1][epoch]
        assert len({len(part) for part in padded}) == 1 and set(itertools.chain(*padded)) == set(range(data.IMAGES))
    everyone = shards["rank 0"][3][0]
    assert all(part == everyone[0] for part in everyone)


def test_a_page_allows_the_scripts_of_its_explorables_and_no_other():
    ring = (BUILT / "ring.html").read_text()
    assert len(explorables.script_hashes(f"<p>{ring}</p>")) == 1
    assert explorables.script_hashes("<script>alert(1)</script>") == []
    assert explorables.script_hashes(ring.replace("const WIDTH", "const  WIDTH")) == []


def test_an_unknown_explorable_is_an_error_that_names_the_known_ones():
    with pytest.raises(ValueError, match="there is no explorable 'rings'; there are ring, server"):
        explorables.explore("rings")
