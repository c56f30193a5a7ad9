"""The drawings of the lessons are what their code gives now, and can be read by everybody."""

import base64
import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from matplotlib import font_manager

from benchmarks.cost_models.ring_all_reduce import traffic
from cifar.support import palette
from grader.notebooks import build
from lessons.drawings import DRAWINGS, large_networks, legend, machines, timelines
from lessons.drawings.__main__ import FOLDER
from lessons.drawings.shapes import SMALL, TEXT, WIDTH
from tests.conftest import REPOSITORY
from tests.support.contrast import contrast, luminance

PHONE_PIXELS, LEAST_PIXELS = 358, 10  # the width of a drawing on a phone, and the smallest height of letters there
SVG = "{http://www.w3.org/2000/svg}"
every_drawing = pytest.mark.parametrize("draw", DRAWINGS, ids=lambda draw: draw.__name__)


@every_drawing
def test_the_committed_drawing_is_what_the_code_gives_now(draw):
    assert (FOLDER / f"{draw.__name__}.svg").read_text() == draw().markup(), f"{draw.__name__} is stale: make picture"


def test_each_committed_drawing_has_its_code():
    assert {path.stem for path in FOLDER.iterdir()} == {draw.__name__ for draw in DRAWINGS}


@every_drawing
def test_each_drawing_has_words_for_those_who_cannot_see_it(draw):
    root = ElementTree.fromstring(draw().markup())
    assert root.get("role") == "img"
    assert len(root.get("aria-label").split()) >= 20


def width_of(words: str, size: float, bold: bool) -> float:
    """The width of words in DejaVu Sans, which is wider than the other fonts of the style sheet."""
    font = font_manager.get_font(font_manager.findfont("DejaVu Sans:bold" if bold else "DejaVu Sans"))
    font.set_size(size, 72)
    font.set_text(words)
    return font.get_width_height()[0] / 64


@every_drawing
def test_each_text_stays_inside_the_drawing_and_apart_from_its_neighbours(draw):
    drawing, lines = draw(), {}
    for text in ElementTree.fromstring(drawing.markup()).iter(f"{SVG}text"):
        size, x, y = (float(text.get(key)) for key in ("font-size", "x", "y"))
        assert size in (TEXT, SMALL)
        width = width_of(text.text, size, bold="bold" in text.get("class"))
        left = x - width * {"start": 0, "middle": 0.5, "end": 1}[text.get("text-anchor")]
        assert 0 < y < drawing.height
        lines.setdefault(round(y), []).append((left, left + width))
    for found in lines.values():
        edges = [edge for text in sorted(found) for edge in text]
        assert edges == sorted(edges)
        assert 0 < edges[0] < edges[-1] < WIDTH


def test_letters_are_large_enough_on_a_phone():
    assert min(TEXT, SMALL) * PHONE_PIXELS / WIDTH >= LEAST_PIXELS


def test_texts_and_lines_have_enough_contrast_in_light_and_in_dark():
    for colour in (
        *palette.WORKERS,
        palette.WEIGHTS,
        palette.GRADIENT,
        palette.COMPUTING,
        palette.TESTING,
        palette.WAITING,
    ):
        assert contrast(colour.fill, colour.text) >= 4.5
        for paper, line in ((palette.PAPER, colour.line), (palette.DARK_PAPER, colour.dark_line)):
            assert contrast(paper, line) >= 4.5  # these colours also write words
    for paper, inks in (
        (palette.PAPER, (palette.INK, palette.MUTED)), (palette.CARD, (palette.INK, palette.MUTED)),
        (palette.DARK_PAPER, (palette.DARK_INK, palette.DARK_MUTED)), (palette.DARK_CARD, (palette.DARK_INK,)),
    ):  # fmt: skip
        assert min(contrast(paper, ink) for ink in inks) >= 4.5


def test_the_four_workers_can_be_told_apart_in_grey():
    grey = [luminance(colour.fill) for colour in palette.WORKERS]
    assert grey == sorted(grey)
    assert all(high / low > 1.5 for low, high in pairwise(grey))


def test_the_numbers_are_those_of_the_functions():
    """The bytes of the ring, the memory of a worker, and the waiting in a pipeline, each by its formula."""
    assert traffic(4, 1)[1] == 1.5
    totals = {method: sum(machines.bytes_per_weight(method).values()) for method in machines.SHARDED}
    assert list(totals.values()) == [16, 16, 10, 7, 4]
    # Computing takes 3 units and an exchange 9. With overlap, the exchange begins after a quarter of the backward
    # pass, which takes 2 units. The third way sends a quarter of the bytes.
    assert [large_networks.end(boxes) for boxes in large_networks.ways().values()] == [48, 42, 21, 21]
    ends = [timelines._sent(messages)[-1][1] for messages in (1, timelines.GRADIENTS, timelines.GROUPS)]
    assert [round(end) for end in ends] == [90, 71, 66]
    # In turn, three batches take three times 30 and three times 45. With prefetching, only the first 30 is seen.
    assert [timelines.prefetched(ahead)[1][-1] + timelines.UPDATE for ahead in (False, True)] == [225, 165]
    assert timelines.idle_share(4, 1) == 3 / 4
    assert timelines.idle_share(4, 4) == 3 / 7


def test_each_drawing_is_in_a_lesson_and_the_shapes_are_in_the_docs():
    texts = "".join(path.read_text() for path in build.lessons(build.SOLUTIONS))
    used = set(re.findall(r"!\[\]\(drawings/(\w+)\.svg\)", texts))
    assert used == {draw.__name__ for draw in DRAWINGS} - {legend.shapes.__name__}
    assert "drawings/shapes.svg" in (REPOSITORY / "docs" / "drawings.md").read_text()


def test_a_notebook_holds_its_drawings_and_their_words():
    notebook = build.learner(build.SOLUTIONS / "03_data_parallelism_by_hand.py")
    pictures = re.findall(
        r"!\[([^\]]+)\]\(data:image/svg\+xml;base64,([^)]+)\)", "".join(c.source for c in notebook.cells)
    )
    assert pictures[0][0].partition(".")[0] == "One update of four workers"
    assert base64.b64decode(pictures[0][1]) == (FOLDER / "one_update.svg").read_bytes()
    assert "](drawings/" not in "".join(cell.source for cell in notebook.cells)


def test_a_drawing_that_is_not_there_is_an_error_that_names_it(tmp_path):
    lesson = tmp_path / "01_x.py"
    lesson.write_text("# %% [markdown]\n# # X\n#\n# ![](drawings/nothing.svg)\n")
    with pytest.raises(build.LessonError, match=r"there is no drawing drawings/nothing\.svg"):
        build.learner(lesson)
