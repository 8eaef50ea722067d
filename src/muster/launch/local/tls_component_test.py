"""Replicas and parameter servers on two hosts: TLS between them, and nobody else let in."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from testbed.network import Network
from testbed.trainings import Trainings
from testbed.two_hosts import TwoHosts

FLAGS = ("--epochs", 2, "--save-secs", 0)
PLAIN = {"MUSTER_PLAIN_TEXT": "1"}
SERVED = {"chief-0": "a", "worker-0": "b", "ps-0": "b", "ps-1": "a"}


@pytest.fixture
def hosts(trainings: Trainings, cable: Network) -> Iterator[TwoHosts]:
    hosts = TwoHosts(trainings, cable)
    yield hosts
    hosts.kill()


def test_a_training_over_tls_is_the_same_to_the_byte(
    trainings: Trainings, cable: Network, hosts: TwoHosts
) -> None:
    trainings.ok("plain", "--workers", 2, *FLAGS)
    hosts.start(*FLAGS, environment={"MUSTER_CERTS": str(hosts.certificates())}).finish()
    assert trainings.weights("broken") == trainings.weights("plain")


def test_parameter_servers_are_reached_over_tls(trainings: Trainings, cable: Network) -> None:
    flags = (*FLAGS, "--strategy", "ps-sync")
    trainings.ok("plain", "--workers", 2, "--ps", 2, *flags)
    hosts = TwoHosts(trainings, cable, SERVED)
    hosts.start(*flags, environment={"MUSTER_CERTS": str(hosts.certificates())}).finish()
    assert trainings.weights("broken") == trainings.weights("plain")


def test_a_training_in_plain_text_has_checksums_and_is_the_same(
    trainings: Trainings, hosts: TwoHosts
) -> None:
    trainings.ok("local", "--workers", 2, *FLAGS)
    hosts.start(*FLAGS, "--plain-text", environment={}).finish()
    assert trainings.weights("broken") == trainings.weights("local")


def test_who_does_not_speak_tls_is_refused_with_both_named(hosts: TwoHosts) -> None:
    certs = {"MUSTER_CERTS": str(hosts.certificates())}
    hosts.start_one("chief-0", *FLAGS, environment=certs)
    hosts.start_one("worker-0", *FLAGS, environment=PLAIN)
    code, said = hosts.end("worker-0")
    assert code == 1
    for word in ("10.77.0.1:7001", "10.77.0.2", "plain text", "'certs'", "MUSTER_CERTS"):
        assert word in said, said
    assert hosts.processes["chief-0"].poll() is None  # it waits for a right one
    hosts.start_one("worker-0", *FLAGS, environment=certs)
    chief = hosts.finish()["chief-0"]
    assert "refused a connection" in chief and "10.77.0.2" in chief and "plain text" in chief


def test_who_speaks_tls_to_a_plain_chief_is_refused(hosts: TwoHosts) -> None:
    hosts.start_one("chief-0", *FLAGS, environment=PLAIN)
    hosts.start_one(
        "worker-0", *FLAGS, environment={"MUSTER_CERTS": str(hosts.certificates())}
    )
    code, said = hosts.end("worker-0")
    assert code == 1
    assert "10.77.0.1:7001 answers in plain text" in said and "MUSTER_CERTS" in said, said


def test_certificates_of_another_authority_are_refused_with_both_named(hosts: TwoHosts) -> None:
    certs, other = hosts.certificates(), hosts.certificates("other")
    hosts.start_one("chief-0", *FLAGS, environment={"MUSTER_CERTS": str(certs)})
    hosts.start_one("worker-0", *FLAGS, environment={"MUSTER_CERTS": str(other)})
    code, said = hosts.end("worker-0")
    assert code == 1
    for word in ("10.77.0.1:7001", "authority 'certs'", "authority 'other'", "muster certs"):
        assert word in said, said


@pytest.mark.parametrize(
    ("flags", "code", "words"),
    [
        ((), 2, ("10.77.0.1:7001", "muster certs --out", "--certs", "MUSTER_PLAIN_TEXT=1")),
        (("--certs", "certs", "--plain-text"), 2, ("both asked for",)),
        (("--certs", "nowhere"), 2, ("nowhere",)),
        (("--certs", "elsewhere"), 1, ("elsewhere", "10.77.0.2", "mismatch", "--host")),
        (("--certs", "open"), 1, ("open/client-key.pem", "chmod 600")),
        (("--certs", "half"), 1, ("half/client.pem", "muster certs")),
    ],
)
def test_what_is_not_safe_is_said_before_anything_starts(
    trainings: Trainings, hosts: TwoHosts, flags: tuple[str, ...], code: int, words: tuple[str, ...]
) -> None:
    for name in ("certs", "open", "half"):
        hosts.certificates(name)
    trainings.jobs.ok("certs", "--out", "elsewhere")
    (trainings.jobs.folder / "open/client-key.pem").chmod(0o640)
    (trainings.jobs.folder / "half/client.pem").unlink()
    hosts.start_one("worker-0", *FLAGS, *flags, environment={})
    returned, said = hosts.end("worker-0")
    assert returned == code, said
    for word in words:
        assert word in said, said
    assert not (trainings.jobs.folder / "broken").exists()
