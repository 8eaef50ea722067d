"""Fixtures of the tests of slots; what a test leaves running is killed after it."""

from __future__ import annotations

import os
import pathlib
import signal
from collections.abc import Iterator

import pytest

from testbed.jobs import Jobs
from testbed.slots import Slots


@pytest.fixture
def slots(muster, tmp_path: pathlib.Path) -> Iterator[Slots]:
    jobs = Jobs(muster.binary, tmp_path)
    slots = Slots(jobs)
    yield slots
    slots.close()
    for pid in jobs.processes():
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
