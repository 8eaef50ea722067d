"""Two replicas on a bad network: packets lost, the cable cut, one direction dead."""

from __future__ import annotations

import signal

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
    # Who notices first closes the connection, and says why, which the other may still hear.
    noticed = (
        "silent", "10 s", "closed its connection", "closed the connection", "the deadline passed"
    )  # fmt: skip
    assert any(word in line for line in words for word in noticed), words
    cable.heal()
    hosts.finish()
    assert trainings.weights("broken") == trainings.weights("unbroken")


def test_sigterm_to_one_task_after_the_other_changes_no_byte(
    trainings: Trainings, cable: Network
) -> None:
    flags = ("--epochs", 120, "--save-secs", 0)
    trainings.ok("unbroken", "--workers", 2, *flags)
    hosts = TwoHosts(trainings, cable)
    incarnation = {task: 1 for task in hosts.places}

    def start(task: str) -> None:
        environment = {**PLAIN, "MUSTER_INCARNATION": str(incarnation[task])}
        hosts.start_one(task, *flags, environment=environment)

    for task in incarnation:
        start(task)
    trainings.jobs.wait((trainings.jobs.folder / "broken/checkpoint").exists, "for the beginning")
    for task in ("worker-0", "chief-0"):
        hosts.processes[task].send_signal(signal.SIGTERM)
        code, said = hosts.end(task)
        assert code == 143, said
        # The other neither ends nor continues without it.
        other = next(each for each in incarnation if each != task)
        assert hosts.processes[other].poll() is None
        incarnation[task] += 1
        start(task)
    hosts.finish()
    assert trainings.weights("broken") == trainings.weights("unbroken")


def test_a_servers_machine_that_vanishes_is_replaced_at_its_address(
    trainings: Trainings, cable: Network
) -> None:
    flags = ("--strategy", "ps-sync", "--epochs", 300, "--save-secs", 0)
    hosts = TwoHosts(trainings, cable, {"chief-0": "a", "worker-0": "a", "ps-0": "b"})
    hosts.start(*flags, environment=PLAIN)
    trainings.jobs.wait((trainings.jobs.folder / "broken/checkpoint").exists, "for the beginning")
    cable.lose(100)
    server = hosts.processes["ps-0"]
    server.kill()
    server.communicate()
    cable.replace("b")
    cable.heal()
    hosts.start_one("ps-0", *flags, environment=PLAIN)
    said = hosts.finish()
    assert "a parameter server lost its state" in said["chief-0"], said
    # Each record once an epoch, whatever was done again.
    assert b"trained=900000 " in trainings.weights("broken")


def test_of_two_workers_without_a_network_between_them_one_is_given_up(
    trainings: Trainings, cable: Network
) -> None:
    flags = ("--epochs", 60, "--save-secs", 0, "--min-workers", 2, "--stall-timeout", 3)
    hosts = TwoHosts(trainings, cable, {"chief-0": "a", "worker-0": "a", "worker-1": "b"})
    hosts.start(*flags, environment=PLAIN)
    trainings.jobs.wait((trainings.jobs.folder / "broken/checkpoint").exists, "for the beginning")
    cable.cut_port(7002)  # worker-0's; both reach the chief
    code, said = hosts.end("worker-1")
    assert code == 1, said
    assert "worker-1" in said and "cannot reach worker-0" in said and "given up" in said, said
    del hosts.processes["worker-1"]
    ended = hosts.finish()
    # At which link; either of its ends may be the first to see it.
    assert "neither data nor keep-alives came" in ended["chief-0"], ended
    ends = ("rank 1 (worker-0)", "rank 2 (worker-1)")
    assert any(
        f"{lost}: " in ended["chief-0"] and f"seen by {seer}" in ended["chief-0"]
        for lost, seer in (ends, ends[::-1])
    ), ended


def test_where_all_are_needed_a_cut_link_ends_the_job_and_names_both_ends(
    trainings: Trainings, cable: Network
) -> None:
    flags = ("--epochs", 100_000, "--save-secs", 0, "--stall-timeout", 3)
    hosts = TwoHosts(trainings, cable, {"chief-0": "a", "worker-0": "a", "worker-1": "b"})
    hosts.start(*flags, environment=PLAIN)
    trainings.jobs.wait((trainings.jobs.folder / "broken/checkpoint").exists, "for the beginning")
    cable.cut_port(7002)  # worker-0's; both reach the chief
    for task in ("chief-0", "worker-0", "worker-1"):
        code, said = hosts.end(task)
        assert code == 1, (task, said)
        assert "no step was done in 5 attempts" in said, (task, said)
        assert "worker-0" in said and "worker-1" in said, (task, said)


@pytest.mark.parametrize("strategy", ["allreduce", "ps-sync"])
def test_a_machine_that_never_comes_is_named_by_all_others(
    trainings: Trainings, cable: Network, strategy: str
) -> None:
    places = {"chief-0": "a", "worker-0": "b", "worker-1": "b"}
    if strategy == "ps-sync":
        places["ps-0"] = "a"
    hosts = TwoHosts(trainings, cable, places)
    others = [task for task in places if task != "worker-1"]
    flags = ("--strategy", strategy, "--epochs", 2, "--rendezvous-timeout", 15)
    for task in others:
        hosts.start_one(task, *flags, environment=PLAIN)
    for task in others:
        code, said = hosts.end(task)
        assert code == 1, (task, said)
        assert "waiting for worker-1" in said, (task, said)
        # The others may hear that the chief has gone before they hear why.
        assert task != "chief-0" or "15 s for worker-1" in said, said


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
