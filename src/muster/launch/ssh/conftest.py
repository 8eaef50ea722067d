"""Fixtures of the tests of `muster run --hosts`: two hosts with sshd."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import pytest

from testbed import network, ssh_hosts
from testbed.hosts_jobs import HostsJobs
from testbed.jobs import Jobs
from testbed.network import Network
from testbed.ssh_hosts import SshHosts


@pytest.fixture
def cable() -> Iterator[Network]:
    if why := network.available():
        pytest.skip(why)
    with Network() as cable:
        yield cable


@pytest.fixture
def hosts(muster, cable: Network, tmp_path: pathlib.Path) -> Iterator[HostsJobs]:
    if why := ssh_hosts.available():
        pytest.skip(why)
    with SshHosts(cable, tmp_path) as servers:
        jobs = HostsJobs(Jobs(muster.binary, tmp_path), servers)
        yield jobs
        jobs.kill()
