"""Jobs that a test submits to a YARN, and their processes on this machine."""

from __future__ import annotations

import json
import os
import pathlib
import re
import signal
import tarfile
from typing import Any

from testbed.hadoop.cluster import Hdfs
from testbed.hadoop.yarn import Yarn
from testbed.jobs import Jobs
from testbed.network import Network

# Each start of the program leaves its incarnation's name; its child outlives a killed parent.
PROGRAM = 'echo $MUSTER_TASK.$MUSTER_INCARNATION >> starts; (while [ ! -e go ]; do sleep 0.1; done) & wait'
MASTER, COORDINATOR, AGENT = "ApplicationMaster", "slot-coordinator", "agent --bundle"


class TwoHosts(Hdfs):
    """An HDFS on host a of a network, where a NodeManager of each host finds it."""

    def __init__(self, folder: pathlib.Path, network: Network):
        self.network, self.host = network, network.addresses["a"]
        super().__init__(folder, data_nodes=1)

    def wrapper(self, name: str) -> list[str]:
        return self.network.command("b" if name == "node-1" else "a")


class TwoHostsYarn(Yarn):
    def host_of(self, number: int) -> str:
        assert isinstance(self.hdfs, TwoHosts)
        return self.hdfs.network.addresses["ab"[number]]


class YarnJobs(Jobs):
    deadline, call_seconds = 300.0, 400.0  # each container starts a JVM or fetches programs first

    def __init__(self, binary: str, folder: pathlib.Path, yarn: Yarn, jar: str):
        super().__init__(binary, folder)
        self.yarn = yarn
        self.environment |= {**yarn.hdfs.environment, "MUSTER_YARN_JAR": jar}

    def run_on_yarn(self, *arguments: object) -> str:
        """Starts a job of small tasks; returns its name."""
        return self.ok("run", "--on", "yarn", "--detach", "--memory", "128Mi", *arguments).strip()

    def pack(self, name: str, folder: str) -> None:
        with tarfile.open(self.folder / name, "w:gz") as archive:
            archive.add(self.folder / folder, arcname=folder)

    def application(self, job: str) -> str:
        record = json.loads((self.home / "jobs" / job / "place.json").read_text())
        return record["id"]

    def staging(self, job: str) -> str:
        """The path of its staging folder on the HDFS."""
        return f"/user/tester/.muster/{self.application(job)}"

    def app(self, job: str) -> dict[str, Any]:
        return self.yarn.app(self.application(job))

    def processes_of(self, application: str) -> dict[int, str]:
        """All processes in containers of the application: pid and command line."""
        found = {}
        # After a restart of the ResourceManager the names of new containers have its epoch: container_e01_...
        number = application.removeprefix("application_")
        container = re.compile(rf"(^|\0)CONTAINER_ID=container_(e\d+_)?{number}_".encode())
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                environment = (entry / "environ").read_bytes()
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if container.search(environment) and state != "Z":
                found[int(entry.name)] = command
        return found

    def find(self, job: str, word: str) -> list[int]:
        """The processes of the job whose command line has this word, without those that only wait to
        end what an agent leaves."""
        found = self.processes_of(self.application(job))
        return [p for p, c in found.items() if word in c and "--wait-to-sweep" not in c]

    def wait_until_nothing_runs(self, job: str) -> None:
        application = self.application(job)
        self.wait(
            lambda: not self.processes_of(application), f"for {self.processes_of(application)} to end"
        )

    def logs(self) -> str:
        return super().logs() + self.yarn.logs()

    def close(self) -> None:
        """Ends what a test has left."""
        for path in self.home.glob("jobs/*/place.json"):
            application = json.loads(path.read_text())["id"]
            self.yarn.kill_app(application)
            for pid in self.processes_of(application):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass


class RunningJob:
    """A job of two workers that run until a file `go` appears."""

    def __init__(self, jobs: YarnJobs, name: str, lease: int = 300):
        """`lease`: long, since on a busy machine the next ApplicationMaster takes long. A task that ends when
        its ApplicationMaster does, so that nobody hears of it, is started again after that time."""
        self.jobs, self.folder = jobs, jobs.folder
        self.name = jobs.run_on_yarn(
            "--workers", 2, "--restart-scope", "task", "--restarts", 50, "--name", name,
            "--lease", lease, "--", "sh", "-c", f"cd {self.folder}; {PROGRAM}",
        )  # fmt: skip

    def running(self) -> dict[str, tuple[int, int]]:
        """Waits until all tasks run; returns incarnation and pid of each."""

        def look() -> dict[str, tuple[int, int]] | None:
            tasks = self.jobs.status(self.name)["tasks"]
            if any(t["phase"] != "running" or not t.get("pid") for t in tasks):
                return None
            return {t["task"]: (t["incarnation"], t["pid"]) for t in tasks}

        return self.jobs.wait(look, "for all tasks to run")

    def tasks(self) -> dict[str, dict[str, Any]]:
        return {t["task"]: t for t in self.jobs.status(self.name)["tasks"]}

    def started(self) -> list[str]:
        path = self.folder / "starts"
        return path.read_text().split() if path.exists() else []

    def kill(self, word: str) -> int:
        """Kills the one process of the job with this word in its command line."""
        found = self.jobs.wait(lambda: self.jobs.find(self.name, word), f"for {word}")
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        return found[0]

    def wait_for_another(self, word: str, pid: int) -> None:
        self.jobs.wait(
            lambda: [p for p in self.jobs.find(self.name, word) if p != pid], f"for another {word}"
        )

    def end(self) -> None:
        self.jobs.wait(lambda: len(self.started()) >= 2, "for the tasks' lines")
        (self.folder / "go").touch()
        self.jobs.wait_phase(self.name, "succeeded")
        self.jobs.wait_until_nothing_runs(self.name)
        started = self.started()
        assert len(started) == len(set(started)), started
