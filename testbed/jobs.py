"""Runs `muster run` and its jobs, for tests of real processes."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import time
from typing import Any, Callable, Sequence

from testbed.measure import run_measured

DEADLINE = 60.0  # limits waits; no test asserts a time


class Jobs:
    """Runs muster with a separate home, and knows what it has started."""

    deadline, call_seconds = DEADLINE, 120.0  # of a wait; of one muster

    def __init__(self, binary: str, folder: pathlib.Path):
        self.binary = binary
        self.folder = folder
        self.home = folder / "home"
        self.environment = {**os.environ, "MUSTER_HOME": str(self.home)}
        # A test that imports TensorFlow 2 sets it in its process; TensorFlow 1 would obey it.
        self.environment.pop("TF2_BEHAVIOR", None)

    def call(
        self, *arguments: object, wrapper: Sequence[str] = ()
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*wrapper, self.binary, *map(str, arguments)], env=self.environment, cwd=self.folder,
            capture_output=True, text=True, timeout=self.call_seconds, check=False,
        )  # fmt: skip

    def measured(self, *arguments: object) -> tuple[int, str, int]:
        """Returns exit code, stderr, and peak memory in bytes."""
        command = [self.binary, *map(str, arguments)]
        return run_measured(command, env=self.environment, cwd=self.folder)

    def start(self, *arguments: object) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [self.binary, *map(str, arguments)], env=self.environment, cwd=self.folder,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip

    def ok(self, *arguments: object, wrapper: Sequence[str] = ()) -> str:
        result = self.call(*arguments, wrapper=wrapper)
        assert result.returncode == 0, result.stderr + self.logs()
        return result.stdout

    def status(self, job: str) -> dict[str, Any]:
        return json.loads(self.ok("status", job, "--json"))

    def task(self, job: str, name: str) -> dict[str, Any]:
        tasks = self.status(job)["tasks"]  # empty until the coordinator has first looked
        return next((t for t in tasks if t["task"] == name), {})

    def detach(self, *arguments: object) -> str:
        return self.ok("run", "--detach", *arguments).strip()

    def forsake(self, job: str) -> None:
        """Kills the job's coordinator with -9, and its supervisor, if there is one."""
        for name in ("supervisor", "lock"):
            path = self.home / "jobs" / job / name
            if path.exists():
                os.kill(int(path.read_text()), signal.SIGKILL)
        self.wait(lambda: "muster resume" in self.status(job).get("coordinator", ""))

    def wait(self, what: Callable[[], Any], why: str = "") -> Any:
        deadline = time.monotonic() + self.deadline
        while time.monotonic() < deadline:
            result = what()
            if result:
                return result
            time.sleep(0.05)
        raise AssertionError(f"waited in vain {why}\n{self.logs()}")

    def wait_phase(self, job: str, phase: str) -> None:
        self.wait(lambda: self.status(job)["phase"] == phase, f"for {job} to be {phase}")

    def running(self, job: str, name: str, incarnation: int = 1) -> dict[str, Any]:
        def look() -> dict[str, Any] | None:
            task = self.task(job, name)
            runs = task.get("phase") == "running" and task["incarnation"] >= incarnation
            return task if runs and task.get("pid") else None

        return self.wait(look, f"for {name} to run")

    def coordinator(self, job: str) -> int:
        return self._holder(job, "lock")

    def supervisor(self, job: str) -> int:
        return self._holder(job, "supervisor")

    def _holder(self, job: str, name: str) -> int:
        path = self.home / "jobs" / job / name  # empty for a moment while it is being taken
        return int(self.wait(lambda: path.read_text().strip(), f"for a pid in {path}"))

    def kill_coordinator(self, job: str) -> int:
        """Returns its pid."""
        pid = self.coordinator(job)
        os.kill(pid, signal.SIGKILL)
        return pid

    def kill_supervisor(self, job: str) -> None:
        os.kill(self.supervisor(job), signal.SIGKILL)

    def processes(self) -> list[int]:
        """Returns the processes of every job under this home: agents, tasks, and their children."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                environment = (entry / "environ").read_bytes()
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if str(self.home).encode() in environment and state != "Z":
                found.append(int(entry.name))
        return found

    def wait_nothing_runs(self) -> None:
        self.wait(lambda: not self.processes(), f"for {self.processes()} to end")

    def logs(self) -> str:
        texts = []
        for path in sorted(self.home.rglob("*.log")):
            texts.append(f"--- {path}\n{path.read_text(errors='replace')[-3000:]}")
        return "\n".join(texts)
