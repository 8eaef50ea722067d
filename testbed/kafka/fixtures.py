"""Fixtures of tests on a real Kafka; a conftest.py takes them over by name."""

from __future__ import annotations

import contextlib
import pathlib
from typing import Callable, Iterator

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


def run_inside(
    enter: Callable[[], contextlib.AbstractContextManager[None]], folder: pathlib.Path, address: str
) -> Iterator[Kafka]:
    """One broker with this address of another network, which `enter` goes into and from which alone it is reached."""
    folder.mkdir(exist_ok=True)
    kafka = Kafka(folder, address=address)
    try:
        with enter():
            kafka.start()
        yield kafka
    finally:
        kafka.stop()
