"""Tasks of trainings killed at any moment, again and again: the long versions, of ./test --soak.

MUSTER_SOAK_KILLS is how many in all, MUSTER_SOAK_MINUTES how long goodput is measured,
MUSTER_SOAK_SEED repeats a run's kills as far as the machine does.
"""

from __future__ import annotations

import os
import pathlib
import random
import re
import shutil
import signal
import statistics
import subprocess
import threading
import time
from typing import Callable

import numpy as np
import pytest
import tensorflow as tf

from testbed.trainings import Trainings

KILLS = int(os.environ.get("MUSTER_SOAK_KILLS", "300"))
MINUTES = float(os.environ.get("MUSTER_SOAK_MINUTES", "20"))
SEED = int(os.environ.get("MUSTER_SOAK_SEED") or random.SystemRandom().randrange(2**31))
KILL_EVERY = 60.0  # seconds, for goodput
GOODPUT = 0.95
EPOCHS = 600
DEADLINE = 240.0  # of one training
LONG_PAUSE = 5  # times the usual time between two lines
RECOVERED = 5.0  # seconds after a kill; later pauses are the machine's
STEP = re.compile(r"step (\d+): loss")

JOB = """
apiVersion: kubeflow.org/v1
kind: TFJob
metadata:
  name: {name}
  annotations:
    muster/restartScope: task
    muster/restartBudget: '{{"perTask": 100000, "perJob": 100000, "window": "1s", "backoff": "0.1s"}}'
spec:
  tfReplicaSpecs:
"""
ROLE = """
    {role}:
      replicas: {count}
      restartPolicy: OnFailure
      template: {{spec: {{containers: [{{name: tensorflow, command: [{command}]}}]}}}}
"""


class Soak:
    """Trainings of one strategy; each is a job whose tasks may die as often as they like."""

    def __init__(self, trainings: Trainings, roles: dict[str, int], flags: tuple[object, ...]):
        self.trainings, self.roles, self.flags = trainings, roles, flags
        self.tasks = [
            f"{role.lower()}-{index}" for role, count in roles.items() for index in range(count)
        ]
        self.random = random.Random(f"{SEED} {sorted(roles.items())} {flags}")
        self.killed: list[float] = []  # when
        print(f"MUSTER_SOAK_SEED={SEED}")

    @property
    def kills(self) -> int:
        return len(self.killed)

    def start(self, name: str) -> subprocess.Popen[str]:
        jobs = self.trainings.jobs
        words = self.trainings.flags(name, *self.flags)[1:]
        command = ", ".join(f'"{word}"' for word in (jobs.binary, "worker", *words))
        text = JOB.format(name=name)
        for role, count in self.roles.items():
            text += ROLE.format(role=role, count=count, command=command)
        (jobs.folder / f"{name}.yaml").write_text(text)
        return jobs.start("run", f"{name}.yaml")

    def end(self, process: subprocess.Popen[str]) -> str:
        output, errors = process.communicate(timeout=DEADLINE)
        assert process.returncode == 0, errors + output
        return output + errors

    def kill_one(self, name: str, process: subprocess.Popen[str]) -> None:
        """A task drawn by the seed, if it runs."""
        journal = self.trainings.jobs.home / "jobs" / name / "journal"
        if process.poll() is not None or not journal.exists() or not journal.stat().st_size:
            return
        task = self.trainings.jobs.task(name, self.random.choice(self.tasks))
        if task.get("phase") != "running" or not task.get("pid"):
            return
        try:
            os.kill(task["pid"], signal.SIGKILL)
            self.killed.append(time.monotonic())
        except ProcessLookupError:
            pass

    def kill_until_over(self, name: str) -> None:
        process = self.start(name)
        end = time.monotonic() + DEADLINE
        while process.poll() is None and time.monotonic() < end:
            try:
                process.wait(self.random.uniform(0.05, 1.5))
            except subprocess.TimeoutExpired:
                self.kill_one(name, process)
        self.end(process)

    def repeat(self, kills: int, check: Callable[[str], None]) -> None:
        """Trainings until so many tasks were killed; `check` gets the folder of each."""
        for number in range(10 * kills):
            if self.kills >= kills:
                return
            name = f"broken-{number}"
            self.kill_until_over(name)
            check(name)
            shutil.rmtree(self.trainings.jobs.folder / name)
        raise AssertionError(f"only {self.kills} of {kills} kills came before the end")


def tensors(trainings: Trainings, model_dir: str) -> dict[str, np.ndarray]:
    loaded = tf.train.load_checkpoint(trainings.newest(model_dir))
    names = loaded.get_variable_to_shape_map()
    return {name: loaded.get_tensor(name) for name in names if not name.startswith("muster/")}


@pytest.mark.parametrize(
    ("roles", "flags"),
    [
        ({"Chief": 1, "Worker": 2}, ()),
        ({"Chief": 1, "Worker": 1, "PS": 2}, ("--strategy", "ps-sync")),
    ],
    ids=["allreduce", "ps-sync"],
)
def test_kills_at_any_moment_change_no_byte(
    trainings: Trainings, roles: dict[str, int], flags: tuple[object, ...]
) -> None:
    soak = Soak(trainings, roles, ("--epochs", EPOCHS, "--save-steps", 2000, *flags))
    soak.end(soak.start("unbroken"))
    wanted = tensors(trainings, "unbroken")

    def check(model_dir: str) -> None:
        got = tensors(trainings, model_dir)
        assert got.keys() == wanted.keys()
        for name, value in wanted.items():
            assert np.array_equal(got[name], value), f"{name} after {soak.kills} kills, seed {SEED}"

    soak.repeat(KILLS // 3, check)


def test_kills_at_any_moment_lose_no_batch_of_ps_async(trainings: Trainings) -> None:
    roles = {"Chief": 1, "Worker": 1, "PS": 2}
    soak = Soak(trainings, roles, ("--epochs", EPOCHS, "--save-steps", 2000))
    batches = 2 * -(-1500 // 32) * EPOCHS  # of two replicas

    def check(model_dir: str) -> None:
        assert tensors(trainings, model_dir)["global_step"] == batches, f"seed {SEED}"

    soak.repeat(KILLS // 3, check)


class Lines:
    """Each line of a job about a step, with its time."""

    def __init__(self, process: subprocess.Popen[str]):
        self.steps: list[tuple[float, int]] = []
        self.threads = [
            threading.Thread(target=self._read, args=(pipe,))
            for pipe in (process.stdout, process.stderr)
        ]
        for thread in self.threads:
            thread.start()

    def _read(self, pipe) -> None:
        for line in pipe:
            if found := STEP.search(line):
                self.steps.append((time.monotonic(), int(found[1])))

    def join(self) -> None:
        for thread in self.threads:
            thread.join()

    def goodput(self, killed: list[float]) -> float:
        """1 less the share of the time in which, for these kills, nothing new was trained on."""
        spans = [(before[0], after[0]) for before, after in zip(self.steps, self.steps[1:])]
        gaps = [after - before for before, after in spans]
        usual = statistics.median(gaps)
        paused = sum(
            after - before - usual
            for before, after in spans
            if after - before > LONG_PAUSE * usual
            and any(before - RECOVERED <= kill <= after for kill in killed)
        )
        again, furthest = 0.0, 0
        for gap, (_, step) in zip(gaps, self.steps[1:]):
            if step <= furthest:
                again += min(gap, usual)
            furthest = max(furthest, step)
        return 1 - (paused + again) / (self.steps[-1][0] - self.steps[0][0])


def test_goodput_of_allreduce_at_one_kill_a_minute(
    trainings: Trainings, record_property: Callable[[str, object], None], tmp_path: pathlib.Path
) -> None:
    flags = ("--epochs", 100_000_000, "--log-steps", 500, "--save-secs", 60)
    soak = Soak(trainings, {"Chief": 1, "Worker": 2}, flags)
    process = soak.start("broken")
    lines = Lines(process)
    end = time.monotonic() + MINUTES * 60
    while time.monotonic() < end and process.poll() is None:
        # Once a minute, at any moment of it.
        try:
            process.wait(min(KILL_EVERY, max(end - time.monotonic(), 0)))
        except subprocess.TimeoutExpired:
            soak.kill_one("broken", process)
    process.send_signal(signal.SIGINT)
    process.wait(DEADLINE)
    lines.join()
    goodput = lines.goodput(soak.killed)
    said = f"goodput {goodput:.4f} with {soak.kills} kills in {MINUTES:g} minutes, seed {SEED}"
    print(said)
    record_property("goodput", said)
    assert process.returncode == 1
    assert soak.kills >= MINUTES - 1
    assert goodput >= GOODPUT, said
