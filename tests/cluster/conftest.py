"""The tests of this folder share a cluster of three hosts, and a function that runs a command on one of them."""

import subprocess
from collections.abc import Iterator

import pytest

import cluster
from cluster import Cluster, Host
from tests.conftest import RUN_SECONDS


@pytest.fixture(scope="package")
def three_hosts() -> Iterator[Cluster]:
    """A cluster of three hosts. A test that changes a host must change it back."""
    with cluster.up(3) as made:
        yield made


def on(host: Host, *command: object) -> subprocess.CompletedProcess:
    """Run a command on a host. Its output is text."""
    return host.run(*map(str, command), capture_output=True, text=True, timeout=RUN_SECONDS)
