"""The parameters that a lesson is executed with, by profile; the values are in `profiles.json`."""

import json
from pathlib import Path

PROFILES: dict[str, dict] = json.loads(Path(__file__).with_name("profiles.json").read_text())


def parameters(name: str) -> dict:
    """What replaces the values in a lesson's cell tagged `parameters`. KeyError for an unknown profile."""
    return dict(PROFILES[name])
