"""This program draws all pictures into this folder. `make picture` runs it."""

from pathlib import Path

from docs.pictures.draw import PICTURES

for name, draw in PICTURES.items():
    (Path(__file__).parent / name).write_text(draw())
