"""Runs the programs of testbed/programs as jobs of `muster run`."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import time
from typing import Any, Callable

from testbed.jobs import Jobs

PROGRAMS = pathlib.Path(__file__).parent / "programs"
DEADLINE = 240.0  # for a test, on a loaded machine

# Up to five TensorFlow processes share the cores of a small machine.
ENVIRONMENT = {
    "CUDA_VISIBLE_DEVICES": "",
    "OMP_NUM_THREADS": "1",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "TF_NUM_INTEROP_THREADS": "2",
    "TF_NUM_INTRAOP_THREADS": "1",
}


def use_servers(jobs: Jobs, cluster: str) -> None:
    """Runs a client that needs both workers and the parameter server of this ClusterSpec."""
    done = subprocess.run(
        [sys.executable, PROGRAMS / "session_client.py", cluster], env={**jobs.environment, **ENVIRONMENT},
        capture_output=True, text=True, timeout=DEADLINE, check=False,
    )  # fmt: skip
    assert "total [33.0, 36.0] " in done.stdout, done.stdout + done.stderr + jobs.logs()


class TensorFlowJobs:
    """`old` is the interpreter with tf.estimator, `current` one with the current TensorFlow."""

    def __init__(self, jobs: Jobs):
        self.jobs = jobs
        self.jobs.environment.update(ENVIRONMENT)
        self.end = time.monotonic() + DEADLINE
        self.old = sys.executable
        self.current = os.environ["MUSTER_PYTHON_TENSORFLOW"]
        self.model = jobs.folder / "model"
        self.gate = jobs.folder / "gate"

    def command(self, python: str, program: str, *arguments: object) -> list[object]:
        return ["--", python, PROGRAMS / program, *arguments]

    def start(self, *arguments: object) -> str:
        """Returns the name of a job that runs in the background."""
        return self.jobs.detach("--grace", 1, *arguments)

    def wait(self, what: Callable[[], Any], why: str) -> Any:
        while time.monotonic() < self.end:
            if result := what():
                return result
            time.sleep(0.1)
        raise AssertionError(f"waited in vain {why}\n{self.jobs.logs()}")

    def wait_end(self, job: str) -> dict[str, Any]:
        """Returns the status of `job` once it has ended and left no process."""

        def look() -> dict[str, Any] | None:
            status = self.jobs.status(job)
            return status if status["phase"] in ("succeeded", "failed") else None

        status = self.wait(look, f"for {job} to end")
        self.jobs.wait_nothing_runs()
        return status

    def wait_success(self, job: str) -> dict[str, dict[str, Any]]:
        """Returns the tasks of `job` by name, once it has succeeded."""
        status = self.wait_end(job)
        assert status["phase"] == "succeeded", f"{status}\n{self.jobs.logs()}"
        return {task["task"]: task for task in status["tasks"]}

    def log(self, job: str, task: str) -> str:
        path = self.jobs.home / "jobs" / job / "logs" / f"{task}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def wait_line(self, job: str, task: str, text: str, count: int = 1) -> None:
        """Waits until `task` has written `text` that often, in all its incarnations together."""
        self.wait(
            lambda: self.log(job, task).count(text) >= count, f"for {task} to write '{text}'"
        )

    def gate_flags(self, step: int) -> list[object]:
        return ["--gate", self.gate, "--gate-step", step]

    def wait_at_gate(self, job: str, *tasks: str, count: int = 1) -> None:
        for task in tasks:
            self.wait_line(job, task, "at the gate", count)

    def open_gate(self) -> None:
        self.gate.touch()

    def kill(self, job: str, task: str) -> dict[str, Any]:
        """Kills the task; returns its status before."""
        before = self.jobs.running(job, task)
        os.kill(before["pid"], signal.SIGKILL)
        return before


def ended_by_itself(task: dict[str, Any]) -> bool:
    """Whether it ended with exit code 0, at the first attempt, and without having been told to."""
    return (
        task["restarts"] == 0
        and task["last_end"]["exit_code"] == 0
        and "stop_reason" not in task
    )
