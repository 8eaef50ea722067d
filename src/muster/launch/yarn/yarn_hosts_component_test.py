"""A native training on a YARN of two hosts: its tasks talk by TLS, also after a cut between them."""

from __future__ import annotations

import pathlib
import time

import pytest

from testbed.hadoop.yarn_jobs import YarnJobs
from testbed.hadoop.yarn_training import Training
from testbed.muster import Muster
from testbed.network import Network

LARGE = ("--memory", "5Gi", "--restarts", 20)  # so that each host has one task
CUT_SECONDS = 25


@pytest.fixture(scope="module")
def training(muster: Muster, tmp_path_factory: pytest.TempPathFactory) -> Training:
    return Training(muster, pathlib.Path(tmp_path_factory.mktemp("training")))


def hosts(jobs: YarnJobs, name: str) -> set[str]:
    return {task["address"].rpartition(":")[0] for task in jobs.status(name)["tasks"]}


def test_tasks_of_two_hosts_train_together(two_hosts_jobs: YarnJobs, training: Training) -> None:
    jobs = two_hosts_jobs
    url = training.put(jobs, "together")
    result = jobs.call(*training.on_yarn(url, "together", *LARGE))
    assert result.returncode == 0, result.stderr + jobs.logs()
    assert hosts(jobs, "together") == {"10.77.0.1", "10.77.0.2"}
    training.check(jobs, url)
    jobs.wait_until_nothing_runs("together")


def test_a_host_that_is_cut_off_for_a_while(
    two_hosts_jobs: YarnJobs, training: Training, cable: Network
) -> None:
    jobs = two_hosts_jobs
    url, name = training.put(jobs, "cut"), "cut"
    running = jobs.start(*training.on_yarn(url, name, *LARGE))
    jobs.wait(lambda: (jobs.home / "jobs" / name / "place.json").exists(), "for the job")
    jobs.wait(lambda: jobs.task(name, "chief-0").get("step", 0) > 100, "for its steps")
    cable.lose(100, "b")
    time.sleep(CUT_SECONDS)
    cable.heal()
    out, err = running.communicate(timeout=300)
    assert running.returncode == 0, out + err + jobs.logs()
    training.check(jobs, url)
    jobs.wait_until_nothing_runs(name)
