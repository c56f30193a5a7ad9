"""Builds an explorable from its script, the kit, the style, and numbers that Python computes."""

import json
from pathlib import Path

from py_mini_racer import MiniRacer

from cifar.support import palette
from lessons.drawings.shapes import style
from lessons.explorables import data

HERE = Path(__file__).parent
KIT = (HERE / "scripts" / "kit.js").read_text(encoding="utf-8")


def script(name: str) -> str:
    """Return the kit, the script of an explorable, and its numbers, as one text."""
    own = (HERE / "scripts" / f"{name}.js").read_text(encoding="utf-8")
    return f"{KIT}{own}const data = {json.dumps(data.of(name))};\n"


def evaluate(name: str, expression: str) -> object:
    """Return the value of a JavaScript expression in which the script's functions, `model` and `data` are known."""
    return json.loads(MiniRacer().eval(f"{script(name)}JSON.stringify({expression});"))


def _rules() -> str:
    """The style sheet of an explorable. Its rules change nothing outside of `.explorable`."""
    own = (HERE / "style.css").read_text(encoding="utf-8")
    light = f"background:{palette.PAPER};color:{palette.INK};border-color:{palette.RULE};"
    dark = f"background:{palette.DARK_PAPER};color:{palette.DARK_INK};border-color:{palette.DARK_RULE};"
    media = f"@media screen and (prefers-color-scheme:dark){{.explorable{{color-scheme:dark;{dark}}}}}"
    return f".explorable{{{light}\n{own}{style()}}}{media}"


def html(name: str) -> str:
    """Return the explorable: a picture for those without scripts, and the script that makes it answer."""
    title = evaluate(name, "model.title")
    return (
        f'<div class="explorable" data-name="{name}" role="group" aria-label="{title}">\n'
        f"<style>{_rules()}</style>\n{evaluate(name, 'markup(model, data)')}\n"
        f"<script>(() => {{\n{script(name)}bringToLife(model, data);\n}})();</script>\n</div>\n"
    )
