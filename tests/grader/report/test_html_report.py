"""The report page is complete for a right run, useful for an empty run, and harmless whatever a submission wrote."""

import dataclasses
import itertools
import math
import re
import time
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from cifar.support import palette
from grader.common import contract
from grader.common.contract import WORKERS, Profile
from grader.grading import grade
from grader.grading.checkpoint import Measured
from grader.grading.evidence import Evidence, Missing
from grader.grading.grade import Report, Row, RunRecord, Status
from grader.report import html_report
from grader.report.figures import learning_rate, loss, one_update, picture, shards, weights
from grader.run.launch import Run
from grader.run.process_monitor import OutsideView
from grader.run.worker_log import First, Worker
from tests.grader.report.test_timeline import trace
from tests.support.contrast import contrast, luminance
from tests.support.right_run import PROFILE, metrics, outside, right_run, run

SECRET = "the instructor's key"
MARKUP = "</svg></pre><script>alert(1)</script><img src=//evil.example onerror=alert(1)>"
RECORD = RunRecord(
    profile={}, seed=3, key_sha256=SECRET, seconds=1.0, versions={"torch": "2.13.0"}, source_sha256="ab" * 32,
    cpu_seconds={}, secret_accuracy=None,
)  # fmt: skip
VOID = {"meta", "img", "br", "input", "link"}
ALLOWED = {
    "html", "head", "meta", "title", "style", "body", "header", "main", "footer", "h1", "h2", "h3", "small", "strong",
    "p", "div", "table", "thead", "tbody", "tr", "th", "td", "figure", "figcaption", "dl", "dt", "dd", "details",
    "summary", "pre", "svg", "g", "path", "defs", "clippath", "rect", "use", "text", "tspan", "image",
    "ul", "li", "span",
}  # fmt: skip


def drawn_run(settings: Profile = PROFILE) -> Evidence:
    """Return a right run with something to draw in each picture."""
    sent = [(update, update * 10_000_000) for update in range(settings.updates() + 1)]
    accuracies = np.linspace(0.4, 0.9, settings.epochs)
    return right_run(
        settings, run=run(seconds=279.0, outside=outside(settings, loopback=sent), isolation="bubblewrap"),
        metrics=[metrics(epoch, test_accuracy=float(value)) for epoch, value in enumerate(accuracies, start=1)],
        checkpoint=Measured(weights=settings.updates(), visible=0.9, secret=0.89), log="[0]<stdout>:epoch 1\n",
        timeline=trace([["allreduce.classify.weight", "allreduce.prepare.weight"]] * 5),
    )  # fmt: skip


def empty_run() -> Evidence:
    failed = Run(1, 4.0, None, OutsideView(), "bubblewrap")
    workers = [Worker() for _ in range(WORKERS)]
    return Evidence(
        profile=PROFILE, run=failed, workers=workers, log="", metrics=Missing("none"), checkpoint=Missing("none"),
        visible_images=1000,
    )  # fmt: skip


def render(evidence: Evidence) -> str:
    return html_report.render(grade.judge(evidence, "class/anna", RECORD), evidence)


@pytest.fixture(scope="module")
def right_page() -> str:
    return render(drawn_run())


class Reader(HTMLParser):
    """Read a page like a browser: elements with their attributes, and the text in them. All elements must be closed."""

    def __init__(self, text: str):
        super().__init__()
        self.elements, self.words, self.open = [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def all(self, tag: str) -> list[dict]:
        return [attributes for name, attributes in self.elements if name == tag]


def harmless(text: str) -> Reader:
    """Assert that the page runs nothing, fetches nothing and does not control a terminal."""
    page = Reader(text)
    assert {tag for tag, _ in page.elements} <= ALLOWED
    for tag, attributes in page.elements:
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            if name in ("href", "xlink:href", "src"):
                assert value.startswith(("#", "data:image/png;base64,"))
            else:
                assert not re.search(r"//|javascript:|@import", value or ""), (tag, name, value[:80])
            assert all(target.startswith("#") for target in re.findall(r"url\(([^)]*)", value or ""))
    style = text[text.index("<style>") : text.index("</style>")]
    assert "url(" not in style and "@import" not in style
    assert all(letter.isprintable() or letter == "\n" for letter in text)
    return page


def test_a_right_run_has_its_verdict_its_rows_and_six_pictures():
    evidence = drawn_run()
    judged = grade.judge(evidence, "class/anna", RECORD)
    page = harmless(html_report.render(judged, evidence))
    assert "100 of 100 points" in page.text and "Passed." in page.text and "nothing to change" in page.text
    rows = [attributes for attributes in page.all("tr") if "id" in attributes]
    assert [row["id"] for row in rows] == [f"line-{row.id}" for row in judged.rows]
    assert {row["class"] for row in rows} == {"met"}
    for row in judged.rows:
        assert row.asks in page.text and " ".join(row.seen.split()) in page.text
    assert len(page.all("svg")) == len(page.all("figure")) == len(page.all("figcaption")) == 6


def test_pictures_say_what_they_show_to_those_who_cannot_see_them(right_page: str):
    page = harmless(right_page)
    captions = [attributes["id"] for attributes in page.all("figcaption")]
    for svg in page.all("svg"):
        assert svg["role"] == "img" and len(svg["aria-label"]) > 10
        assert svg["aria-describedby"] in captions


def test_each_id_on_the_page_is_there_once(right_page: str):
    ids = [attributes["id"] for _, attributes in harmless(right_page).elements if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_the_page_has_the_structure_that_readers_navigate_by(right_page: str):
    page = harmless(right_page)
    assert page.all("html")[0]["lang"] == "en"
    assert [tag for tag, _ in page.elements if tag in ("h1", "h2", "h3")] == ["h1", "h2", "h2", *["h3"] * 6, "h2"]
    assert {attributes["scope"] for attributes in page.all("th")} == {"col", "row"}


def test_captions_tell_the_numbers_of_the_run(right_page: str):
    text = Reader(right_page).text
    assert "Equal on all workers before the first and after each of 20 updates." in text
    assert "Epoch 2: 25.0%, 25.0%, 25.0%, 25.0% of the images by worker 0 to 3, 0.0% by none" in text
    assert "0.1 at update 1, highest 0.4 at update 4, 0.4 at the last" in text
    assert "same rate at each of 20 updates" in text
    assert "Target 50.00%; reported 90.00% after 2 epochs" in text
    assert "Tensors exchanged: 2." in text


def test_the_key_is_not_shown_and_the_facts_are(right_page: str):
    text = right_page
    assert "instructor" not in text.split("</style>")[1]
    for fact in ("made up: 2 epochs of 160 images", "279 s", "torch 2.13.0", "ab" * 32, "bubblewrap", "200 MB"):
        assert fact in text


def test_the_same_run_gives_the_same_bytes(right_page: str):
    assert render(drawn_run()) == right_page


def test_the_page_is_written_whole(tmp_path: Path):
    evidence = empty_run()
    html_report.write(grade.judge(evidence, "class/anna", RECORD), evidence, tmp_path / "report.html")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert (tmp_path / "report.html").read_text().endswith("</html>")


def test_a_run_that_said_nothing_has_a_page_that_says_so():
    page = harmless(render(empty_run()))
    assert "0 of 100 points" in page.text and "Not passed." in page.text
    assert len(page.all("figure")) == 6 and page.all("svg") == []
    for sentence in (
        "No worker's own loss was seen",
        "no worker made an update",
        "No worker fetched",
        "neither a metrics.jsonl",
    ):
        assert sentence in page.text


def row(name: str, status: Status, points: float, max_points: int, message: str, seen: str = "") -> Row:
    return Row(name, status, points, max_points, f"asks {name}", seen, message)


def test_what_to_do_next_is_the_advice_of_the_line_that_lost_the_most_points():
    rows = [
        row("cheap", "unmet", 0, 5, "mend the cheap one"), row("half", "unmet", 10, 20, "mend the half one"),
        row("follows", "excused", 30, 30, "follows from the cheap one"),
        row("later", "not_judged", 0, 40, "First: something.", seen="not judged"), row("met", "met", 50, 50, ""),
    ]  # fmt: skip
    judged = Report("class/anna", False, 90, rows, "bubblewrap", RECORD)
    assert html_report.next_step(judged) == "mend the half one"
    page = harmless(html_report.render(judged, empty_run()))
    kinds = [attributes["class"] for attributes in page.all("tr") if "id" in attributes]
    assert kinds == ["unmet", "unmet", "excused", "not_judged", "met"]


def observed_by(module: ModuleType, evidence: Evidence) -> str:
    return module.draw(evidence).observed


def test_a_worker_whose_weights_differ_is_named_with_the_update():
    evidence = drawn_run()
    for update in evidence.workers[2].updates[6:]:
        update.weights = 5
    assert observed_by(weights, evidence) == "After update 7 worker 2 had other weights than worker 0."
    evidence.workers[3].first = dataclasses.replace(evidence.workers[3].first, start=1)
    assert observed_by(weights, evidence).startswith("Before the first update worker 3 had other weights")


def test_a_worker_that_stops_early_is_named_with_the_update():
    evidence = drawn_run()
    del evidence.workers[1].updates[12:]
    assert observed_by(weights, evidence) == "Equal on all workers until worker 1 stopped after update 12."
    evidence.workers[0] = Worker()
    assert observed_by(weights, evidence) == "Worker 0 wrote nothing."


def test_without_a_loss_module_the_reported_loss_is_drawn_and_called_reported():
    evidence = drawn_run()
    for each in evidence.workers:
        for update in each.updates:
            update.loss = None
    drawn = loss.draw(evidence)
    assert "as reported" in drawn.svg and "metrics.jsonl reports 1 after epoch 1, 1 at the end" in drawn.observed


def test_a_rate_that_differs_is_named_with_the_update():
    evidence = drawn_run()
    evidence.workers[3].updates[15].lr = [7.0]
    assert "rates differ from update 16 on" in observed_by(learning_rate, evidence)


def test_images_that_two_workers_use_are_counted_and_those_that_none_uses():
    evidence = drawn_run()
    for mine, other in zip(evidence.workers[1].updates, evidence.workers[0].updates, strict=True):
        mine.images = other.images
    seen = observed_by(shards, evidence)
    assert "Epoch 1: 0.0%, 0.0%, 25.0%, 25.0% of the images" in seen
    assert "25.0% by none, 25.0% more than once" in seen


def test_a_network_that_each_worker_feeds_with_the_same_epoch_is_seen():
    evidence = drawn_run()
    for each in evidence.workers:
        for number in range(10):
            each.updates[10 + number].images = each.updates[number].images
    assert "The same worker as in epoch 1: 100.0%." in observed_by(shards, evidence)


def test_a_sample_of_the_shards_has_their_proportions_also_where_workers_take_turns():
    owner = np.arange(50_000) % WORKERS
    sample = shards._sample(owner)
    assert len(sample) == shards.MAX_DOTS
    assert all(0.23 < np.mean(sample == rank) < 0.27 for rank in range(WORKERS))


def test_the_strip_of_many_updates_keeps_the_update_in_which_workers_differ():
    columns = [[0, 0, 0, 0]] * 500 + [[0, 0, 2, 0]] + [[0, 0, 0, 0]] * 500
    assert weights._binned(columns, 100).count([0, 0, 2, 0]) == 1


def hostile_run() -> Evidence:
    """Return a run in which every field that a submission fills holds something that it should not hold."""
    evidence = drawn_run()
    numbers = itertools.cycle([math.nan, math.inf, -math.inf, 1e300, -1e300, -1.0, 0.0, 5e-324, 0.5])
    for rank, each in enumerate(evidence.workers):
        each.first = First(
            start=-(10**80),
            bytes=0,
            size=10**30,
            device="\x1b[31m\x9b<script>",
            optimizer=MARKUP[10:80],
            commitment=MARKUP,
        )
        for update in each.updates:
            update.loss, update.lr = next(numbers), [next(numbers) for _ in range(rank)]
            update.images, update.weights = [10**30, 5, 5], 10**80 * rank
    log = f"[0]<stderr>:\x1b[2J\x1b]0;title\x07{MARKUP}\u202e\x00\ud800 $x_1$ {{{{ 7 * 7 }}}}\r\n" * 30_000
    names = [[f"allreduce.$x_{number}$ {MARKUP} #fe0001" for number in range(60)]]
    return dataclasses.replace(
        evidence, log=log, metrics=Missing(MARKUP), checkpoint=Missing("\x1b[31m" + MARKUP),
        run=Run(None, math.inf, MARKUP, OutsideView(), MARKUP), timeline=trace(names * 4),
    )  # fmt: skip


def hostile_report() -> Report:
    words = f"{MARKUP}\x1b[31m\u202e\ud800 $x_1$ {{{{ 7 * 7 }}}} #fe0001"
    rows = [row(f"line{number}", "unmet", 0, 10, words, words * 100) for number in range(5)]
    return Report(words, False, 0, rows, words, dataclasses.replace(RECORD, seed=words, versions={words: words}))


def test_a_hostile_run_puts_nothing_into_the_page_but_words():
    text = html_report.render(hostile_report(), hostile_run())
    page = harmless(text)
    assert "<script" not in text and len(text) < 2_000_000
    assert text.count("&lt;script&gt;alert(1)") > 20  # The markup is shown as text.
    assert "$x_1$" in page.text and "{{ 7 * 7 }}" in page.text
    assert "not finite or too large" in page.text


def test_pictures_of_a_hostile_run_are_well_formed():
    drawings = [drawn.svg for drawn in html_report.all_pictures(hostile_run()) if drawn.svg]
    assert len(drawings) >= 4
    for svg in drawings:
        ElementTree.fromstring(svg.replace("xlink:href", "href"))


def test_a_hostile_page_can_be_written(tmp_path: Path):
    html_report.write(hostile_report(), hostile_run(), tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size > 10_000


NUMBERS = st.floats(width=64) | st.none()


@given(st.lists(NUMBERS, max_size=6), st.lists(st.lists(st.floats(), max_size=3), max_size=6), st.integers(0, 3))
@hypothesis_settings(max_examples=10, deadline=None)
def test_any_numbers_can_be_drawn(losses: list, rates: list, rank: int):
    evidence = drawn_run()
    evidence.workers[rank].updates = [
        dataclasses.replace(evidence.workers[0].updates[0], loss=loss, lr=lr)
        for loss, lr in itertools.zip_longest(losses, rates, fillvalue=None)
        if lr is not None
    ]
    assert loss.draw(evidence).svg and learning_rate.draw(evidence).svg


def seconds_and_bytes(judged: Report, evidence: Evidence, path: Path) -> tuple[float, int]:
    """Return the CPU seconds and the size of a page.

    CPU seconds do not depend on what else the machine does.
    """
    started = time.process_time()
    html_report.write(judged, evidence, path)
    return time.process_time() - started, path.stat().st_size


def test_a_page_of_full_size_is_small_and_written_soon(tmp_path: Path):
    evidence = drawn_run(contract.load("full"))
    assert len(evidence.workers[0].updates) >= 780
    judged = grade.judge(evidence, "class/anna", RECORD)
    seconds, size = seconds_and_bytes(judged, evidence, tmp_path / "report.html")
    assert seconds < 5 and size < 500_000


def test_an_endless_run_costs_little_more(tmp_path: Path):
    evidence = drawn_run()
    for each in evidence.workers:
        each.updates = [dataclasses.replace(each.updates[0], images=[1] * 20, lr=[0.1] * 1000)] * 500_000
    judged = Report("class/anna", False, 0, [], "bubblewrap", RECORD)
    seconds, size = seconds_and_bytes(judged, evidence, tmp_path / "report.html")
    assert seconds < 8 and size < 500_000


def theme_colors(theme: str) -> dict[str, str]:
    template = (Path(html_report.__file__).parent / "html_report.html").read_text()
    blocks = re.findall(r":root \{(.*?)\}", template, flags=re.DOTALL)
    return dict(re.findall(r"--([\w-]+): (#\w{6});", blocks[theme == "dark"]))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_words_and_lines_stand_out_from_their_paper(theme: str):
    colors = theme_colors(theme)
    for words, paper in itertools.product(("ink", "muted"), ("paper", "card", "good-card", "bad-card")):
        assert contrast(colors[words], colors[paper]) >= 4.5, (words, paper)
    for kind in ("good", "bad"):
        assert contrast(colors[kind], colors["paper"]) >= 4.5 and contrast(colors[kind], colors[f"{kind}-card"]) >= 4.5
    for line in [name for name in colors if name.startswith("worker-")]:
        assert contrast(colors[line], colors["card"]) >= 3, line


def test_workers_have_the_colours_that_they_have_everywhere_in_the_course():
    light, dark = theme_colors("light"), theme_colors("dark")
    for rank, colour in enumerate(palette.WORKERS):
        assert (light[f"worker-{rank}"], dark[f"worker-{rank}"]) == (colour.line, colour.dark_line)


def test_dots_of_the_shards_can_be_told_apart_in_grey():
    grey = sorted((*picture.WORKER_COLORS, picture.SEVERAL_COLOR, picture.NOBODY_COLOR), key=luminance)
    assert all(contrast(low, high) > 1.5 for low, high in itertools.pairwise(grey))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_phases_of_the_timeline_can_be_told_apart_in_grey(theme: str):
    grey = sorted((color for name, color in theme_colors(theme).items() if name.startswith("phase-")), key=luminance)
    assert len(grey) == len(one_update.KINDS)
    assert all(contrast(low, high) > 1.3 for low, high in itertools.pairwise(grey))
