"""Jobs on a YARN of another version of Hadoop."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import pytest

from testbed.daemons import run
from testbed.hadoop.cluster import Hdfs
from testbed.hadoop.yarn import Yarn
from testbed.hadoop.yarn_jobs import AGENT, MASTER, RunningJob, YarnJobs
from testbed.hadoop.yarn_training import Training
from testbed.muster import Muster


@pytest.fixture(scope="module", params=["3.3.6"])
def yarn(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yarn]:
    for hdfs in run(Hdfs(pathlib.Path(tmp_path_factory.mktemp("older")), version=request.param)):
        yield from run(Yarn(hdfs))


def test_two_workers_train(jobs: YarnJobs, muster: Muster, tmp_path_factory: pytest.TempPathFactory) -> None:
    training = Training(muster, pathlib.Path(tmp_path_factory.mktemp("training")))
    url = training.put(jobs, "trained")
    result = jobs.call(*training.on_yarn(url, "trained"))
    assert result.returncode == 0, result.stderr + jobs.logs()
    training.check(jobs, url)
    jobs.wait_until_nothing_runs("trained")
    assert "step" in jobs.ok("logs", "trained", "chief-0")


def test_a_master_and_an_agent_are_killed(jobs: YarnJobs) -> None:
    job = RunningJob(jobs, "killed", lease=3600)
    before = job.running()
    old = job.kill(MASTER)
    job.kill(AGENT)
    job.wait_for_another(MASTER, old)
    jobs.wait(lambda: job.running()["worker-0"][0] > before["worker-0"][0], "for another worker-0")
    job.end()
