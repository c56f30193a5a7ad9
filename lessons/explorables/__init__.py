"""Explorables are small pictures that answer to a reader's hand, in JupyterLab and on the pages of the lessons.

Each is one piece of HTML with a style and a script, and needs nothing else. `make picture` builds it from a script in
`scripts/` and from numbers that Python computes. Without scripts, and on paper, it is a picture with a sentence.
"""

import base64
import hashlib
import re
from pathlib import Path

BUILT = Path(__file__).parent / "built"
NAMES = ("ring", "server", "timeline", "cloud", "shards", "efficiency", "statistics")


def explore(name: str) -> None:
    """Display an explorable in the notebook. Raises ValueError if there is none of this name."""
    from IPython.display import HTML, display

    if name not in NAMES:
        raise ValueError(f"there is no explorable {name!r}; there are {', '.join(NAMES)}")
    display(HTML((BUILT / f"{name}.html").read_text(encoding="utf-8")))


def script_hashes(page: str) -> list[str]:
    """Return the hashes of the explorables' scripts in a page, as its Content-Security-Policy names them.

    A browser then runs these scripts, and no other one.
    """
    built = [path.read_text(encoding="utf-8") for path in sorted(BUILT.glob("*.html"))]
    scripts = [re.search(r"<script>(.*)</script>", content, re.DOTALL)[1] for content in built]
    return [f"'sha256-{_hash(script)}'" for script in scripts if script in page]


def _hash(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
