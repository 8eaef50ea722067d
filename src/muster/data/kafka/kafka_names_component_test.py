"""What the settings in a kafka:// name do: columns of messages, ranges, compacted topics."""

from __future__ import annotations

import json
import pathlib
import time

import pytest

from testbed.kafka.clicks import IN_ORDER, fail, train, values, weights
from testbed.kafka.cluster import Kafka
from testbed.muster import Muster

BEGIN = int(time.time()) - 3600  # the time of the first message: older ones retention would remove
COLUMNS = "?key=user&timestamp=at&header.source=from"
SPEC = f"""
inputs:
  label: int
  I1: {{type: float, default: 0}}
  user: {{type: string, default: none}}
  at: {{type: int, default: 0}}
  from: {{type: string, default: none}}
label: label
columns:
  I1: {{numeric: I1, log1p: true}}
  user: {{hash: user, buckets: 100}}
  at: {{numeric: at, mean: {BEGIN}, stddev: 1000}}
  from: {{vocabulary: from, words: [web, app]}}
model: {{type: linear, linear: {{columns: [I1, user, at, from]}}}}
train: {{batch_size: 50, seed: 3}}
"""


def message(i: int, value: bytes) -> dict[str, object]:
    """A message with a key, a time and a header; but some lack the key or the header."""
    headers = [("other", b"x"), ("source", b"old"), ("source", b"web" if i % 2 else b"app")]
    return {
        "value": value,
        "key": None if i % 7 == 0 else f'u{i % 20}"',
        "timestamp": (BEGIN + i) * 1000 + 999,
        "headers": headers[:1] if i % 5 == 0 else headers,
    }


def columns(i: int) -> dict[str, object]:
    """The columns of the same message."""
    return {
        "user": None if i % 7 == 0 else f'u{i % 20}"',
        "at": BEGIN + i,
        "from": None if i % 5 == 0 else "web" if i % 2 else "app",
    }


def fill(kafka: Kafka, topic: str, rows: list[bytes]) -> None:
    kafka.create(topic)
    kafka.send_messages(topic, (message(i, row) for i, row in enumerate(rows)))


@pytest.fixture
def spec(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "columns.yaml").write_text(SPEC)
    return tmp_path / "columns.yaml"


@pytest.mark.parametrize("kind", ["csv", "jsonl", "tfrecord"])
def test_what_messages_have_beside_their_value_are_columns(muster, kafka, topic, local, tmp_path, spec, kind) -> None:
    rows = values(local, kind, 0)[:2000]
    fill(kafka, topic, rows)
    same = tmp_path / "same.jsonl"
    of_files = [json.loads(row) for row in values(local, "jsonl", 0)[:2000]]
    same.write_text("".join(json.dumps({**row, **columns(i)}) + "\n" for i, row in enumerate(of_files)))
    header = (local / "train.csv").read_text().splitlines()[0]
    flags = ("--columns", header) if kind == "csv" else ()
    for name, data, more in (("f", same, ()), ("k", kafka.url(topic, COLUMNS), flags)):
        muster.run("train", spec, "--train", data, "--model-dir", tmp_path / name, *IN_ORDER, *more)
        muster.run("predict", tmp_path / name, "--data", data, "--out", tmp_path / f"{name}.csv", *more)
        (tmp_path / f"{name}.json").write_text(
            muster.run("evaluate", tmp_path / name, "--data", data, "--json", *more))
    assert weights(tmp_path / "k") == weights(tmp_path / "f")
    assert (tmp_path / "k.csv").read_bytes() == (tmp_path / "f.csv").read_bytes()
    assert json.loads((tmp_path / "k.json").read_text()) | {"checkpoint": ""} == json.loads(
        (tmp_path / "f.json").read_text()) | {"checkpoint": ""}  # fmt: skip


def test_workers_and_a_training_that_continues_have_the_columns(muster, kafka, topic, local, tmp_path, spec) -> None:
    fill(kafka, topic, values(local, "jsonl", 0)[:2000])
    command = ("train", spec, "--train", kafka.url(topic, COLUMNS), "--model-dir", tmp_path / "m", "--workers", 2)
    muster.run(*command, "--epochs", 1)
    kafka.send(topic, [b"no JSON"])  # it is of no training before
    muster.run(*command, "--epochs", 2)
    known = json.loads((tmp_path / "m" / "kafka.json").read_text())
    assert list(known.values()) == [known[topic]]
    assert f"{COLUMNS}&ranges=0:0-2000&chunk=" in known[topic]


def test_columns_of_messages_are_printed(muster, kafka, topic) -> None:
    fill(kafka, topic, [b'{"a": 1}', b"{}", b'{"from": "value"} '])
    shown = muster.run("records", "cat", kafka.url(topic, COLUMNS)).splitlines()
    assert [json.loads(row) for row in shown] == [
        {"a": 1, **columns(0)}, columns(1), {**columns(2), "from": "app"}]  # fmt: skip
    again = f"{topic}-csv"
    fill(kafka, again, [b"1,x", b"2,y\n"])
    shown = muster.run("records", "cat", kafka.url(again, COLUMNS))
    assert shown == f'1,x,,{BEGIN},\n2,y,"u1""",{BEGIN + 1},web\n'


def test_settings_of_a_name_that_are_wrong(muster, kafka, topic, local, tmp_path) -> None:
    fill(kafka, topic, values(local, "jsonl", 0)[:100])
    assert "'keys=user' is no setting" in fail(muster, local, tmp_path, kafka.url(topic, "?keys=user"))
    assert "two columns are named 'a'" in fail(muster, local, tmp_path, kafka.url(topic, "?key=a&header.b=a"))
    other = muster.fail("records", "cat", kafka.url(topic), kafka.url(topic, "?key=user"))
    assert "has other columns of messages" in other


def test_a_range_past_the_end_is_an_error_before_any_record_is_read(muster, kafka, topic, local) -> None:
    kafka.create(topic, 2)
    kafka.send(topic, values(local, "jsonl", 0)[:20], 1)
    errors = muster.fail("records", "cat", kafka.url(topic, "?ranges=0:0-0,1:0-50"))
    assert f"{topic}/1: records up to offset 50 are wanted, but the partition ends at offset 20" in errors
    assert len(muster.run("records", "cat", kafka.url(topic, "?ranges=1:5-20")).splitlines()) == 15


@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
def test_a_compacted_topic_is_trained_from_only_if_that_is_allowed(
    muster: Muster, kafka: Kafka, topic: str, local: pathlib.Path, tmp_path: pathlib.Path, policy: str
) -> None:
    kafka.create(topic, cleanup_policy=policy)
    rows = values(local, "jsonl", 0)[:500]
    kafka.send_messages(topic, (message(i + 1, row) | {"key": str(i)} for i, row in enumerate(rows)))
    errors = fail(muster, local, tmp_path, kafka.url(topic))
    assert "compaction removes records of this topic" in errors
    allowed = kafka.url(topic, "?compacted=allow")
    assert f"read it with {allowed}, and begin anew with --fresh-data" in errors
    assert "compaction removes" in muster.fail("records", "ranges", kafka.url(topic))
    assert "?compacted=allow&ranges=0:0-500" in muster.run("records", "ranges", allowed)
    muster.run(*train(local, tmp_path / "m", allowed, "--epochs", 1))
    muster.run("evaluate", tmp_path / "m", "--data", kafka.url(topic))  # it is not resumed


def test_records_that_compaction_has_left_are_read(muster, kafka, topic, local, tmp_path) -> None:
    kafka.create(topic, cleanup_policy="compact", segment_ms="100", min_cleanable_dirty_ratio="0.001")
    rows = values(local, "jsonl", 0)[:500]
    kafka.send_messages(topic, ({"value": row, "key": str(i % 100)} for i, row in enumerate(rows)))
    kafka.send_messages(topic, [{"value": None, "key": "7"}])  # a deletion
    end = time.monotonic() + 120
    left = [row for i, row in enumerate(rows) if i >= 400 and i % 100 != 7]
    while [row for row in kafka.read(topic) if row is not None and row in rows] != left:
        assert time.monotonic() < end, "the topic was not compacted"
        kafka.send_messages(topic, [{"value": None, "key": "another"}])  # begins a new segment
    name = kafka.url(topic, "?compacted=allow")
    assert muster.run("records", "cat", name).encode().splitlines() == left
    (tmp_path / "left.jsonl").write_bytes(b"\n".join(left) + b"\n")
    muster.run(*train(local, tmp_path / "f", tmp_path / "left.jsonl", *IN_ORDER))
    muster.run(*train(local, tmp_path / "k", name, *IN_ORDER))
    assert weights(tmp_path / "k") == weights(tmp_path / "f")
