"""Makes text that somebody else wrote safe for the place where it is shown: one function for each place.

Text from a submission could steer a terminal, look like another name, or be taken for markup or for a formula.
"""

import re
import unicodedata

FORMULA = ("=", "+", "-", "@")  # a spreadsheet computes a cell that begins like this (OWASP, "CSV Injection")
TERMINAL_CODE = re.compile(r"\x1b(\[[0-9;:?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)?|.)")
MAX_NAME = 60  # characters of a name in a message
CUT = " ..."  # ends a text that was cut


def one_line(text: str, max_length: int | None = None) -> str:
    """Text with a space in place of each control character, cut to `max_length` characters."""
    return "".join(letter if letter.isprintable() else " " for letter in cut(text, max_length))


def cut(text: str, max_length: int | None) -> str:
    """Text of at most `max_length` characters. What was cut is marked."""
    if max_length is None or len(text) <= max_length:
        return text
    return text[: max_length - len(CUT)] + CUT


def for_terminal(text: str, max_length: int | None = None) -> str:
    """Text for a Rich console: one line, without control characters or markup."""
    from rich.markup import escape  # a learner's kernel needs this module, but not Rich

    return escape(one_line(text, max_length))


def for_page(text: str, max_length: int) -> str:
    """Text for an HTML page, without terminal codes. Its template escapes what HTML would take for markup."""
    return one_line(TERMINAL_CODE.sub("", text[: 2 * max_length]), max_length)


def for_notebook(text: str) -> str:
    """Several lines of a notebook's output. Line ends, tabs and terminal colours stay."""
    return "".join(letter if letter.isprintable() or letter in "\n\t\x1b" else " " for letter in text)


def for_markdown(text: str) -> str:
    """Text that means nothing in Markdown or HTML."""
    return "".join(letter if letter.isalnum() or letter in " ,;:" else f"&#{ord(letter)};" for letter in text)


def for_csv(value: object) -> str:
    """A value as a cell of a table. A quote stands before what a spreadsheet would compute."""
    if isinstance(value, int | float):
        return f"{value:g}"
    text = one_line(str(value))
    return f"'{text}" if unicodedata.normalize("NFKC", text).strip().startswith(FORMULA) else text


def in_words(name: str, numbers: list[int]) -> str:
    """Return numbered things in words, for example "worker 2" or "workers 0, 3"."""
    return f"{name}{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}"


def quoted(name: str) -> str:
    """A name for a message: short, and in ASCII, so that it cannot look like another name."""
    return ascii(name if len(name) <= MAX_NAME else f"{name[:MAX_NAME]}...")
