"""The tests of batches share this fixture."""

from pathlib import Path

import pytest

from tests.support.batch_class import Class


@pytest.fixture
def group(tmp_path: Path) -> Class:
    return Class(tmp_path)
