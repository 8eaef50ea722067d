"""A Spark standalone cluster of the pip package pyspark: a master and workers on loopback ports."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import time
import urllib.request

import pyspark

from testbed.daemons import Daemons
from testbed.ports import free_port

DEADLINE = 300.0
JAVA_FLAGS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xshare:auto"


class SparkCluster(Daemons):
    """Started by start(), ended by stop(). Processes by name: "master", "worker-0", ...

    Each worker has an address of its own: Spark runs a speculative copy on another host only.
    """

    def __init__(self, folder: pathlib.Path, workers: int = 2, cores: int = 1):
        self.folder, self.workers, self.cores = folder, workers, cores
        self.port, self.web_port = free_port(), free_port()
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def master(self) -> str:
        return f"spark://{self.master_host}:{self.port}"

    @property
    def master_host(self) -> str:
        return "127.0.0.1"

    def address_of_worker(self, number: int) -> str:
        return f"127.0.0.{number + 2}"

    def wrap(self, address: str, command: list[str]) -> list[str]:
        """The command that runs a daemon at this address."""
        return command

    def environment(self, address: str) -> dict[str, str]:
        return {
            **os.environ,
            "SPARK_HOME": str(pathlib.Path(pyspark.__file__).parent),
            "SPARK_LOCAL_IP": address,
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_WORKER_DIR": str(self.folder / "work"),
            "SPARK_LOCAL_DIRS": str(self.folder / "local"),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": JAVA_FLAGS,
            "SPARK_LOG_DIR": str(self.folder),
        }

    def run(self, name: str, address: str, *command: object) -> None:
        program = pathlib.Path(pyspark.__file__).parent / "bin" / "spark-class"
        with open(self.folder / f"{name}.log", "ab") as log:
            self.processes[name] = subprocess.Popen(
                self.wrap(address, [str(program), *map(str, command)]), env=self.environment(address), cwd=self.folder,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip

    def start(self) -> None:
        self.run(
            "master", self.master_host, "org.apache.spark.deploy.master.Master", "--host", self.master_host,
            "--port", self.port, "--webui-port", self.web_port,
        )  # fmt: skip
        for number in range(self.workers):
            self.start_worker(number)
        self.wait_until_usable()

    def start_worker(self, number: int) -> None:
        address = self.address_of_worker(number)
        self.run(
            f"worker-{number}", address, "org.apache.spark.deploy.worker.Worker", "--host", address,
            "-c", self.cores, "-m", "1g", "--webui-port", free_port(), self.master,
        )  # fmt: skip

    def wait_until_usable(self) -> None:
        """Until all workers are registered."""
        end, last = time.monotonic() + DEADLINE, "nothing was tried"
        while time.monotonic() < end:
            for name, process in self.processes.items():
                log = (self.folder / f"{name}.log").read_text(errors="replace")
                assert process.poll() is None, f"{name} has ended: {log[-4000:]}"
            try:
                url = f"http://{self.master_host}:{self.web_port}/json/"
                with urllib.request.urlopen(url, timeout=5) as answer:
                    last = answer.read().decode()
                if last.count('"ALIVE"') >= self.workers + 1:
                    return
            except OSError as error:
                last = str(error)
            time.sleep(0.2)
        raise AssertionError(f"Spark is not usable after {DEADLINE:.0f} s: {last}")
