"""Two replicas on a bad network: packets lost, the cable cut, one direction dead."""

from __future__ import annotations

import pytest

from testbed.network import Network
from testbed.trainings import Trainings
from testbed.two_hosts import TwoHosts

FLAGS = ("--epochs", 400, "--save-secs", 0)
# What the drills are about is below it.
PLAIN = {"MUSTER_PLAIN_TEXT": "1"}


def test_lost_packets_change_no_byte(trainings: Trainings, cable: Network) -> None:
    flags = ("--epochs", 1, "--save-secs", 0)
    trainings.ok("unbroken", "--workers", 2, *flags)
    cable.lose(10)
    TwoHosts(trainings, cable).start(*flags, environment=PLAIN).finish()
    assert trainings.weights("broken") == trainings.weights("unbroken")


@pytest.mark.parametrize("deaf", [("a", "b"), ("a",), ("b",)])
def test_a_cut_cable_is_noticed_and_when_it_is_mended_they_go_on(
    trainings: Trainings, cable: Network, deaf: tuple[str, ...]
) -> None:
    trainings.ok("unbroken", "--workers", 2, *FLAGS)
    hosts = TwoHosts(trainings, cable).start(*FLAGS, environment=PLAIN)
    checkpoint = trainings.jobs.folder / "broken/checkpoint"
    trainings.jobs.wait(checkpoint.exists, "for the training to begin")
    cable.lose(100, *deaf)
    words: list[str] = []
    chief = hosts.processes["chief-0"]
    assert chief.stderr
    while not any("waiting for all replicas" in line for line in words):
        words.append(chief.stderr.readline())
        assert words[-1], words
    # Who notices first closes the connection, which the other may still hear.
    noticed = ("silent", "10 s", "closed its connection", "closed the connection")
    assert any(word in line for line in words for word in noticed), words
    cable.heal()
    hosts.finish()
    assert trainings.weights("broken") == trainings.weights("unbroken")


@pytest.mark.parametrize("protected", [True, False], ids=["tls", "checksums"])
def test_bytes_altered_on_their_way_are_noticed_and_change_nothing(
    trainings: Trainings, cable: Network, protected: bool
) -> None:
    flags = ("--epochs", 20, "--save-secs", 0)
    trainings.ok("unbroken", "--workers", 2, *flags)
    hosts = TwoHosts(trainings, cable)
    cable.alter(500, "b")
    environment = {"MUSTER_CERTS": str(hosts.certificates())} if protected else PLAIN
    said = hosts.start(*flags, environment=environment).finish()
    words = "damaged or altered on" if protected else "damaged on their way"
    assert any(words in text and "10.77.0." in text for text in said.values()), said
    assert trainings.weights("broken") == trainings.weights("unbroken")
