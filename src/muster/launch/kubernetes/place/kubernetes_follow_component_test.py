"""`muster train --follow --on kubernetes`: pods follow a topic of a real Kafka, and one of them is killed."""

from __future__ import annotations

import pathlib
from typing import Iterator

import pytest

from testbed.jobs import Jobs
from testbed.kafka.clicks import local, train, values, weights
from testbed.kafka.cluster import Kafka
from testbed.kafka.followed import FOLLOW, copy_segments, has_saved
from testbed.kafka.fixtures import run_inside
from testbed.kubernetes.native_jobs import make_claim
from testbed.kubernetes.process_space import ProcessSpace
from testbed.muster import Muster
from testbed.waiting import wait

__all__ = ["local"]
ON = ("--on", "kubernetes", "--image", "image", "--volume", "data:/muster-test/data")
TOPIC = "followed-by-pods"


@pytest.fixture
def broker(process_space: ProcessSpace, tmp_path: pathlib.Path) -> Iterator[Kafka]:
    """Usable by pods, and inside the network of their node."""
    node = process_space.kubelet.node
    yield from run_inside(node.inside, tmp_path / "kafka", node.address)


def test_pods_train_each_record_of_a_topic_once(
    muster: Muster,
    process_space: ProcessSpace,
    process_user: Jobs,
    broker: Kafka,
    local: pathlib.Path,
    tmp_path: pathlib.Path,
) -> None:
    data, rows = make_claim(process_space, "data"), values(local, "jsonl", 0)
    process_space.start_operator()
    inside = process_space.kubelet.node.inside

    def send(first: int, last: int) -> None:
        with inside():
            broker.send(TOPIC, rows[first:last])

    flags = (broker.url(TOPIC), "--no-shuffle", "--workers", 2, *FOLLOW)
    with inside():
        broker.create(TOPIC)
    command = train(local, pathlib.Path("/muster-test/data/model"), *flags)
    process_user.ok(*command, "--save-secs", 1, *ON, "--job", "f", "--detach")
    send(0, 1000)
    wait(lambda: has_saved(data / "model", 10), "step 10")  # batches of 50, half of the records each
    process_space.kubelet.kill("f-worker-0")
    send(1000, 2000)
    wait(lambda: has_saved(data / "model", 20), "step 20")
    process_user.ok("stop", "f")
    # On one machine, undisturbed, with the same segments.
    whole = tmp_path / "whole"
    copy_segments(data / "model", whole)
    with inside():
        muster.run(*train(local, whole, *flags, "--max-steps", 20))
    assert weights(data / "model") == weights(whole)
