"""Tasks of a training on two hosts or more, started as any launcher would."""

from __future__ import annotations

import json
import pathlib
import subprocess
from collections.abc import Mapping

from testbed.network import Network
from testbed.trainings import Trainings

WAIT = 600.0  # enough for thousands of steps on a loaded machine
# Task -> its host. The chief is on one host, the worker on the other.
TWO = {"chief-0": "a", "worker-0": "b"}


class TwoHosts:
    """Starts tasks of one training, which goes to the folder `broken`, with a TF_CONFIG of
    addresses or, with `named`, of names."""

    def __init__(
        self,
        trainings: Trainings,
        cable: Network,
        places: Mapping[str, str] = TWO,
        named: bool = False,
    ) -> None:
        self.trainings = trainings
        self.cable = cable
        self.places = places
        self.key = trainings.jobs.folder / "key"
        self.key.write_text("5e" * 32)
        self.key.chmod(0o600)
        self.cluster: dict[str, list[str]] = {}
        self.names: dict[str, str] = {}  # name -> address
        for port, (task, host) in enumerate(places.items(), 7001):
            kind = task.split("-")[0]
            address = cable.addresses[host]
            if named:
                self.names[name := f"{task}.job.svc"] = address
                address = name
            self.cluster.setdefault(kind, []).append(f"{address}:{port}")
        self.processes: dict[str, subprocess.Popen[str]] = {}

    def start(self, *flags: object, environment: Mapping[str, str]) -> TwoHosts:
        for task in self.places:
            self.start_one(task, *flags, environment=environment)
        return self

    def start_one(
        self,
        task: str,
        *flags: object,
        environment: Mapping[str, str],
        own_processes: bool = False,
    ) -> None:
        kind, index = task.split("-")
        config = {"cluster": self.cluster, "task": {"type": kind, "index": int(index)}}
        jobs = self.trainings.jobs
        arguments = ["worker", *self.trainings.flags("broken", *flags)[1:]]
        self.processes[task] = subprocess.Popen(
            [
                *self.cable.command(self.places[task], own_processes),
                jobs.binary,
                *map(str, arguments),
            ],
            env={
                **jobs.environment,
                "TF_CONFIG": json.dumps(config),
                "MUSTER_KEY_FILE": str(self.key),
                **environment,
            },
            cwd=jobs.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def certificates(self, name: str = "certs") -> pathlib.Path:
        """Returns certificates of all hosts, in a folder of that name."""
        known = self.names or self.cable.addresses.values()
        hosts = [word for host in known for word in ("--host", host)]
        self.trainings.jobs.ok("certs", "--out", name, "--name", name, *hosts)
        return self.trainings.jobs.folder / name

    def end(self, task: str) -> tuple[int, str]:
        """Waits for the task; returns its exit code and output."""
        process = self.processes[task]
        _, said = process.communicate(timeout=WAIT)
        return process.returncode, said

    def finish(self) -> dict[str, str]:
        said = {}
        for task in self.processes:
            code, said[task] = self.end(task)
            assert code == 0, said[task]
        return said

    def kill(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.communicate()
