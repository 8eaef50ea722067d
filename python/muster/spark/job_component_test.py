"""muster.spark.run: jobs in tasks of a barrier stage."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
import time
from typing import Any, Callable, Iterator

import pytest

from muster import spark as muster_spark
from muster.binary import MusterError
from muster.spark.own_folder import OwnFolder
from testbed.spark import sessions
from testbed.spark.fixtures import spark
from testbed.waiting import wait

__all__ = ["spark"]
DEADLINE = 180.0
MARK = "MUSTER_SPARK_TEST"  # names the folder in the environment of all tasks
TASK = """
import json, os, pathlib, sys, time
folder, what = pathlib.Path(os.environ["MUSTER_SPARK_TEST"]), sys.argv[1]
task = json.loads(os.environ["TF_CONFIG"])["task"]
name = task["type"] + "-" + str(task["index"])
start = folder / ("start-" + name + "." + os.environ["MUSTER_INCARNATION"])
start.with_suffix(".tmp").write_text(str(os.getpid()) + " " + os.environ["TF_CONFIG"])
start.with_suffix(".tmp").rename(start)
if what == "fail":
    print("this task has lost its way", flush=True)
    sys.exit(3)
while not (folder / "go").exists():
    time.sleep(0.05)
"""


def running(folder: pathlib.Path) -> list[int]:
    """The processes of the folder's jobs: agents have the task's environment only from their worker."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if f"{MARK}={folder}".encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except (OSError, ValueError):
            continue
    return found


def agents(folder: str) -> list[int]:
    """Agents of places, whose bundles lie in this folder for temporary files."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().decode().split("\0")
        except (OSError, UnicodeDecodeError):
            continue
        if "agent" in words[1:2] and any(word.startswith(f"{folder}/") for word in words):
            found.append(int(entry.name))
    return found


@pytest.fixture
def begin(spark: Any, tmp_path: pathlib.Path) -> Iterator[Callable[..., Any]]:
    """Starts jobs, which end with the test."""
    jobs = []

    def begin_one(**arguments: Any) -> Any:
        command = [sys.executable, "-c", TASK, "wait"]
        jobs.append(muster_spark.start(spark, command, env={MARK: str(tmp_path)}, **arguments))
        return jobs[-1]

    yield begin_one
    for job in jobs:
        job.stop()


def starts(folder: pathlib.Path, name: str) -> list[pathlib.Path]:
    return [path for path in folder.glob(f"start-{name}.*") if path.suffix != ".tmp"]


def started(folder: pathlib.Path, name: str) -> list[str]:
    """Waits for a task; returns its pid and TF_CONFIG."""
    return wait(lambda: starts(folder, name), name)[0].read_text().split(" ", 1)


def test_tasks_of_a_cluster(begin: Any, spark: Any, tmp_path: pathlib.Path) -> None:
    job = begin(workers=1, chief=True)
    configs = [json.loads(started(tmp_path, name)[1]) for name in ("chief-0", "worker-0")]
    assert configs[0]["cluster"] == configs[1]["cluster"]
    assert sorted(configs[0]["cluster"]) == ["chief", "worker"]
    assert {task["phase"] for task in job.status()["tasks"]} == {"running"}
    (tmp_path / "go").touch()
    assert job.wait(DEADLINE).phase == "succeeded"
    job.stop()
    assert running(tmp_path) == []
    # Spark has its slots again.
    assert spark.range(0, 100, 1, 4).count() == 100


def test_a_task_that_is_killed_is_started_again(begin: Any, spark: Any, tmp_path: pathlib.Path) -> None:
    job = begin(workers=1, ps=1)
    started(tmp_path, "ps-0")
    os.kill(int(started(tmp_path, "worker-0")[0]), signal.SIGKILL)
    wait(lambda: len(starts(tmp_path, "worker-0")) == 2, "another worker")
    assert len(starts(tmp_path, "ps-0")) == 1
    (tmp_path / "go").touch()
    assert job.wait(DEADLINE).phase == "succeeded"
    job.stop()
    assert running(tmp_path) == []


SERVER = """
import json, os, pathlib, sys, time
if json.loads(os.environ["TF_CONFIG"])["task"]["type"] == "ps":
    time.sleep(120)
    pathlib.Path(sys.argv[1]).touch()
"""


def test_parameter_servers_are_stopped_at_the_end(spark: Any, tmp_path: pathlib.Path) -> None:
    ended = tmp_path / "ended by itself"
    muster_spark.run(spark, [sys.executable, "-c", SERVER, str(ended)], workers=1, ps=1,
                     env={MARK: str(tmp_path)})  # fmt: skip
    assert running(tmp_path) == [] and not ended.exists()


def test_the_status_of_a_job_that_has_ended(spark: Any) -> None:
    job = muster_spark.start(spark, ["true"])
    job.wait(DEADLINE)
    assert job.status()["phase"] == "succeeded"


STOPPED = """
from testbed.spark import sessions
from muster import spark as muster_spark
session = sessions.session()
rows = session.range(3)
job = muster_spark.start(session, ["sleep", "1000"])
while job.status()["tasks"][0]["phase"] != "running":
    pass
session.stop()
for call in (
    lambda: job.wait(60),
    lambda: muster_spark.run(session, ["true"]),
    lambda: muster_spark.MusterEstimator(model="m.yaml").fit(rows),
):
    try:
        call()
    except Exception as error:
        print(error)
"""


def test_a_session_that_was_stopped(tmp_path: pathlib.Path) -> None:
    program = [sys.executable, "-c", STOPPED]
    environment = {**os.environ, "PYTHONPATH": sessions.PYTHONPATH}
    done = subprocess.run(
        program, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=DEADLINE
    )
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert len(said) == 3 and all("the SparkSession was stopped" in line for line in said), said


@pytest.mark.parametrize("restarts", [0, 1])
def test_a_job_that_fails_says_its_last_lines(restarts: int, spark: Any, tmp_path: pathlib.Path) -> None:
    with pytest.raises(MusterError, match="failed.*\n(.*\n)*.*this task has lost its way"):
        muster_spark.run(spark, [sys.executable, "-c", TASK, "fail"], workers=2, restarts=restarts,
                         env={MARK: str(tmp_path)})  # fmt: skip
    assert running(tmp_path) == []


def test_a_job_that_is_stopped(begin: Any, spark: Any, tmp_path: pathlib.Path) -> None:
    job = begin(workers=2)
    started(tmp_path, "worker-1")
    with pytest.raises(TimeoutError):
        job.wait(0.1)
    job.stop()
    assert running(tmp_path) == []
    assert spark.range(0, 100, 1, 4).count() == 100


def test_what_cannot_begin(spark: Any) -> None:
    with pytest.raises(ValueError, match="3 tasks, but Spark's executors have 2 slots .*local"):
        muster_spark.run(spark, ["true"], workers=3)
    with pytest.raises(ValueError, match="a list of a program"):
        muster_spark.run(spark, "true")
    with pytest.raises(ValueError, match="one task or more"):
        muster_spark.run(spark, ["true"], workers=0)


DRIVER = """
import sys
from testbed.spark import sessions
from muster import spark as muster_spark
session = sessions.session()
muster_spark.run(session, sys.argv[2:], workers=2, env={"MUSTER_SPARK_TEST": sys.argv[1]})
"""


def test_a_driver_that_is_killed_leaves_nothing(tmp_path: pathlib.Path) -> None:
    places = tmp_path / "places"
    places.mkdir()
    with open(tmp_path / "driver.log", "wb") as log:
        driver = subprocess.Popen(
            [sys.executable, "-c", DRIVER, str(tmp_path), sys.executable, "-c", TASK, "wait"],
            env={**os.environ, "PYTHONPATH": sessions.PYTHONPATH, "TMPDIR": str(places)},
            stdout=log, stderr=log,
        )  # fmt: skip
    try:
        for name in ("worker-0", "worker-1"):
            started(tmp_path, name)
        assert running(tmp_path) and agents(str(places))
        driver.kill()
        driver.wait()
        wait(lambda: not running(tmp_path) and not agents(str(places)), "the end of all tasks and agents")
        left = list(places.glob("*/job/*"))
        assert left and not [path for path in left if path.name in ("token", "data_key")]

        def are_removed() -> bool:
            with OwnFolder(str(places)) as own:  # as the next driver makes it
                return list(places.iterdir()) == [own.path]

        wait(are_removed, "the end of the driver's folders")
    finally:
        driver.kill()
        driver.wait()
