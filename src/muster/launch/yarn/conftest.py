"""Fixtures of the component tests on a real YARN."""

from __future__ import annotations

import pathlib
import socket
import subprocess
from typing import Iterator

import pytest

from testbed import network
from testbed.hadoop.fixtures import hdfs, yarn
from testbed.hadoop.yarn import Yarn
from testbed.hadoop.yarn_jobs import TwoHosts, TwoHostsYarn, YarnJobs
from testbed.kafka.fixtures import kafka, topic
from testbed.muster import Muster
from testbed.network import HOSTS, Network

__all__ = ["hdfs", "kafka", "topic", "yarn"]


@pytest.fixture(scope="session")
def jar(repository: pathlib.Path) -> str:
    """The ApplicationMaster's path."""
    built = subprocess.run(
        [repository / "java/yarn/build.sh"], capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stderr[-4000:]
    return built.stdout.strip()


@pytest.fixture
def jobs(muster: Muster, yarn: Yarn, jar: str, tmp_path: pathlib.Path) -> Iterator[YarnJobs]:
    """Jobs of a user whose machine has Hadoop's configuration and nothing else of it."""
    jobs = YarnJobs(muster.binary, tmp_path, yarn, jar)
    yield jobs
    jobs.close()


@pytest.fixture(scope="module")
def cable() -> Iterator[Network]:
    if why := network.available():
        pytest.skip(why)
    with Network() as cable, cable.inside("a"):
        for host in HOSTS:  # Hadoop's daemons look for this machine's name, whatever it means
            cable.know(host, {socket.gethostname(): "127.0.0.1"})
        yield cable


@pytest.fixture(scope="module")
def two_hosts(cable: Network, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yarn]:
    """A YARN with a node on each of two hosts; tests are on host a."""
    hdfs = TwoHosts(pathlib.Path(tmp_path_factory.mktemp("two-hosts")), cable)
    yarn = TwoHostsYarn(hdfs)
    try:
        hdfs.start()
        yarn.start()
        yield yarn
    finally:
        yarn.stop()
        hdfs.stop()


@pytest.fixture
def two_hosts_jobs(
    muster: Muster, two_hosts: Yarn, jar: str, tmp_path: pathlib.Path
) -> Iterator[YarnJobs]:
    jobs = YarnJobs(muster.binary, tmp_path, two_hosts, jar)
    yield jobs
    jobs.close()
