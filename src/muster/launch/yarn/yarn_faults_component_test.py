"""Jobs on a real YARN whose own daemons are killed and started again."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from testbed.hadoop.yarn_jobs import RunningJob, YarnJobs


@pytest.fixture
def job(jobs: YarnJobs, request: pytest.FixtureRequest) -> Iterator[RunningJob]:
    yield RunningJob(jobs, request.node.name.removeprefix("test_").replace("_", "-")[:40].strip("-"))
    jobs.yarn.wait_until_usable(jobs.yarn.nodes)


def replaces_a_task(job: RunningJob) -> None:
    before = job.running()
    os.kill(before["worker-0"][1], signal.SIGKILL)
    job.jobs.wait(lambda: job.running()["worker-0"][0] > before["worker-0"][0])
    assert job.running()["worker-1"] == before["worker-1"]


def test_node_managers_are_started_again(job: RunningJob) -> None:
    before = job.running()
    for number in range(job.jobs.yarn.nodes):
        job.jobs.yarn.hdfs.kill(f"node-{number}")
        job.jobs.yarn.start_node(number)
    job.jobs.yarn.wait_until_usable(job.jobs.yarn.nodes)
    assert job.running() == before
    replaces_a_task(job)
    job.end()


def test_the_resource_manager_is_started_again(job: RunningJob) -> None:
    before = job.running()
    job.jobs.yarn.hdfs.kill("manager")
    assert job.running() == before  # the coordinator answers
    job.jobs.yarn.start_manager()
    job.jobs.yarn.wait_until_usable(job.jobs.yarn.nodes)
    replaces_a_task(job)
    job.end()


def test_a_data_node_is_killed(job: RunningJob) -> None:
    before = job.running()
    hdfs = job.jobs.yarn.hdfs
    hdfs.kill("data-0")
    try:
        assert job.running() == before
        replaces_a_task(job)
    finally:
        hdfs.start_data_node(0)
        hdfs.wait_until_usable()
    job.end()
