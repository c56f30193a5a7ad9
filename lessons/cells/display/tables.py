"""Makes a table in HTML for the output of a cell."""

import html
from collections.abc import Iterable, Sequence

from markupsafe import Markup, escape


def table(rows: Iterable[Sequence[str]], heads: Sequence[str] = ()) -> str:
    """Return a table as HTML, with a row of `heads` if there are any. Only a cell of the type `Markup` holds markup."""
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table>{f'<thead><tr>{head}</tr></thead>' if heads else ''}<tbody>{body}</tbody></table>"


def bullets(title: str, lines: Iterable[str]) -> str:
    """Return a title with a list below it as HTML. Markup in the texts is shown as text."""
    items = "".join(f"<li>{html.escape(line)}</li>" for line in lines)
    return f"<p>{html.escape(title)}</p><ul>{items}</ul>"


def code(text: str) -> Markup:
    """Return a name in the type of code, on one line."""
    return Markup('<code style="white-space: nowrap">{}</code>').format(text)
