"""A profile gives the parameters that a lesson is executed with. The values are in `profiles.json`."""

import json
from pathlib import Path

PROFILES: dict[str, dict] = json.loads(Path(__file__).with_name("profiles.json").read_text())


def parameters(name: str) -> dict:
    """Return the values for a lesson's cell with the tag `parameters`. Raises KeyError for an unknown profile."""
    return dict(PROFILES[name])
