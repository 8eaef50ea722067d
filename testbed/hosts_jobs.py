"""Jobs whose tasks run on two hosts by ssh, with the coordinator on the first host."""

from __future__ import annotations

import json
import pathlib
import os
import signal
import subprocess
from typing import Any, Sequence

from testbed.jobs import Jobs
from testbed.ssh_hosts import SshHosts


def runs(pid: int) -> bool:
    """Whether the process runs; false for one that has ended but has not been reaped."""
    try:
        stat = pathlib.Path("/proc", str(pid), "stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


class HostsJobs:
    def __init__(self, jobs: Jobs, servers: SshHosts) -> None:
        self.jobs = jobs
        self.servers = servers
        self.cable = servers.network
        self.wrapper = self.cable.command("a")
        self._started: list[subprocess.Popen[str]] = []

    def _command(self, verb: str, *flags: object, hosts: str = "a,b") -> list[str]:
        return [verb, "--hosts", hosts, "--ssh", self.servers.command, *map(str, flags)]

    def call(self, verb: str, *flags: object, hosts: str = "a,b") -> Any:
        return self.jobs.call(*self._command(verb, *flags, hosts=hosts), wrapper=self.wrapper)

    def ok(self, verb: str, *flags: object, hosts: str = "a,b") -> str:
        return self.jobs.ok(*self._command(verb, *flags, hosts=hosts), wrapper=self.wrapper)

    def start(self, verb: str, *flags: object, hosts: str = "a,b") -> subprocess.Popen[str]:
        command = [*self.wrapper, self.jobs.binary, *self._command(verb, *flags, hosts=hosts)]
        self._started.append(
            subprocess.Popen(
                command, env=self.jobs.environment, cwd=self.jobs.folder,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
            )
        )  # fmt: skip
        return self._started[-1]

    def here(self, *arguments: object) -> str:
        """Runs another verb, on the coordinator's host."""
        return self.jobs.ok(*arguments, wrapper=self.wrapper)

    def task(self, job: str, name: str) -> dict[str, Any]:
        tasks = json.loads(self.here("status", job, "--json"))["tasks"]
        return next((task for task in tasks if task["task"] == name), {})

    def running(self, job: str, name: str, incarnation: int = 1) -> dict[str, Any]:
        def look() -> dict[str, Any] | None:
            if not (self.jobs.home / "jobs" / job / "journal").exists():
                return None
            task = self.task(job, name)
            runs = task.get("phase") == "running" and task["incarnation"] >= incarnation
            return task if runs and task.get("pid") else None

        return self.jobs.wait(look, f"for {name} to run")

    def wait_nothing_is_left(self) -> None:
        """Waits until no process and no file of a job is left on either host."""

        def is_empty() -> bool:
            agents: Sequence[int] = [*self.servers.agents("a"), *self.servers.agents("b")]
            return not agents and not self.servers.left()

        self.jobs.wait(is_empty, "for the hosts to be as they were")

    def kill(self) -> None:
        for process in self._started:
            process.kill()
            process.communicate()
        for pid in [*self.jobs.processes(), *self.servers.agents("a"), *self.servers.agents("b")]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
