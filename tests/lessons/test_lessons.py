"""The functions for notebooks run on real workers. All lessons are executed with real kernels, and become pages."""

import contextlib
import dataclasses
import html
import re
import signal
import subprocess
import sys
import time
from itertools import combinations
from pathlib import Path

import matplotlib
import nbformat
import psutil
import pytest
from matplotlib import pyplot
from nbgrader.utils import determine_grade

import lessons
from benchmarks import claims
from benchmarks.claims import table
from benchmarks.experiment.claim import Verdict
from benchmarks.experiment.plots import COLOURS
from benchmarks.experiment.runner import Series
from benchmarks.speed.comparisons import setup_time
from cifar.support.environment import cores
from grader.notebooks import build
from lessons import __main__ as command
from lessons import execute, profile
from lessons.cells.display import claims as shown_claims
from lessons.cells.display import figures
from lessons.cells.launches import running
from lessons.explorables import script_hashes
from lessons.site import markdown, pages
from tests.conftest import metrics
from tests.grader.notebooks.test_build import OPENING, PARAMETERS, RING

# These tests are about live runs.

TINY = {"epochs": 2, "images": 256, "batch_size": 64, "device": "cpu"}


def test_a_script_runs_with_two_workers_and_its_output_is_seen(cifar10: Path, tmp_path: Path, capsys):
    lines = lessons.horovodrun("cifar_base.py", 2, **TINY, lr=0.002, output=tmp_path)
    said = capsys.readouterr().out
    assert [line["epoch"] for line in lines] == [1, 2] and lines == metrics(tmp_path)
    assert said.startswith("$ horovodrun -np 2 python source_code/cifar_base.py --epochs 2 --images 256 --test-images")
    assert "[0] epoch 1/2  rate 0.00200" in said and "2/2 [" in said, "the bar"
    assert f"2 workers on the CPU, {max(1, cores() // 2)} thread" in said


def test_the_fast_script_runs_with_two_workers(cifar10: Path, tmp_path: Path):
    lines = lessons.horovodrun("cifar_fast.py", 2, **TINY, output=tmp_path)
    assert [line["epoch"] for line in lines] == [1, 2]


def test_one_worker_is_plain_python_in_the_folder_of_the_notebook(cifar10: Path, tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    lines = lessons.horovodrun("cifar_single.py", 1, **TINY)
    assert capsys.readouterr().out.startswith("$ python source_code/cifar_single.py")
    assert lines == metrics(tmp_path / "runs" / "cifar_single-1") and len(lines) == 2


def test_a_failing_run_raises_the_workers_last_lines(tmp_path: Path, capsys):
    with pytest.raises(lessons.RunError) as caught:
        lessons.horovodrun("cifar_base.py", 2, **TINY, lr=-1, output=tmp_path)
    head, *last = str(caught.value).splitlines()
    assert head.endswith("ended with exit status 1; its last lines:")
    assert last == ["[0] cifar_base.py: argument --lr: must be a number above 0, not '-1' (--help lists the options)"]
    assert "Traceback" not in capsys.readouterr().out, "the launcher's own is of no use"


@pytest.mark.parametrize("script, workers", [("no_such.py", 2), ("cifar_single.py", 2), ("cifar_base.py", 0)])
def test_what_cannot_run_is_said_before_it_is_tried(script: str, workers: int):
    with pytest.raises(ValueError, match=script):
        running.horovodrun(script, workers, **TINY)


def interrupted(program: str, ready: str, *arguments: str, cwd: Path) -> tuple[int, str, list[psutil.Process]]:
    """Interrupt a Python program once its workers run. Return its status, its stderr and the remaining descendants."""
    process = subprocess.Popen(
        [sys.executable, "-c", program, *arguments], cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        text=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    try:
        family = wait_for_workers(process, ready)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=300)[1]
    finally:
        process.kill()
    until = time.monotonic() + 20
    while (left := [one for one in family if alive(one)]) and time.monotonic() < until:
        time.sleep(0.1)  # A large process that was killed needs a moment to end.
    return process.returncode, said, left


def wait_for_workers(process: subprocess.Popen, ready: str) -> list[psutil.Process]:
    """Return the descendants of a program once two workers run.

    The commands of the two workers and of the launcher end with the word `ready`.
    """
    until = time.monotonic() + 300
    while time.monotonic() < until:
        family = psutil.Process(process.pid).children(recursive=True)
        if sum(last_word(one) == ready for one in family) >= 3:
            return family
        time.sleep(0.1)
    raise AssertionError("no workers after five minutes")


def last_word(process: psutil.Process) -> str:
    """Return the last word of a process's command. It is empty if the process has just ended."""
    with contextlib.suppress(psutil.Error):
        return (process.cmdline() or [""])[-1]
    return ""


def alive(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def test_an_interrupt_ends_all_workers(cifar10: Path, tmp_path: Path):
    program = (
        f"import lessons; lessons.horovodrun('cifar_base.py', 2, epochs=999, images=256, output={str(tmp_path)!r})"
    )
    status, said, left = interrupted(program, str(tmp_path), cwd=tmp_path)
    assert status != 0 and said.rstrip().endswith("KeyboardInterrupt") and not left


def test_a_name_that_is_not_there_is_said():
    with pytest.raises(AttributeError, match="it has RunError"):
        lessons.no_such  # noqa: B018
    assert {"horovodrun", "show"} <= set(dir(lessons))


# These tests are about figures.


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list:
    """Return what a figure is displayed as."""
    seen = []
    monkeypatch.setattr(figures, "display", seen.append)
    return seen


def test_a_figure_is_shown_with_escaped_words_and_closed(shown: list):
    figure, axes = pyplot.subplots()
    axes.plot([1, 2], [2, 1])
    lessons.show(figure, 'a line that "falls" <b>', "from 2 & to 1 <script>")
    page = shown[0].data
    assert 'alt="a line that &quot;falls&quot; &lt;b&gt;"' in page and 'src="data:image/png;base64,' in page
    assert "<figcaption>from 2 &amp; to 1 &lt;script&gt;</figcaption>" in page
    assert not pyplot.fignum_exists(figure.number)


def test_the_same_figure_gives_the_same_bytes(shown: list):
    for _ in range(2):
        figure, axes = lessons.axes("update", "loss")
        axes.plot([1, 2], [2, 1])
        lessons.show(figure, "a line that falls", "from 2 to 1")
    assert shown[0].data == shown[1].data


@pytest.mark.parametrize("alt, caption", [("", "words"), ("words", " "), (None, "words"), ("words", 3)])
def test_a_figure_without_words_is_refused(alt: object, caption: object, shown: list):
    figure, _ = lessons.axes("x", "y")
    with pytest.raises(ValueError, match="a figure needs"):
        lessons.show(figure, alt, caption)
    assert not shown


def test_a_live_verdict_that_differs_from_the_saved_one_is_explained():
    claim = dataclasses.replace(
        claims.get("C05"), variants=("a",), settings={}, caution="Few & short.",
        judge=lambda runs: Verdict(runs["a"][0]["word"], "1 < 2."),
    )  # fmt: skip
    small, full = (
        Series(claim, {"a": [{"seed": 0, "settings": {}, "values": {"word": word}}]}) for word in ("fails", "holds")
    )
    assert shown_claims._live_verdict(small, full) == (
        f"<p><strong>Claim:</strong> {html.escape(claim.statement)}</p>"
        "<p><strong>Your small run does not show it. That does not refute the claim.</strong> Few &amp; short.</p>"
        "<details><summary>The numbers of your run</summary><p>Claim C05, from source S0, S1. 1 &lt; 2.</p></details>"
    )


@pytest.mark.parametrize(
    ("word", "full_word", "said"),
    [
        ("holds", "holds", "Your small run shows it."),
        ("fails", "holds", "Your small run does not show it. That does not refute the claim."),
        ("fails", "depends", "Your small run does not show it. That does not refute the claim."),
        ("fails", "fails", "In your small run the claim is false. So it is in the full one below."),
        ("no difference seen", "holds", "Your small run shows no difference."),
    ],
)
def test_a_small_run_alone_does_not_refute_a_claim(word: str, full_word: str, said: str):
    claim = dataclasses.replace(
        claims.get("C05"), variants=("a",), settings={}, judge=lambda runs: Verdict(runs["a"][0]["word"], "1.")
    )
    small, full = (
        Series(claim, {"a": [{"seed": 0, "settings": {}, "values": {"word": one}}]}) for one in (word, full_word)
    )
    assert f"<strong>{said}</strong>" in shown_claims._live_verdict(small, full)


def test_the_claim_is_not_stated_again_after_a_run_of_this_notebook(monkeypatch: pytest.MonkeyPatch):
    said = []
    monkeypatch.setattr(shown_claims, "display", lambda made: said.append(made.data))
    monkeypatch.setattr(shown_claims, "_figure", lambda found, own: None)
    monkeypatch.setattr(shown_claims, "RAN", set())
    shown_claims.saved("C05")
    shown_claims.RAN.add("C05")
    shown_claims.saved("C05")
    assert ["<strong>Claim:</strong>" in text for text in said] == [True, False]


def test_only_a_run_of_this_notebook_is_drawn(monkeypatch: pytest.MonkeyPatch, shown: list):
    drawn = []
    monkeypatch.setattr(shown_claims, "_figure", lambda found, own: drawn.append(own))
    monkeypatch.setattr(shown_claims, "RAN", set())
    shown_claims.saved("C05")
    shown_claims.RAN.add("C05")
    shown_claims.saved("C05")
    shown_claims.saved("C05", own=False)
    assert drawn[1] and (drawn[0], drawn[2]) == (None, None)


def test_the_style_tells_lines_apart_without_colour():
    lessons.axes("update", "loss")
    cycle = list(matplotlib.rcParams["axes.prop_cycle"])
    assert len(cycle) == len(COLOURS) >= 4
    for one, other in combinations(cycle, 2):
        assert one["linestyle"] != other["linestyle"] and one["marker"] != other["marker"]


# These tests are about the run of all lessons.

MADE_UP = "\n".join([
    OPENING, "# The mean of $N$ shards: $$\\frac{1}{N} \\sum_r g_r$$\n", PARAMETERS, RING,
    "# %%\nfrom lessons import axes, show\n\nfigure, ax = axes('worker', 'loss')\nax.plot([1], [workers])\n"
    "show(figure, 'one dot', f'{workers} workers')\n",
    "# %%\nimport os\n\nprint('\\rold\\rnew'); print(os.environ['PATH'].split(':')[0])\n",
])  # fmt: skip
FAILING = f'{OPENING}\n# %%\nprint("fine")\n\n# %%\nraise RuntimeError("it ended:\\n[1] no <such> thing")\n'
PARAMETERS_OF_TWO = {**profile.parameters("quick"), "workers": 2}


def lesson(folder: Path, name: str, text: str) -> Path:
    """Write a made-up lesson into a folder."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    return folder / name


def names(folder: Path) -> list[str]:
    """Return the names in a folder, with those of hidden files."""
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture(scope="module")
def made_up(tmp_path_factory: pytest.TempPathFactory) -> execute.Executed:
    """Execute a made-up lesson with an exercise, a figure and a formula."""
    folder = tmp_path_factory.mktemp("lessons")
    source = lesson(folder / "solutions", "03_made_up.py", MADE_UP)
    return execute.execute(source, PARAMETERS_OF_TWO, folder / "runs")


def test_an_executed_lesson_has_outputs_and_its_profiles_parameters(made_up: execute.Executed):
    text = made_up.path.read_text()
    assert not made_up.kept and made_up.seconds > 0
    assert "2 workers</figcaption>" in text and str(Path(sys.executable).parent) in text


def test_nbgrader_reads_the_points_of_a_check(made_up: execute.Executed):
    cells = {cell.id: cell for cell in nbformat.read(made_up.path, as_version=4).cells}
    assert determine_grade(cells["ring_step_check"]) == (4, 4)


def test_what_was_executed_is_kept_until_text_or_parameters_change(tmp_path: Path):
    source, runs = lesson(tmp_path, "01_words.py", f"{OPENING}\n{PARAMETERS}"), tmp_path / "runs"

    def is_kept(workers: int = 2, rerun: bool = False) -> bool:
        return execute.execute(source, {"workers": workers}, runs, rerun).kept

    assert [is_kept(), is_kept(), is_kept(rerun=True), is_kept(workers=4), is_kept(workers=4)] == [
        False, True, False, False, True,
    ]  # fmt: skip
    source.write_text(source.read_text() + "1 + 1\n")
    assert not is_kept(workers=4)
    (runs / "01_words.ipynb").write_text('{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}')
    assert not is_kept(workers=4), "somebody else's notebook"
    assert names(runs) == ["01_words.ipynb"]


@pytest.mark.parametrize(
    "end, told",
    [
        ("", "04_bad, cell 3 (04-002): RuntimeError: [1] no <such> thing"),
        ("# %%\nimport os\n\nos._exit(3)\n", "04_bad, cell 3 (04-002): Kernel died"),
    ],
    ids=["exception", "kernel"],
)
def test_a_failing_cell_is_named_and_what_was_executed_before_is_no_result(end: str, told: str, tmp_path: Path):
    source, runs = lesson(tmp_path, "04_bad.py", f"{OPENING}\n# %%\nprint('fine')\n"), tmp_path / "runs"
    execute.execute(source, {}, runs)
    source.write_text(f"{source.read_text()}\n{end}" if end else FAILING)
    with pytest.raises(execute.CellError) as caught:
        execute.execute(source, {}, runs)
    assert str(caught.value) == told
    assert names(runs) == ["04_bad.failed.ipynb"] and "fine" in (runs / "04_bad.failed.ipynb").read_text()


ROWS = [
    table.Row(
        id="C01", statement="a < b", source="S1", lesson="01_words", cell=2, cell_id="01-001",
        command="python -m benchmarks C01", folder="folder", seeds=3, verdict="holds", sentence="2 < <b>3",
        provisional="3 of 5 seeds", machine="2 cores",
    ),
    table.Row(
        id="C02", statement="c", source="S2", lesson="04_bad", cell=3, cell_id="04-002",
        command="python -m benchmarks C02", folder="folder", seeds=0, verdict="", sentence="no result yet for one",
        provisional="", machine="",
    ),
]  # fmt: skip


@pytest.fixture
def two_lessons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder in which `python -m lessons` finds one lesson that runs, one that fails, and two claims."""
    monkeypatch.chdir(tmp_path)
    lesson(tmp_path / "solutions", "01_words.py", OPENING.replace("A lesson", "Words & <b>signs"))
    lesson(tmp_path / "solutions", "04_bad.py", FAILING)
    monkeypatch.setattr(build, "SOLUTIONS", tmp_path / "solutions")
    monkeypatch.setattr(table, "rows", lambda: ROWS)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    return tmp_path


def test_the_command_ends_with_the_line_that_repeats_what_failed(two_lessons: Path, capsys):
    assert command.main([]) == 1
    said = capsys.readouterr()
    assert said.err.splitlines() == [
        "lessons: 04_bad, cell 3 (04-002): RuntimeError: [1] no <such> thing",
        "lessons: 1 failed. To repeat: python -m lessons --profile quick --only 04",
    ]
    assert re.fullmatch(r"1/2  01_words  \d+ s\n2/2  04_bad  failed\npages: runs/quick/index.html\n", said.out)
    assert setup_time.LESSON.match(said.out)[1] == "01_words"
    assert command.main(["--profile", "laptop", "--only", "04", "--output", "some where"]) == 1
    assert "--profile laptop --only 04 --output 'some where'" in capsys.readouterr().err


def test_one_failing_lesson_costs_no_other_page(two_lessons: Path, capsys):
    """The lesson after the failed one is executed.

    The index says what failed, and has a link to the page of the cells before that.
    """
    lesson(two_lessons / "solutions", "05_more.py", OPENING.replace("A lesson", "More words"))
    assert command.main([]) == 1
    runs = two_lessons / "runs" / "quick"
    assert names(runs) == [
        "01_words.html", "01_words.ipynb", "04_bad.failed.html", "04_bad.failed.ipynb", "05_more.html", "05_more.ipynb",
        "gallery.html", "index.html", "summaries.html",
    ]  # fmt: skip
    index = (runs / "index.html").read_text()
    assert '<a href="04_bad.failed.html">A lesson</a>' in index
    assert "failed: cell 3 (04-002): RuntimeError: [1] no &lt;such&gt; thing" in index
    assert '<a href="05_more.html">More words</a>' in index
    assert "fine" in (runs / "04_bad.failed.html").read_text()
    assert 'href="05_more.html"' in (runs / "01_words.html").read_text(), "the next lesson is the next that has a page"


def test_a_lesson_that_no_longer_fails_leaves_nothing_of_its_failure(two_lessons: Path, capsys):
    assert command.main([]) == 1
    lesson(two_lessons / "solutions", "04_bad.py", OPENING.replace("A lesson", "Good words"))
    assert command.main([]) == 0
    runs = two_lessons / "runs" / "quick"
    assert names(runs) == [
        "01_words.html",
        "01_words.ipynb",
        "04_bad.html",
        "04_bad.ipynb",
        "gallery.html",
        "index.html",
        "summaries.html",
    ]
    assert "failed" not in (runs / "index.html").read_text().partition("</style>")[2]


def test_the_index_lists_lessons_and_claims(two_lessons: Path, capsys):
    assert command.main(["--only", "01"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "pages: runs/quick/index.html"
    index = (two_lessons / "runs" / "quick" / "index.html").read_text()
    assert '<a href="01_words.html">Words &amp; &lt;b&gt;signs</a>' in index
    assert "<h3>A lesson</h3>" in index and "not executed yet" in index
    assert '<strong class="holds">holds</strong>' in index and "provisional" in index and "2 &lt; &lt;b&gt;3" in index
    assert "none yet" in index and "no result yet for one" in index
    assert "2 cores" in index
    assert '<a href="01_words.html#cell-id=01-001">01, cell 2</a>' in index and "<td>04, cell 3</td>" in index
    assert_alone(index)
    assert command.main(["--only", "01"]) == 0 and "as executed before" in capsys.readouterr().out


def test_a_lesson_that_is_not_there_is_said(two_lessons: Path, capsys):
    assert command.main(["--only", "01", "07"]) == 2
    assert capsys.readouterr().err == "lessons: there is no lesson 07 in solutions/\n"


def assert_alone(page: str) -> None:
    """Assert that a page has no script but the explorables', and fetches nothing. Links for the reader are allowed."""
    assert page.count("<script") == len(script_hashes(page))
    assert "@import" not in page and not re.search(r"\burl\((?!#|data:)", page)
    assert all(source.startswith("data:") for source in re.findall(r'\bsrc="([^"]*)"', page))
    assert not re.search(r"<link|<iframe", page)


def test_a_page_has_pictures_formulas_and_no_script(made_up: execute.Executed):
    page = pages.lesson_page(nbformat.read(made_up.path, as_version=4))
    assert_alone(page)
    assert "<title>A lesson</title>" in page and "<h1>A lesson</h1>" in page
    assert page.count("<math") == 2 and "<mfrac>" in page and "$" not in re.sub(r"(?s)<style.*?</style>", "", page)
    assert re.search(r'<img alt="one dot" src="data:image/png', page)
    assert re.search(r"<pre>new\n", page), "what a bar has overwritten is gone"


def test_a_page_shows_nothing_of_a_bar_that_was_removed():
    texts = "\r50%", "\r100%", "\r    \r"
    printed = [nbformat.v4.new_output("stream", name="stdout", text=text) for text in texts]
    cell = nbformat.v4.new_code_cell("train()", outputs=printed)
    page = pages.lesson_page(nbformat.v4.new_notebook(cells=[cell]))
    assert "100%" not in page.partition("<body>")[2]
    assert page.count("<pre>") == 1, "the code alone"


def test_an_answer_is_hidden_behind_its_question():
    cell = nbformat.v4.new_markdown_cell("<details><summary>Why?</summary>\n\nBecause *so*.\n\n</details>")
    page = pages.lesson_page(nbformat.v4.new_notebook(cells=[cell]))
    assert re.search(r"<details><summary>Why\?</summary>\s*<p>Because <em>so</em>\.</p>\s*</details>", page)


# nbclient asks once per second whether the kernel lives. Here it asks at once, so an interrupt never misses the answer.
RUN = """
import asyncio
import sys
from pathlib import Path
from nbclient import client
from grader.notebooks import build
from lessons.__main__ import main
build.SOLUTIONS = Path("solutions")
wait = asyncio.sleep
client.asyncio.sleep = lambda seconds: wait(min(seconds, 0.001))
sys.exit(main(["--output", "runs"]))
"""
LIVE = "# %%\nfrom lessons import horovodrun\n\nhorovodrun('cifar_base.py', 2, epochs=999, images=256, output='live')\n"


def test_an_interrupt_leaves_nothing_half_written_and_nothing_running(cifar10: Path, tmp_path: Path):
    lesson(tmp_path / "solutions", "01_words.py", OPENING)
    lesson(tmp_path / "solutions", "02_live.py", f"{OPENING}\n{LIVE}")
    status, said, left = interrupted(RUN, "live", cwd=tmp_path)
    # Only the last line is compared, and a core file may be there. The reason is that libzmq in a kernel that is being
    # ended may print its own assertion and abort.
    assert status == 130
    assert said.splitlines()[-1] == "lessons: interrupted; what is executed is kept, the same command goes on"
    assert not left and [name for name in names(tmp_path / "runs") if name not in ("live", "core")] == [
        "01_words.ipynb"
    ]


# These tests execute the lessons themselves in their order.

SOURCES = build.lessons(build.SOLUTIONS)


@pytest.fixture(scope="session")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder in which all lessons are executed."""
    return tmp_path_factory.mktemp("quick")


# Each of these takes one to three minutes, so they run only in `make test-all`. Their claims have tests of their own.
LONG = (
    "02_one_worker",
    "03_data_parallelism_by_hand",
    "04_horovod",
    "05_why_it_converges_worse",
    "06_techniques",
    "07_famous_results",
    "08_assignment",
    "09_beyond_one_machine",
    "10_what_comes_next",
    "12_lab_of_lesson_02",
    "13_lab_of_lesson_03",
    "14_lab_of_lesson_04",
    "15_lab_of_lesson_05",
    "16_lab_of_lesson_06",
    "19_lab_of_lesson_09",
    "20_lab_of_lesson_10",
)
LESSONS = [
    pytest.param(source, id=source.stem, marks=[pytest.mark.slow] if source.stem in LONG else []) for source in SOURCES
]


@pytest.mark.parametrize("source", LESSONS)
def test_the_lesson_runs(source: Path, quick: Path, cifar10: Path):
    done = execute.execute(source, profile.parameters("quick"), quick)
    page = pages.lesson_page(nbformat.read(done.path, as_version=4))
    assert_alone(page)
    assert "No description has been provided for this image" not in page, "a picture without words: use lessons.show"
    assert " at 0x" not in page, "an object's address says nothing to a reader: end the cell with another value"


def test_a_script_letter_of_a_formula_is_a_character_of_its_own():
    page = markdown.as_html(r"$1 + \mathcal B / B$")
    assert "<mi>ℬ</mi>" in page and "mathvariant" not in page


def test_the_lessons_that_ran_are_in_the_index_with_all_claims(quick: Path):
    index = pages.write(SOURCES, quick, "quick", table.rows()).read_text()
    for source in SOURCES:
        assert (f'href="{source.stem}.html"' in index) == (quick / f"{source.stem}.ipynb").exists()
    for row in table.rows():
        assert f'<tr id="{row.id}">' in index
