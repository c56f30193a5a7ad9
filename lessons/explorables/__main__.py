"""This program builds all explorables. `make picture` runs it."""

from lessons.explorables import BUILT, NAMES
from lessons.explorables.build import html

if __name__ == "__main__":
    BUILT.mkdir(exist_ok=True)
    for name in NAMES:
        (BUILT / f"{name}.html").write_text(html(name), encoding="utf-8")
