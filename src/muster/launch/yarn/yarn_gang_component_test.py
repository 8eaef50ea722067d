"""Jobs on a real YARN whose queue has room for each of them, but not for all at once."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from typing import Any

import pytest

from testbed.daemons import run
from testbed.hadoop.cluster import Hdfs
from testbed.hadoop.yarn import Yarn
from testbed.hadoop.yarn_jobs import YarnJobs
from testbed.trainings import SPEC, write_rows

# Two nodes have room for seven containers of this size, or for six beside several ApplicationMasters.
SIZE, ROOM, TASKS = "2Gi", 6, 5
QUEUE = "yarn.scheduler.capacity.root.default"


class FairYarn(Yarn):
    """Its queue gives the next container to the application that has the fewest, so that two that ask at
    once get a half each."""

    def queues(self) -> dict[str, object]:
        return {f"{QUEUE}.ordering-policy": "fair", f"{QUEUE}.user-limit-factor": 10}


@pytest.fixture(scope="module")
def yarn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yarn]:
    for hdfs in run(Hdfs(pathlib.Path(tmp_path_factory.mktemp("fair")), data_nodes=1)):
        yield from run(FairYarn(hdfs))


def begin(jobs: YarnJobs, name: str, tasks: int, script: str, *flags: object) -> None:
    command = f"cd {jobs.folder}; echo $MUSTER_JOB.$MUSTER_TASK >> starts; {script}"
    jobs.ok("run", "--on", "yarn", "--detach", "--name", name, "--workers", tasks, *flags,
            "--", "sh", "-c", command)  # fmt: skip


def fill(jobs: YarnJobs) -> None:
    """Leaves no room for a container of that size, or for one, until the file `go` appears."""
    begin(jobs, "first", ROOM, "while [ ! -e go ]; do sleep 0.2; done", "--memory", SIZE)
    jobs.wait(lambda: {t["phase"] for t in jobs.status("first")["tasks"]} == {"running"}, "for it to run")


def asks(jobs: YarnJobs, name: str) -> bool:
    """Whether its ApplicationMaster has asked for containers."""
    return "resourceRequests" in jobs.app(name) and jobs.app(name)["state"] == "RUNNING"


def count(job: dict[str, Any], member: str) -> int:
    return sum(task.get(member, 0) for task in job["tasks"])


def test_a_job_that_holds_nothing_keeps_waiting(jobs: YarnJobs) -> None:
    fill(jobs)
    begin(jobs, "waits", 2, "true", "--memory", "4Gi", "--gang-timeout", "1s")
    said = "2 containers of 4096 MB and 1 core, for which YARN has no room in queue root.default"
    jobs.wait(lambda: said in jobs.ok("status", "waits"), "for what it waits for")
    assert [t["incarnation"] for t in jobs.status("waits")["tasks"]] == [1, 2]
    (jobs.folder / "go").touch()
    jobs.wait_phase("waits", "succeeded")
    assert "gave_back" not in jobs.status("waits")


def test_two_jobs_that_hold_what_each_other_needs_both_end(jobs: YarnJobs) -> None:
    fill(jobs)
    both = ("one", "other")
    for name in both:
        begin(jobs, name, TASKS, "sleep 1", "--memory", SIZE, "--gang-timeout", "10s")
    for name in both:
        jobs.wait(lambda: asks(jobs, name), f"for {name} to ask")
    (jobs.folder / "go").touch()
    told: set[str] = set()

    def have_ended() -> bool:
        phases = []
        for name in both:
            job = jobs.status(name)
            told.update(job.get("notes", []))
            phases.append(job["phase"])
        return phases == ["succeeded", "succeeded"]

    jobs.wait(have_ended, "for both to end")
    ended = [jobs.status(name) for name in both]
    assert sum(job.get("gave_back", 0) for job in ended) > 0, "it was no contest"
    assert any("of 5 tasks) got no container of YARN's queue root.default within" in line for line in told), told
    for name, job in zip(both, ended):
        assert (count(job, "restarts"), count(job, "disruptions"), job["failures"]) == (0, 0, [])
        assert "notes" not in job
        jobs.wait_until_nothing_runs(name)
    started = (jobs.folder / "starts").read_text().split()
    assert len(started) == len(set(started)) == ROOM + 2 * TASKS, "no task started before all could"


def test_an_elastic_training_begins_with_the_replicas_that_there_is_room_for(jobs: YarnJobs) -> None:
    begin(jobs, "first", ROOM - 2, "while [ ! -e go ]; do sleep 0.2; done", "--memory", SIZE)
    jobs.wait(lambda: {t["phase"] for t in jobs.status("first")["tasks"]} == {"running"}, "for it to run")
    write_rows(jobs.folder / "rows.csv", 3000)
    (jobs.folder / "spec.yaml").write_text(SPEC)
    url = f"{jobs.yarn.hdfs.url}/tests/elastic"
    jobs.ok("fs", "mkdir", url)
    jobs.ok("fs", "put", jobs.folder / "rows.csv", url)
    running = jobs.start("train", "spec.yaml", f"{url}/model", "--train", f"{url}/rows.csv", "--epochs", 300,
                         "--workers", "2:4", "--on", "yarn", "--memory", SIZE, "--job", "elastic",
                         "--gang-timeout", "60s")  # fmt: skip
    jobs.wait(lambda: (jobs.home / "jobs/elastic/place.json").exists(), "for the job")
    jobs.wait(lambda: jobs.task("elastic", "chief-0").get("step", 0) > 100, "for its steps")
    phases = [task["phase"] for task in jobs.status("elastic")["tasks"]]
    assert 2 <= phases.count("running") < 4, phases
    (jobs.folder / "go").touch()  # from now on there is room for all
    out, err = running.communicate(timeout=300)
    assert running.returncode == 0, out + err + jobs.logs()
    assert "joined at step" in out + err
    assert "gave_back" not in jobs.status("elastic")
