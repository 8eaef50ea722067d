"""muster train --workers MIN:MAX: workers that leave for good, and that come while others train."""

from __future__ import annotations

import json
import os
import pathlib
import re
import signal
import subprocess

import pytest

from testbed.drills import Drill, break_training, kill_in_training
from testbed.jobs import DEADLINE
from testbed.ports import free_address
from testbed.trainings import Trainings

ROWS = 3000
EPOCHS = 600  # so that all that happens here happens before the end


def kill(trainings: Trainings, job: str, task: str, incarnation: int) -> int:
    """The incarnation that was killed: that one or a later one."""
    journal = trainings.jobs.home / "jobs" / job / "journal"
    trainings.jobs.wait(lambda: journal.exists() and journal.stat().st_size > 0, f"for {job}")
    found = trainings.jobs.running(job, task, incarnation)
    os.kill(found["pid"], signal.SIGKILL)
    return int(found["incarnation"])


def kill_twice(drill: Drill) -> None:
    """worker-1, when it trains and when it has been started again."""
    drill.wait(lambda: drill.task("worker-1").get("step", 0) > 0, "for worker-1's first step")
    first = drill.task("worker-1").get("incarnation", 0)
    drill.send("worker-1", signal.SIGKILL)
    drill.wait(lambda: drill.task("worker-1").get("incarnation", 0) > first, "for its next start")
    drill.send("worker-1", signal.SIGKILL)


def test_a_worker_that_is_given_up_is_done_without(trainings: Trainings) -> None:
    flags = ("--workers", "2:3", "--epochs", EPOCHS, "--save-secs", 0, "--restarts", 1)
    sign = "worker-1 failed: given up: its budget of 1 restarts"
    code, said = break_training(trainings, flags, kill_twice, sign)
    assert code == 0, said + trainings.jobs.logs()
    assert f"{ROWS * EPOCHS} trained, 0 dropped, 0 repeated" in said
    assert re.search(r"worker-1 left at step \d+ .*: 2 replicas", said)
    job = max(path.name for path in (trainings.jobs.home / "jobs").iterdir())
    status = trainings.jobs.ok("status", job)
    assert f"records: {ROWS * EPOCHS} trained, 0 dropped, 0 repeated" in status
    chief = trainings.jobs.task(job, "chief-0")
    assert chief["counts"] == {"trained": ROWS * EPOCHS, "dropped": 0, "repeated": 0}
    assert chief["step"] > 0


@pytest.mark.parametrize("victim", ["worker-0", "chief-0"])
def test_one_that_comes_back_changes_no_byte(trainings: Trainings, victim: str) -> None:
    # As many as must be there: however long it takes, nobody continues without it.
    flags = ("--workers", "2:2", "--epochs", 300, "--save-secs", 0)
    trainings.ok("unbroken", *flags)
    kill_in_training(trainings, flags, victim)
    assert trainings.weights("broken") == trainings.weights("unbroken")


def test_fewer_than_the_least_end_the_job(trainings: Trainings) -> None:
    running = trainings.jobs.start(
        *trainings.flags("model", "--workers", "2:2", "--epochs", EPOCHS, "--save-secs", 0),
        *("--job", "elastic", "--restarts", 0),
    )
    kill(trainings, "elastic", "worker-0", 1)
    _, said = running.communicate(timeout=2 * DEADLINE)
    assert running.returncode == 1
    assert "worker-0: killed by SIGKILL" in said and "budget of 0 restarts" in said


class Launcher:
    """Starts `muster worker` by TF_CONFIG, as other launchers do."""

    def __init__(self, trainings: Trainings) -> None:
        self.trainings = trainings
        key = trainings.jobs.folder / "key"
        key.write_text("5a" * 32 + "\n")
        key.chmod(0o600)
        trainings.jobs.environment["MUSTER_KEY_FILE"] = str(key)
        self.cluster = {"chief": [free_address()], "worker": [free_address(), free_address()]}

    def step_file(self, task: str) -> pathlib.Path:
        return self.trainings.jobs.folder / f"{task}.step"

    def start(
        self, kind: str, index: int, *flags: object, fewest: int = 2
    ) -> subprocess.Popen[str]:
        task = {"type": kind, "index": index}
        self.trainings.jobs.environment |= {
            "TF_CONFIG": json.dumps({"cluster": self.cluster, "task": task}),
            "MUSTER_STEP_FILE": str(self.step_file(f"{kind}-{index}")),
        }
        common = self.trainings.flags("model", "--min-workers", fewest, "--save-secs", 0, *flags)
        return self.trainings.jobs.start("worker", *common[1:])


def test_a_worker_that_comes_later_gets_its_share(trainings: Trainings) -> None:
    launcher = Launcher(trainings)
    flags = ("--epochs", EPOCHS)
    chief = launcher.start("chief", 0, *flags)
    others = [launcher.start("worker", 0, *flags)]
    trainings.jobs.wait(launcher.step_file("chief-0").exists, "for a step without worker-1")
    others.append(launcher.start("worker", 1, *flags))
    output, said = chief.communicate(timeout=2 * DEADLINE)
    assert chief.returncode == 0, said
    for other in others:
        assert other.wait(DEADLINE) == 0
    assert f"{ROWS * EPOCHS} trained, 0 dropped, 0 repeated" in output
    assert re.search(r"worker-1 joined at step [1-9]\d*: 3 replicas", output)


def test_an_evaluator_beside_a_range_of_replicas(trainings: Trainings) -> None:
    flags = ("--workers", "2:3", "--evaluator", "--eval", "train.csv", "--epochs", 2)
    said = trainings.ok("model", *flags)
    assert re.search(r"evaluator-0 +\| .*accuracy", said), said


def test_more_replicas_than_there_are_tasks_are_refused(trainings: Trainings) -> None:
    launcher = Launcher(trainings)
    chief = launcher.start("chief", 0, fewest=4)
    _, said = chief.communicate(timeout=DEADLINE)
    assert chief.returncode == 2
    assert "--min-workers 4: TF_CONFIG has 3 replicas: give at most as many" in said


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--workers", "3:2"), "range"),
        (("--workers", "0:2"), "range"),
        (("--workers", "two"), "range"),
        (("--workers", "2:3", "--ps", 1), "all-reduce"),
    ],
)
def test_wrong_ranges_are_said_before_anything_starts(
    trainings: Trainings, flags: tuple[object, ...], words: str
) -> None:
    result = trainings.run("model", *flags)
    assert result.returncode in (1, 2)
    assert words in result.stderr
    assert not trainings.jobs.home.exists()
