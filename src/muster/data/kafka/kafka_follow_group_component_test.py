"""A training that follows a topic commits to a group what its checkpoints have trained."""

from __future__ import annotations

import json

from confluent_kafka import Consumer, OFFSET_INVALID

from testbed.kafka.clicks import values
from testbed.kafka.followed import wait_for_segments, wait_for_step
from testbed.waiting import wait


def test_what_a_checkpoint_has_is_committed(kafka, topic, local, tmp_path, follow) -> None:
    rows = values(local, "jsonl", 0)
    kafka.create(topic, partitions=2)
    kafka.send(topic, rows[:1000])
    flags = ("--save-secs", 1, "--follow-group", f"lag-{topic}")

    def wait_for_commit(run, *expected: int) -> None:
        def is_committed() -> bool:
            assert run.process.poll() is None, run.text()
            return [kafka.committed(f"lag-{topic}", topic, i) for i in range(2)] == list(expected)

        wait(is_committed, f"{expected}, with the errors in {run.errors}")

    run = follow("m", kafka.url(topic), *flags)
    wait_for_commit(run, 1000, 0)
    kafka.send(topic, rows[1000:1050], 1)
    wait_for_commit(run, 1000, 50)
    run.kill()
    kafka.send(topic, rows[1050:1060])
    run = follow("m", kafka.url(topic), *flags)
    wait_for_commit(run, 1010, 50)
    code, said = run.stop()
    assert (code, said["records"]["trained"]) == (143, 1060)
    assert "warning" not in run.text()


def test_nothing_is_committed_that_no_checkpoint_has(kafka, topic, local, tmp_path, follow) -> None:
    group = f"lag-{topic}"
    kafka.create(topic)
    kafka.send(topic, values(local, "jsonl", 0)[:100])
    run = follow("m", kafka.url(topic), "--save-secs", 0, "--follow-group", group)
    wait(lambda: '"lag":0' in run.text(), run.text())
    assert kafka.committed(group, topic) == OFFSET_INVALID
    run.stop()
    assert kafka.committed(group, topic) == 100


def test_a_group_with_members_is_left_to_them(kafka, topic, local, tmp_path, follow) -> None:
    group = f"lag-{topic}"
    kafka.create(topic)
    kafka.send(topic, values(local, "jsonl", 0)[:100])
    member = Consumer({**kafka.client(), "group.id": group, "auto.offset.reset": "latest",
                       "enable.auto.commit": False})  # fmt: skip
    member.subscribe([topic])
    wait(lambda: member.poll(0.5) is None and member.assignment(), "the member's partition")
    run = follow("m", kafka.url(topic), "--save-secs", 1, "--follow-group", group)
    wait_for_segments(run, tmp_path / "m", 1)
    wait_for_step(run, tmp_path / "m", 2)
    wait(lambda: f"group {group} has members, whose offsets these would replace" in run.text(), run.text())
    member.poll(0)
    code, said = run.stop()
    assert (code, said["records"]["trained"]) == (143, 100)
    assert run.text().count("has members") == 1
    member.close()
    assert kafka.committed(group, topic) == OFFSET_INVALID
