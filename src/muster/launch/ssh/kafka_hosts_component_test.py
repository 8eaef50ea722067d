"""A training on two hosts by ssh follows a topic of a real Kafka, whose broker is on one of them."""

from __future__ import annotations

import functools
import json
import os
import pathlib
import signal
from typing import Iterator

import pytest

from testbed.hosts_jobs import HostsJobs
from testbed.kafka.clicks import local, train, values, weights
from testbed.kafka.cluster import Kafka
from testbed.kafka.followed import FOLLOW, copy_segments, has_saved
from testbed.kafka.fixtures import run_inside
from testbed.network import Network
from testbed.waiting import wait

__all__ = ["local"]
TOPIC = "clicks"
TOGETHER = ("--no-shuffle", "--workers", 2)


@pytest.fixture
def broker(cable: Network, tmp_path: pathlib.Path) -> Iterator[Kafka]:
    """Usable inside the network only."""
    yield from run_inside(functools.partial(cable.inside, "a"), tmp_path / "kafka", cable.addresses["a"])


def test_a_followed_topic_is_trained_once_also_when_a_host_loses_its_worker(
    hosts: HostsJobs, broker: Kafka, local: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    rows, model, whole = values(local, "jsonl", 0), tmp_path / "followed", tmp_path / "whole"
    with hosts.cable.inside("a"):
        broker.create(TOPIC)

    def send(first: int, last: int) -> None:
        with hosts.cable.inside("a"):
            broker.send(TOPIC, rows[first:last])

    def wait_for_step(step: int) -> None:
        def is_saved() -> bool:
            assert running.poll() is None, running.communicate()
            return has_saved(model, step)

        wait(is_saved, f"step {step}")

    command = train(local, model, broker.url(TOPIC), *TOGETHER, *FOLLOW, "--save-secs", 1, "--json", "--job", "followed")
    running = hosts.start(*map(str, command))
    worker = hosts.running("followed", "worker-0")
    send(0, 1000)
    wait_for_step(10)  # batches of 50, half of the records each
    os.kill(worker["pid"], signal.SIGKILL)
    hosts.running("followed", "worker-0", worker["incarnation"] + 1)
    send(1000, 2000)
    wait_for_step(20)
    running.send_signal(signal.SIGTERM)
    out, said = running.communicate(timeout=120)
    ends = [json.loads(line[line.index("{") :]) for line in out.splitlines() if '"trained"' in line]
    assert ends and ends[-1]["records"] == {"trained": 2000, "dropped": 0, "repeated": 0}, out + said
    hosts.wait_nothing_is_left()
    # On one machine, undisturbed, with the same segments.
    copy_segments(model, whole)
    hosts.here(*train(local, whole, broker.url(TOPIC), *TOGETHER, *FOLLOW, "--max-steps", 20))
    assert weights(model) == weights(whole)
