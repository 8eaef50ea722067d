"""Fixtures of the tests of `muster run`; what a test leaves running is killed after it."""

from __future__ import annotations

import os
import pathlib
import signal
from collections.abc import Iterator

import pytest

from testbed import network
from testbed.jobs import Jobs
from testbed.network import Network
from testbed.tensorflow_jobs import TensorFlowJobs
from testbed.trainings import Trainings

# Hours long: ./test --soak.
collect_ignore = [] if os.environ.get("MUSTER_SOAK") else ["soak_component_test.py"]


@pytest.fixture
def jobs(muster, tmp_path: pathlib.Path) -> Iterator[Jobs]:
    jobs = Jobs(muster.binary, tmp_path)
    yield jobs
    for pid in jobs.processes():
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


@pytest.fixture
def tensorflow_jobs(jobs: Jobs) -> TensorFlowJobs:
    return TensorFlowJobs(jobs)


@pytest.fixture
def trainings(jobs: Jobs) -> Trainings:
    return Trainings(jobs)


@pytest.fixture
def cable() -> Iterator[Network]:
    if why := network.available():
        pytest.skip(why)
    with Network() as cable:
        yield cable
