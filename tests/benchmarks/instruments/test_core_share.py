"""Processes get the share of the cores that they were given, and no control group is left."""

import subprocess
import sys
import time

import pytest

from benchmarks.instruments import core_share

BUSY = "import time\nwhile time.process_time() < 1: pass"


@pytest.mark.slow  # It needs root.
def test_a_second_of_work_takes_four_on_a_quarter_of_a_core():
    with core_share.limited_to(0.25, "test") as within:
        started = time.monotonic()
        subprocess.run([*within, sys.executable, "-c", BUSY], check=True)
        assert time.monotonic() - started > 3.5
        group = core_share._groups()
        assert list(group.glob("share-*-test"))
    assert not list(group.glob("share-*-test"))
