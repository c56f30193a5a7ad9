"""The contract between a submission and the grader has profiles."""

import pytest

from grader.common import contract
from grader.run import watchdog


@pytest.mark.parametrize("name", ["full", "fast"])
def test_the_profiles_can_be_run(name: str):
    settings = contract.load(name)
    assert 0.1 < settings.target < 1
    assert settings.updates() > watchdog.SEPARATE_UPDATES
