"""Training and prediction from a real Kafka: each committed record once, and the bytes of files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time

import pytest

from testbed.kafka.clicks import (
    IN_ORDER, PARTITIONS, ROWS, fail, files, fill, train, values, weights,
)
from testbed.kafka.cluster import Kafka
from testbed.trainings import last_checkpoint
from testbed.waiting import wait


@pytest.mark.parametrize("kind", ["csv", "jsonl", "tfrecord"])
def test_the_weights_are_those_of_files(muster, kafka, topic, local, tmp_path, kind) -> None:
    fill(kafka, topic, local, kind)
    muster.run(*train(local, tmp_path / "f", files(local, kind), *IN_ORDER))
    header = (local / "train.csv").read_text().splitlines()[0]
    flags = ("--columns", header) if kind == "csv" else ()
    muster.run(*train(local, tmp_path / "k", kafka.url(topic), *IN_ORDER, *flags))
    assert weights(tmp_path / "k") == weights(tmp_path / "f")


def test_two_workers_have_the_weights_of_two_workers_of_files(muster, kafka, topic, local, tmp_path) -> None:
    fill(kafka, topic, local, "jsonl")
    flags = (*IN_ORDER, "--workers", 2)
    muster.run(*train(local, tmp_path / "f", files(local, "jsonl"), *flags))
    muster.run(*train(local, tmp_path / "k", kafka.url(topic), *flags))
    assert weights(tmp_path / "k") == weights(tmp_path / "f")


def test_a_killed_training_continues_with_the_same_records(muster, kafka, topic, local, tmp_path) -> None:
    fill(kafka, topic, local, "jsonl")
    flags = ("--epochs", 20, "--save-steps", 200)
    ranges = muster.run("records", "ranges", kafka.url(topic)).strip()
    muster.run(*train(local, tmp_path / "whole", ranges, *flags))
    command = [muster.binary, *map(str, train(local, tmp_path / "k", kafka.url(topic), *flags))]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
        while not list((tmp_path / "k").glob("model.ckpt-[1-9]*.index")):
            time.sleep(0.01)
        run.send_signal(signal.SIGKILL)
    kafka.send(topic, values(local, "jsonl", 0)[:100])  # later records are of no training before
    muster.run(*train(local, tmp_path / "k", kafka.url(topic), *flags))
    assert last_checkpoint(tmp_path / "k") == last_checkpoint(tmp_path / "whole")
    again = muster.run(*train(local, tmp_path / "k", kafka.url(topic), "--fresh-data", "--epochs", 1))
    name, _ = last_checkpoint(tmp_path / "k")
    assert int(name.rpartition("-")[2]) == 20 * ROWS // 50 + (ROWS + 100) // 50, again


def test_aborted_transactions_and_their_marks_are_no_records(muster, kafka, topic, local, tmp_path) -> None:
    rows = values(local, "jsonl", 0)[:3000]
    kafka.create(topic)
    producer = kafka.producer(transactional_id=topic)
    producer.init_transactions(60)
    for begin in range(0, len(rows), 100):
        for commits in (False, True):
            producer.begin_transaction()
            for row in rows[begin : begin + 100] if commits else [b"{no json"] * 7:
                producer.produce(topic, row)
            assert producer.flush(60) == 0  # else what is aborted would not even be sent
            producer.commit_transaction(60) if commits else producer.abort_transaction(60)
    said = muster.run("records", "ranges", kafka.url(topic))
    assert f"ranges=0:0-{30 * (7 + 1 + 100 + 1)}" in said
    (tmp_path / "rows.jsonl").write_bytes(b"\n".join(rows) + b"\n")
    muster.run(*train(local, tmp_path / "f", tmp_path / "rows.jsonl", *IN_ORDER))
    muster.run(*train(local, tmp_path / "k", kafka.url(topic), *IN_ORDER))
    assert weights(tmp_path / "k") == weights(tmp_path / "f")


def test_predictions_are_those_of_files(muster, kafka, topic, local, tmp_path) -> None:
    fill(kafka, topic, local, "jsonl")
    muster.run(*train(local, tmp_path / "m", files(local, "jsonl"), "--max-steps", 20))
    for name, data in (("f", files(local, "jsonl")), ("k", [kafka.url(topic)])):
        muster.run("predict", tmp_path / "m", "--data", *data, "--out", tmp_path / f"{name}.csv")
    assert (tmp_path / "k.csv").read_bytes() == (tmp_path / "f.csv").read_bytes()
    muster.run("predict", tmp_path / "m", "--data", kafka.url(topic), "--out", tmp_path / "parts",
               "--workers", 2)  # fmt: skip
    parts = sorted((tmp_path / "parts").glob("part-*.csv"))
    assert len(parts) == PARTITIONS
    scored = b"".join(part.read_bytes().split(b"\n", 1)[1] for part in parts)
    assert scored == (tmp_path / "f.csv").read_bytes().split(b"\n", 1)[1]


def test_an_unknown_topic_names_near_ones(muster, kafka, topic, local, tmp_path) -> None:
    kafka.create(topic)
    errors = fail(muster, local, tmp_path, kafka.url(topic[:-1] + "x"))
    assert f"there is no topic '{topic[:-1]}x' (did you mean '{topic}'?)" in errors


def test_a_topic_without_records(muster, kafka, topic, local, tmp_path) -> None:
    kafka.create(topic)
    errors = fail(muster, local, tmp_path, kafka.url(topic))
    assert f"{kafka.url(topic)}: has no records; write some (muster records to-kafka" in errors
    assert "muster train --follow" in errors


def test_a_topic_without_records_beside_another(muster, kafka, topic, local) -> None:
    kafka.create(topic)
    kafka.create(topic + "-empty")
    kafka.send(topic, values(local, "jsonl", 0)[:50])
    both = [kafka.url(topic), kafka.url(topic + "-empty")]
    assert muster.run("records", "cat", *both) == muster.run("records", "cat", kafka.url(topic))


def test_no_broker(muster, local, tmp_path) -> None:
    errors = fail(muster, local, tmp_path, "kafka://127.0.0.1:9/clicks")
    assert "kafka://127.0.0.1:9: asking for topic clicks" in errors and "Connection refused" in errors


def test_an_undecodable_record_is_named_and_may_be_left_out(muster, kafka, topic, local, tmp_path) -> None:
    rows = values(local, "jsonl", 0)[:200]
    kafka.create(topic)
    kafka.send(topic, [*rows[:120], b'{"label": "much"}', *rows[120:]])
    errors = fail(muster, local, tmp_path, kafka.url(topic), "--no-shuffle")
    assert f"{topic}/0: offset 120: " in errors and "label" in errors
    said = muster.event("trained", *train(local, tmp_path / "m2", kafka.url(topic), "--epochs", 1,
                                          "--max-bad-records", 1, "--json"))  # fmt: skip
    assert said["bad_records"] == 1


def test_a_record_of_another_format_is_named(muster, kafka, topic, local, tmp_path) -> None:
    kafka.create(topic)
    kafka.send(topic, [*values(local, "jsonl", 0)[:120], *values(local, "csv", 0)[:9]])
    errors = fail(muster, local, tmp_path, kafka.url(topic), "--no-shuffle")
    assert f"{topic}/0: offset 120: looks like a row of CSV, but each record of the topic is read as a JSON" in errors
    assert f"as its first record is ({topic}/0: offset 0)" in errors and "--max-bad-records N" in errors


def test_what_retention_took_is_an_error(muster, kafka, topic, local, tmp_path) -> None:
    rows = values(local, "jsonl", 0)
    kafka.create(topic)
    kafka.send(topic, rows)
    ranges = muster.run("records", "ranges", kafka.url(topic)).strip()
    kafka.truncate(topic, 0, 150)
    errors = fail(muster, local, tmp_path, ranges, "--no-shuffle")
    assert f"{topic}/0: offset 0 is wanted, but the first one that is kept is 150: " in errors


def test_a_topic_that_is_deleted_while_it_is_read(muster, kafka, topic, local, tmp_path) -> None:
    fill(kafka, topic, local, "jsonl")
    command = train(local, tmp_path / "m", kafka.url(topic), "--epochs", 1000, "--save-steps", 300)
    running = subprocess.Popen([muster.binary, *map(str, command)], stderr=subprocess.PIPE, text=True)
    wait(lambda: list((tmp_path / "m").glob("model.ckpt-[1-9]*.index")), "the first steps")
    kafka.delete(topic)
    _, errors = running.communicate(timeout=60)
    assert running.returncode == 1
    assert f"the topic '{topic}' was deleted while it was read" in errors.splitlines()[-1], errors


def test_records_of_a_schema_registry(muster, kafka, topic, local, tmp_path) -> None:
    rows = values(local, "jsonl", 0)[:500]
    framing = b"\0" + (7).to_bytes(4, "big")
    kafka.create(topic)
    kafka.send(topic, [framing + row for row in rows])
    (tmp_path / "rows.jsonl").write_bytes(b"\n".join(rows) + b"\n")
    muster.run(*train(local, tmp_path / "f", tmp_path / "rows.jsonl", *IN_ORDER))
    muster.run(*train(local, tmp_path / "k", kafka.url(topic), *IN_ORDER))
    assert weights(tmp_path / "k") == weights(tmp_path / "f")
    kafka.create(topic + "-avro")
    kafka.send(topic + "-avro", [framing + b"\x02\x06abc"])
    errors = fail(muster, local, tmp_path, kafka.url(topic + "-avro"))
    assert "is framed as Avro or Protobuf of schema 7" in errors


def test_settings(muster, kafka, topic, local, tmp_path, monkeypatch) -> None:
    kafka.create(topic)
    kafka.send(topic, values(local, "jsonl", 0)[:500])
    name = kafka.url(topic)
    assert "Kafka's setting fetch.min.butes is unknown" in fail(
        muster, local, tmp_path, name, "--kafka", "fetch.min.butes=1")
    for given, missing in (("ssl", "sasl.mechanism (PLAIN, "), ("plaintext", "sasl.username and sasl.password")):
        flags = ["--kafka", f"security.protocol=SASL_{given.upper()}"]
        flags += ["--kafka", "sasl.mechanism=PLAIN"] if given == "plaintext" else []
        assert f"{flags[1]} also needs {missing}" in fail(muster, local, tmp_path, name, *flags)
    refused = muster.refuse(*train(local, tmp_path / "m", name, "--kafka", "sasl.password=secret"))
    assert "sasl.password would be seen among the processes" in refused and "=secret" not in refused
    config = tmp_path / "kafka.config"
    config.write_text("# how brokers are reached\nclient.id=tests\nsecurity.protocol=SSL\n")
    assert "chmod 600" in fail(muster, local, tmp_path, name, "--kafka-config", config)
    config.chmod(0o600)
    monkeypatch.setenv("MUSTER_KAFKA_CONFIG", str(config))
    assert "SSL" in fail(muster, local, tmp_path, name)  # the brokers have no TLS
    muster.run(*train(local, tmp_path / "m", name, "--max-steps", 5, "--kafka", "security.protocol=plaintext"))


def test_tasks_of_other_launchers_need_ranges(muster, kafka, topic, local, tmp_path) -> None:
    kafka.create(topic)
    kafka.send(topic, values(local, "jsonl", 0)[:500])
    cluster = {"cluster": {"chief": ["127.0.0.1:1"]}, "task": {"type": "chief", "index": 0}}
    command = ["worker", *train(local, tmp_path / "m", kafka.url(topic), "--max-steps", 5)[1:]]
    refused = muster.call(*command, env={**os.environ, "TF_CONFIG": json.dumps(cluster)})
    assert refused.returncode == 2
    assert f"muster records ranges {kafka.url(topic)} prints them" in refused.stderr


@pytest.mark.parametrize("kind", ["csv", "jsonl", "tfrecord"])
def test_files_are_written_to_a_topic(muster, kafka, topic, local, kind) -> None:
    kafka.create(topic, PARTITIONS)
    said = muster.event("written", "records", "to-kafka", *files(local, kind), "--to", kafka.url(topic), "--json")
    assert (said["records"], said["partitions"]) == (ROWS, PARTITIONS)
    wanted = [row for part in range(PARTITIONS) for row in values(local, kind, part)]
    for partition in range(PARTITIONS):
        assert kafka.read(topic, partition) == wanted[partition::PARTITIONS]
    shown = muster.run("records", "cat", kafka.url(topic), "--limit", 5)
    assert shown == muster.run("records", "cat", kafka.url(topic, "?ranges=0:0-5"))
    if kind == "tfrecord":
        assert json.loads(shown.splitlines()[0])["label"] in ([0], [1])
    else:
        assert shown.encode().splitlines() == wanted[: 5 * PARTITIONS : PARTITIONS]


def test_a_writer_that_is_killed_has_written_nothing(muster, kafka, topic, local, tmp_path) -> None:
    kafka.create(topic)
    many = tmp_path / "many.jsonl"
    with open(many, "wb") as file:
        for _ in range(100):
            for row in values(local, "jsonl", 0):
                file.write(row + b"\n")
    command = [muster.binary, "records", "to-kafka", str(many), "--to", kafka.url(topic), "--transaction", "load"]
    with subprocess.Popen(command) as run:
        kafka.wait_for_messages(topic, 1000)
        run.send_signal(signal.SIGKILL)
    muster.run("records", "to-kafka", local / "part-0.jsonl", "--to", kafka.url(topic), "--transaction", "load")
    assert kafka.read(topic, 0) == values(local, "jsonl", 0)


def test_a_later_writer_of_a_transaction_ends_the_earlier_one(muster, kafka, topic, local, tmp_path) -> None:
    kafka.create(topic)
    fast = local / "part-0.jsonl"
    many = tmp_path / "many.jsonl"
    many.write_bytes(fast.read_bytes() * 200)
    command = [muster.binary, "records", "to-kafka", str(many), "--to", kafka.url(topic), "--transaction", "load"]
    first = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    kafka.wait_for_messages(topic, 1000)
    first.send_signal(signal.SIGSTOP)
    muster.run("records", "to-kafka", fast, "--to", kafka.url(topic), "--transaction", "load")
    first.send_signal(signal.SIGCONT)
    _, errors = first.communicate(timeout=60)
    assert first.returncode == 1
    assert "another writer with this transaction id has begun, and this one ends" in errors
    assert kafka.read(topic, 0) == values(local, "jsonl", 0)


def test_a_topic_is_not_made_by_writing(muster, kafka, topic, local) -> None:
    errors = muster.fail("records", "to-kafka", local / "part-0.jsonl", "--to", kafka.url(topic))
    assert f"there is no topic '{topic}'" in errors


def test_cells_without_names(muster, kafka, topic, local, tmp_path) -> None:
    kafka.create(topic)
    kafka.send(topic, values(local, "csv", 0)[:50])
    errors = fail(muster, local, tmp_path, kafka.url(topic))
    assert f"{topic}/0: offset 0: is a row of CSV, which has no header" in errors


def test_statistics_of_a_topic(muster, kafka, topic, local) -> None:
    fill(kafka, topic, local, "jsonl")
    flags = ("--spec", local / "model.yaml", "--json")
    assert muster.run("records", "stats", kafka.url(topic), *flags) == muster.run(
        "records", "stats", *files(local, "jsonl"), *flags)  # fmt: skip
