"""The tests of several parts of the grader share this fixture."""

from pathlib import Path

import pytest

from grader.run import rekeyed_data


@pytest.fixture(scope="session")
def rekeyed(cifar10: Path) -> rekeyed_data.Rekeyed:
    return rekeyed_data.rekey(cifar10, "a key", train_images=1000, test_images=2000)
