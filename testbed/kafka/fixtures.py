"""Fixtures of tests on a real Kafka; a conftest.py takes them over by name."""

from __future__ import annotations

import pathlib
from typing import Iterator

import pytest

from testbed.daemons import run
from testbed.kafka.cluster import Kafka
from testbed.own_names import own_name


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """One broker for all tests of a process; each test has topics of its own."""
    yield from run(Kafka(pathlib.Path(tmp_path_factory.mktemp("kafka"))))


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """The name of a topic of the test's own."""
    return own_name(request)
