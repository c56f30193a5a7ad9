"""Turns Markdown into HTML. Formulas become MathML, so a page needs no script for them."""

import re

from latex2mathml.converter import convert
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

SCRIPT_LETTER = re.compile(r'<mi mathvariant="script">(.)</mi>')
BAR = re.compile(r"<mo[^>]*>(?:&#x02016;|\N{DOUBLE VERTICAL LINE})</mo>")
SCRIPT = {"B": "\N{SCRIPT CAPITAL B}"}  # the script letters in the lessons' formulas


def as_html(source: str) -> str:
    """Return a text in Markdown as HTML."""
    # The option embed_images is not used. It would close each piece of HTML by itself, and so the <details> of a
    # question would end before its answer.
    renderer = _Renderer(escape=False, exclude_anchor_links=True)
    return MarkdownWithMath(renderer=renderer).render(source)


class _Renderer(IPythonRenderer):
    """Render Markdown with formulas as MathML. Browsers and screen readers need no script for MathML."""

    def inline_math(self, body: str) -> str:
        return _math(body)

    def block_math(self, body: str) -> str:
        return f'<div class="formula">{_math(body, display="block")}</div>'


def _math(formula: str, **options: str) -> str:
    """Return a formula as MathML. Chromium does not know script letters as a style, so they become characters.

    The bars of a norm keep their size. Otherwise they would be as tall as what stands beside them.
    """
    made = SCRIPT_LETTER.sub(lambda found: f"<mi>{SCRIPT[found[1]]}</mi>", convert(formula, **options))
    return BAR.sub('<mo stretchy="false">\N{DOUBLE VERTICAL LINE}</mo>', made)
