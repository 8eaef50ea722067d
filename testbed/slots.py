"""A job in slots, whose coordinator and provider are processes that a test kills."""

from __future__ import annotations

import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import urllib.request
from typing import Any

from testbed.jobs import DEADLINE, Jobs

PROVIDER = pathlib.Path(__file__).with_name("slot_provider.py")


class Slots:
    def __init__(self, jobs: Jobs):
        self.jobs = jobs
        self.folder = jobs.home / "jobs" / "j"
        self.slots = jobs.folder / "slots"
        self.url = ""
        self.coordinator: subprocess.Popen[str] | None = None
        self.providers: list[subprocess.Popen[bytes]] = []

    def begin(self, manifest: str, *flags: object) -> None:
        """Starts the coordinator of a new job, and the provider's first attempt."""
        self.folder.parent.mkdir(parents=True)
        self.slots.mkdir()
        (self.jobs.folder / "job.yaml").write_text(manifest)
        self.start_coordinator("--job", "job.yaml", *flags)
        self.start_provider()

    def start_coordinator(self, *flags: object) -> None:
        with open(self.jobs.folder / "coordinator.log", "ab") as log:
            self.coordinator = subprocess.Popen(
                [self.jobs.binary, "slot-coordinator", str(self.folder), *map(str, flags)],
                env=self.jobs.environment, cwd=self.jobs.folder, text=True,
                stdout=subprocess.PIPE, stderr=log,
            )  # fmt: skip
        assert self.coordinator.stdout
        self.url = self.coordinator.stdout.readline().strip()
        assert self.url.startswith("http"), self.coordinator_log()

    def start_provider(self) -> subprocess.Popen[bytes]:
        attempt = len(self.providers) + 1
        with open(self.jobs.folder / f"provider-{attempt}.log", "wb") as log:
            self.providers.append(subprocess.Popen(
                [sys.executable, str(PROVIDER), "--url", self.url, "--job", str(self.folder),
                 "--slots", str(self.slots), "--muster", self.jobs.binary, "--attempt", str(attempt)],
                env=self.jobs.environment, cwd=self.jobs.folder, stdout=log, stderr=log,
            ))  # fmt: skip
        return self.providers[-1]

    def kill_coordinator(self) -> None:
        assert self.coordinator
        self.coordinator.send_signal(signal.SIGKILL)
        self.coordinator.wait(timeout=DEADLINE)

    def kill_provider(self) -> None:
        self.providers[-1].send_signal(signal.SIGKILL)
        self.providers[-1].wait(timeout=DEADLINE)

    def status(self) -> dict[str, Any]:
        token = (self.folder / "token").read_text().strip()
        request = urllib.request.Request(
            self.url + "/v1/status", headers={"Authorization": f"Bearer {token}"}
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)

    def running(self) -> dict[str, tuple[int, int]]:
        """Waits until all tasks run; returns incarnation and pid of each."""

        def look() -> dict[str, tuple[int, int]] | None:
            try:
                tasks = self.status()["tasks"]
            except OSError:
                return None
            if not tasks or any(t["phase"] != "running" or not t.get("pid") for t in tasks):
                return None
            return {t["task"]: (t["incarnation"], t["pid"]) for t in tasks}

        return self.jobs.wait(look, f"for all tasks to run\n{self.logs()}")

    def kill_one(self, what: str, chance: random.Random) -> None:
        """Kills one of the tasks, or an agent, with -9, if one runs."""
        try:
            tasks = self.status()["tasks"]
        except OSError:
            return  # its coordinator is just starting
        pids = [t["agent_pid" if what == "agent" else "pid"] for t in tasks if t.get("pid")]
        if not pids:
            return
        try:
            os.kill(chance.choice(pids), signal.SIGKILL)
        except ProcessLookupError:
            pass

    def started(self) -> list[str]:
        """Returns each start of a program, which appends its incarnation's name to `starts`."""
        return (self.jobs.folder / "starts").read_text().split()

    def end(self) -> None:
        """Waits until the job has succeeded, and coordinator and provider have ended by themselves.
        """
        (self.jobs.folder / "go").touch()
        assert self.coordinator
        assert self.coordinator.wait(timeout=DEADLINE) == 0, self.logs()
        assert self.providers[-1].wait(timeout=DEADLINE) == 0, self.logs()
        self.jobs.wait_nothing_runs()

    def coordinator_log(self) -> str:
        return (self.jobs.folder / "coordinator.log").read_text(errors="replace")

    def logs(self) -> str:
        paths = [*self.jobs.folder.glob("*.log"), *self.slots.rglob("*.log")]
        return "\n".join(f"--- {p}\n{p.read_text(errors='replace')[-2000:]}" for p in paths)

    def close(self) -> None:
        for process in [self.coordinator, *self.providers]:
            if process is not None and process.poll() is None:
                os.kill(process.pid, signal.SIGCONT)
                process.kill()
                process.wait(timeout=DEADLINE)
