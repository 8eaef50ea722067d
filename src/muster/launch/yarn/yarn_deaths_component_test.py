"""Jobs on a real YARN whose processes are killed: they go on, and no incarnation runs twice."""

from __future__ import annotations

import os
import pathlib
import random
import signal

import pytest

from testbed.hadoop.yarn_jobs import AGENT, COORDINATOR, MASTER, RunningJob, YarnJobs


@pytest.fixture
def job(jobs: YarnJobs, request: pytest.FixtureRequest) -> RunningJob:
    return RunningJob(jobs, request.node.name.removeprefix("test_").replace("_", "-")[:40].strip("-"))


def test_a_master_dies_with_agents_before_or_after_it(jobs: YarnJobs) -> None:
    """What ended while there was no master, and what was asked for by the last one, need not wait for the lease."""
    job = RunningJob(jobs, "both", lease=3600)
    for first in (MASTER, AGENT):
        before = job.running()
        old = job.kill(first)
        if first == AGENT:
            jobs.wait(lambda: any(t["incarnation"] > before[n][0] for n, t in job.tasks().items()), "for the next")
            old = job.kill(MASTER)
        else:
            job.kill(AGENT)
        job.wait_for_another(MASTER, old)
        jobs.wait(lambda: job.running()["worker-0"][0] > before["worker-0"][0], "for another worker-0")
    job.end()


def test_a_killed_task_is_started_again(job: RunningJob) -> None:
    before = job.running()
    os.kill(before["worker-0"][1], signal.SIGKILL)
    job.jobs.wait(lambda: job.running()["worker-0"][0] > before["worker-0"][0])
    assert job.running()["worker-1"] == before["worker-1"]
    job.end()


def test_a_killed_agent_takes_what_it_ran_along(job: RunningJob) -> None:
    job.running()
    agent = job.tasks()["worker-0"]
    os.kill(agent["agent_pid"], signal.SIGKILL)
    job.jobs.wait(lambda: job.running()["worker-0"][0] > agent["incarnation"])
    incarnation = f"MUSTER_INCARNATION={agent['incarnation']}\0".encode()
    for pid in job.jobs.processes_of(job.jobs.application(job.name)):
        try:
            assert incarnation not in pathlib.Path(f"/proc/{pid}/environ").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            pass  # it has ended since
    job.end()


def test_a_killed_master_leaves_its_containers_to_the_next(job: RunningJob) -> None:
    before = job.running()
    old = job.kill(MASTER)
    job.wait_for_another(MASTER, old)
    job.jobs.wait(lambda: job.tasks()["worker-0"].get("place"), "for the next coordinator's word")
    assert job.running() == before
    os.kill(before["worker-0"][1], signal.SIGKILL)  # to see that the next one starts agents
    job.jobs.wait(lambda: job.running()["worker-0"][0] > before["worker-0"][0])
    assert job.running()["worker-1"] == before["worker-1"]
    job.end()


def test_a_killed_coordinator_is_started_again(job: RunningJob) -> None:
    before = job.running()
    old = job.kill(COORDINATOR)
    job.wait_for_another(COORDINATOR, old)
    assert job.running() == before
    job.end()
    assert len(job.started()) == 2


def test_a_master_that_is_killed_while_tasks_start(job: RunningJob) -> None:
    job.jobs.wait(lambda: job.jobs.find(job.name, AGENT), "for an agent")
    old = job.kill(MASTER)
    job.wait_for_another(MASTER, old)
    job.running()
    job.end()


def test_no_incarnation_runs_twice_whichever_process_is_killed(jobs: YarnJobs) -> None:
    seed = int(os.environ.get("MUSTER_SEED", random.SystemRandom().randrange(1 << 32)))
    print(f"seed {seed}")
    chance = random.Random(seed)
    job = RunningJob(jobs, "whichever", lease=90)
    job.running()
    masters = 0
    for _ in range(6):
        what = chance.choice([MASTER, COORDINATOR, AGENT, "task"] if masters < 3 else [AGENT, "task"])
        print(what)
        if what == "task":
            tasks = [t for t in job.tasks().values() if t.get("pid")]
            if tasks:
                try:
                    os.kill(chance.choice(tasks)["pid"], signal.SIGKILL)
                except ProcessLookupError:
                    pass
        else:
            masters += what == MASTER
            old = job.kill(what)
            if what != AGENT:
                job.wait_for_another(what, old)
        if chance.random() < 0.5:
            job.running()
    job.running()
    job.end()
