"""The pages of this folder, in which nothing but the templates themselves is taken for markup."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template


def template(name: str) -> Template:
    """The template called `name`; it fails on a value that is missing."""
    loader = FileSystemLoader(Path(__file__).parent)
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined).get_template(name)
