"""Makes a table in HTML for the output of a cell."""

from collections.abc import Iterable, Sequence

from markupsafe import Markup, escape


def table(rows: Iterable[Sequence[str]], heads: Sequence[str] = ()) -> str:
    """Return a table as HTML, with a row of `heads` if there are any. Only a cell of the type `Markup` holds markup."""
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table>{f'<thead><tr>{head}</tr></thead>' if heads else ''}<tbody>{body}</tbody></table>"


def code(text: str) -> Markup:
    """Return a name in the type of code, on one line."""
    return Markup('<code style="white-space: nowrap">{}</code>').format(text)
