"""Fixtures of tests against a real API server; a conftest.py takes them over by name."""

from __future__ import annotations

import os
import pathlib
import re
from typing import Iterator

import pytest

from testbed.kubernetes.cluster import Cluster
from testbed.kubernetes.operators import Space, install


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One API server for all tests of a process; each test has a namespace of its own."""
    if not os.environ.get("MUSTER_KUBERNETES"):
        pytest.skip("set MUSTER_KUBERNETES=1 for a real API server (docs/kubernetes.md#what-is-missing)")
    started = Cluster(pathlib.Path(tmp_path_factory.mktemp("kubernetes")))
    try:
        started.start()
        yield started
    finally:
        started.stop()


@pytest.fixture(scope="session")
def installed(cluster: Cluster) -> Cluster:
    """The API server with what deploy/kubernetes has."""
    install(cluster)
    return cluster


@pytest.fixture
def space(
    installed: Cluster, request: pytest.FixtureRequest, tmp_path: pathlib.Path
) -> Iterator[Space]:
    """A namespace of the test's own, without an operator yet."""
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower())[:50].strip("-")
    made = Space(installed, name, tmp_path)
    yield made
    made.stop()
