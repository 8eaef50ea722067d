"""Fixtures of tests on a real HDFS; a conftest.py takes them over by name."""

from __future__ import annotations

import pathlib
from typing import Iterator

import pytest

from testbed.daemons import run
from testbed.hadoop.cluster import Hdfs
from testbed.hadoop.yarn import Yarn
from testbed.own_names import own_name


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    """One HDFS for all tests of a process; each test has a folder of its own."""
    yield from run(Hdfs(pathlib.Path(tmp_path_factory.mktemp("hdfs"))))


@pytest.fixture
def folder(hdfs: Hdfs, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of a folder of the test's own; this process is a user of the HDFS."""
    for name, value in hdfs.environment.items():
        monkeypatch.setenv(name, value)
    return f"{hdfs.url}/tests/{own_name(request)}"


@pytest.fixture(scope="session")
def yarn(hdfs: Hdfs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yarn]:
    """One YARN on that HDFS for all tests of a process."""
    yield from run(Yarn(hdfs))
