"""The pictures in docs/pictures show the code as it is."""

from xml.etree import ElementTree

import pytest

from docs.pictures import draw, structure
from docs.pictures.svg import WIDTH
from tests.conftest import REPOSITORY

FOLDER = REPOSITORY / "docs" / "pictures"
PHONE_PIXELS = 358  # pixels: the width of a picture in a text on a phone, which is 390 pixels less the margins
LEAST_PIXELS = 11  # pixels: the smallest size of text that can be read
# The width of a letter as a share of the font's size. It is the mean over a word in a wide or monospaced font.
WIDEST_LETTER = 0.62
SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("name", draw.PICTURES)
def test_the_committed_picture_is_what_the_code_gives_now(name: str):
    assert (FOLDER / name).read_text() == draw.PICTURES[name](), f"{name} is stale: make picture"


def test_each_committed_picture_is_drawn_by_the_command():
    assert {path.name for path in FOLDER.glob("*.svg")} == set(draw.PICTURES)


@pytest.mark.parametrize("name", draw.PICTURES)
def test_text_is_large_enough_on_a_phone_and_the_picture_is_described(name: str):
    picture = ElementTree.parse(FOLDER / name).getroot()
    sizes = [float(text.get("font-size")) for text in picture.iter(f"{SVG}text")]
    assert min(sizes) * PHONE_PIXELS / WIDTH >= LEAST_PIXELS
    assert picture.get("role") == "img"
    assert len(picture.findtext(f"{SVG}title")) > 10
    assert len(picture.findtext(f"{SVG}desc")) > 50


@pytest.mark.parametrize("name", draw.PICTURES)
def test_texts_fit_into_the_picture_and_do_not_overlap(name: str):
    lines: dict[int, list[tuple[float, float]]] = {}
    for text in ElementTree.parse(FOLDER / name).getroot().iter(f"{SVG}text"):
        size, x, y = (float(text.get(key)) for key in ("font-size", "x", "y"))
        length = len(text.text) * size * WIDEST_LETTER
        left = x - length * {"start": 0, "middle": 0.5, "end": 1}[text.get("text-anchor")]
        lines.setdefault(round(y - 0.35 * size), []).append((left, left + length))
    for texts in lines.values():
        edges = [edge for text in sorted(texts) for edge in text]
        assert edges == sorted(edges)
        assert 0 < edges[0] < edges[-1] < WIDTH


def test_another_contract_gives_another_picture(monkeypatch):
    before = draw.rooms()
    rows = structure.contract("grader")
    monkeypatch.setattr(draw, "contract", lambda container=None: [*rows[:-1], ["cellar"], rows[-1]])
    assert draw.rooms() != before
    assert ">cellar</text>" in draw.rooms()


def test_another_order_of_calls_gives_another_picture(monkeypatch):
    before = draw.check()
    monkeypatch.setattr(draw, "steps", lambda: structure.steps()[::-1])
    assert draw.check() != before


def test_the_steps_hand_on_what_the_functions_are_annotated_with():
    returned = {step.value for step in structure.steps()}
    assert {"Evidence", "Report", "Run"} <= returned
    assert structure.first_and_last() == ("submission", "Report")


def test_set_up_imports_no_layer_and_solutions_do():
    assert not structure.imports_layers(REPOSITORY / "source_code" / "install" / "install.py")
    assert structure.imports_layers(REPOSITORY / "solutions")
