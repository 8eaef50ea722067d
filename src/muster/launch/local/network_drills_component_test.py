"""Two replicas on a bad network: packets lost, the cable cut, one direction dead."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator

import pytest

from testbed import network
from testbed.network import Network
from testbed.trainings import Trainings

WAIT = 120.0
FLAGS = ("--epochs", 400, "--save-secs", 0)


@pytest.fixture
def cable() -> Iterator[Network]:
    if why := network.available():
        pytest.skip(why)
    with Network() as cable:
        yield cable


class TwoHosts:
    """A chief on host a, a worker on host b, as any launcher would start them."""

    def __init__(self, trainings: Trainings, cable: Network, *flags: object) -> None:
        folder = trainings.jobs.folder
        key = folder / "key"
        key.write_text("5e" * 32)
        key.chmod(0o600)
        places = {"chief": ("a", 7001), "worker": ("b", 7002)}
        cluster = {
            task: [f"{cable.addresses[host]}:{port}"] for task, (host, port) in places.items()
        }
        self.processes = {}
        for task, (host, _) in places.items():
            config = {"cluster": cluster, "task": {"type": task, "index": 0}}
            arguments = trainings.flags("broken", *flags)
            arguments[0] = "worker"
            self.processes[task] = subprocess.Popen(
                [*cable.command(host), trainings.jobs.binary, *map(str, arguments)],
                env={
                    **trainings.jobs.environment,
                    "TF_CONFIG": json.dumps(config),
                    "MUSTER_KEY_FILE": str(key),
                },
                cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )  # fmt: skip

    def finish(self) -> dict[str, str]:
        said = {}
        for task, process in self.processes.items():
            _, said[task] = process.communicate(timeout=WAIT)
            assert process.returncode == 0, said[task]
        return said


def test_lost_packets_change_no_byte(trainings: Trainings, cable: Network) -> None:
    flags = ("--epochs", 1, "--save-secs", 0)
    trainings.ok("unbroken", "--workers", 2, *flags)
    cable.lose(10)
    TwoHosts(trainings, cable, *flags).finish()
    assert trainings.weights("broken") == trainings.weights("unbroken")


@pytest.mark.parametrize("deaf", [("a", "b"), ("a",), ("b",)])
def test_a_cut_cable_is_noticed_and_when_it_is_mended_they_go_on(
    trainings: Trainings, cable: Network, deaf: tuple[str, ...]
) -> None:
    trainings.ok("unbroken", "--workers", 2, *FLAGS)
    hosts = TwoHosts(trainings, cable, *FLAGS)
    checkpoint = trainings.jobs.folder / "broken/checkpoint"
    trainings.jobs.wait(checkpoint.exists, "for the training to begin")
    cable.lose(100, *deaf)
    words: list[str] = []
    chief = hosts.processes["chief"]
    assert chief.stderr
    while not any("waiting for all replicas" in line for line in words):
        words.append(chief.stderr.readline())
        assert words[-1], words
    # Who notices first closes the connection, which the other may still hear.
    noticed = ("silent", "10 s", "closed its connection")
    assert any(word in line for line in words for word in noticed), words
    cable.heal()
    hosts.finish()
    assert trainings.weights("broken") == trainings.weights("unbroken")
