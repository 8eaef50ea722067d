"""Fixtures of tests on Spark."""

from __future__ import annotations

from typing import Any, Iterator

import pytest

from testbed import daemons, network
from testbed.spark import sessions
from testbed.spark.hosts import SparkOnHosts


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    """A session of this machine, in which a task may fail twice."""
    yield from sessions.running()


@pytest.fixture(scope="module")
def spark_on_hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkOnHosts]:
    if why := network.available():
        pytest.skip(why)
    with network.Network() as cable:
        yield from daemons.run(SparkOnHosts(tmp_path_factory.mktemp("spark"), cable))
