"""This program writes all drawings to solutions/drawings. `make picture` runs it."""

from grader.notebooks.build import SOLUTIONS
from lessons.drawings import DRAWINGS

FOLDER = SOLUTIONS / "drawings"

if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for draw in DRAWINGS:
        (FOLDER / f"{draw.__name__}.svg").write_text(draw().markup(), encoding="utf-8")
