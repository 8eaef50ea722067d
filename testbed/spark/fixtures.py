"""Fixtures of tests on Spark."""

from __future__ import annotations

from typing import Any, Iterator

import pytest

from testbed.spark import sessions


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    """A session of this machine, in which a task may fail twice."""
    yield from sessions.running()
