"""A Spark standalone cluster whose workers are on two hosts: network namespaces, as testbed/network.py makes them."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
from typing import Any

from testbed.network import HOSTS, Network
from testbed.spark import sessions
from testbed.spark.cluster import SparkCluster

_SECRET = "of the test bed"


class SparkOnHosts(SparkCluster):
    """The master is on the first host, and a worker of one core on each. It asks for Spark's authentication."""

    def __init__(self, folder: pathlib.Path, cable: Network) -> None:
        super().__init__(folder, workers=len(HOSTS))
        self.cable = cable
        (folder / "spark.conf").write_text(
            f"spark.authenticate true\nspark.authenticate.secret {_SECRET}\nspark.network.crypto.enabled true\n"
        )

    @property
    def master_host(self) -> str:
        return self.cable.addresses[HOSTS[0]]

    def address_of_worker(self, number: int) -> str:
        return self.cable.addresses[HOSTS[number]]

    def wrap(self, address: str, command: list[str]) -> list[str]:
        host = next(name for name, known in self.cable.addresses.items() if known == address)
        return [*self.cable.command(host), *command, "--properties-file", str(self.folder / "spark.conf")]

    def wait_until_usable(self) -> None:
        with self.cable.inside(HOSTS[0]):
            super().wait_until_usable()

    def run_driver(self, program: str, *arguments: object, seconds: float) -> list[dict[str, Any]]:
        """Runs a program of testbed/programs on the first host; returns the JSON lines that it prints. Its
        arguments are the master, the driver's address, the secret, and these."""
        command = [
            *self.cable.command(HOSTS[0]), sys.executable, str(sessions.ROOT / "testbed/programs" / program),
            self.master, self.master_host, _SECRET, *map(str, arguments),
        ]  # fmt: skip
        done = subprocess.run(
            command, env=self.environment(self.master_host), capture_output=True, text=True, timeout=seconds,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-6000:]
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
