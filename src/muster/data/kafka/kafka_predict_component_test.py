"""Predictions from a topic into a topic: each record's prediction once, whatever is killed."""

from __future__ import annotations

import json
import pathlib
import signal
import subprocess
import time
from typing import Iterator

import pytest

from testbed.daemons import run
from testbed.kafka.clicks import PARTITIONS, files, train, values
from testbed.kafka.cluster import Kafka
from testbed.kafka.secure import SecureKafka
from testbed.muster import Muster


@pytest.fixture(scope="module")
def model(muster: Muster, local: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = pathlib.Path(tmp_path_factory.mktemp("trained")) / "model"
    muster.run(*train(local, folder, files(local, "jsonl"), "--max-steps", 20))
    return folder


@pytest.fixture
def secure(tmp_path: pathlib.Path) -> Iterator[SecureKafka]:
    (tmp_path / "broker").mkdir()
    yield from run(SecureKafka(tmp_path / "broker"))


def fill(kafka: Kafka, topic: str, local: pathlib.Path, times: int = 1) -> None:
    """A topic whose messages have keys, but each 10th, and one without messages for the predictions."""
    kafka.create(topic, PARTITIONS)
    kafka.create(f"{topic}-out", PARTITIONS)
    for part in range(PARTITIONS):
        rows = enumerate(values(local, "jsonl", part) * times)
        messages = ({"value": row, "key": None if i % 10 == 0 else f"{part}-{i}"} for i, row in rows)
        kafka.send_messages(topic, messages, part)


def predict(kafka: Kafka, topic: str, model: pathlib.Path, *flags: object) -> list[object]:
    return ["predict", model, "--data", kafka.url(topic), "--out", kafka.url(f"{topic}-out"),
            "--group", f"group-{topic}", *flags]  # fmt: skip


def predicted(muster: Muster, local: pathlib.Path, model: pathlib.Path, tmp_path: pathlib.Path) -> list[list[dict]]:
    """By partition: the predictions of the records in files, without their numbers."""
    rows = []
    for part in range(PARTITIONS):
        out = tmp_path / f"part-{part}.jsonl"
        muster.run("predict", model, "--data", local / f"part-{part}.jsonl", "--out", out)
        rows.append([json.loads(line) for line in out.read_text().splitlines()])
        for row in rows[-1]:
            del row["row"]
    return rows


def check_each_once(kafka: Kafka, topic: str, wanted: list[list[dict]], times: int = 1) -> None:
    for part in range(PARTITIONS):
        messages = kafka.read_messages(f"{topic}-out", part)
        rows = [json.loads(message.value()) for message in messages]
        assert [row.pop("record") for row in rows] == [f"{topic}/{part}:{i}" for i in range(len(wanted[part]) * times)]
        assert rows == wanted[part] * times
        keys = [None if i % 10 == 0 else f"{part}-{i}".encode() for i in range(len(rows))]
        assert [message.key() for message in messages] == keys


def test_predictions_have_the_keys_of_their_records(muster, kafka, topic, local, model, tmp_path) -> None:
    fill(kafka, topic, local)
    said = muster.event("predicted", *predict(kafka, topic, model, "--json"))
    wanted = predicted(muster, local, model, tmp_path)
    assert said["examples"] == sum(map(len, wanted))
    check_each_once(kafka, topic, wanted)
    assert "Predicted 0 examples in" in muster.run(*predict(kafka, topic, model))
    kafka.send(topic, values(local, "jsonl", 1)[:7], 1)  # what has come since is predicted
    said = muster.event("predicted", *predict(kafka, topic, model, "--json"))
    assert said["examples"] == 7
    assert [json.loads(row)["record"] for row in kafka.read(f"{topic}-out", 1)[-7:]] == [
        f"{topic}/1:{len(wanted[1]) + i}" for i in range(7)]  # fmt: skip


def test_a_killed_prediction_continues_and_each_record_is_predicted_once(
    muster, kafka, topic, local, model, tmp_path
) -> None:
    times = 10
    fill(kafka, topic, local, times)
    wanted = predicted(muster, local, model, tmp_path)
    whole = sum(map(len, wanted)) * times
    command = [muster.binary, *map(str, predict(kafka, topic, model, "--batch-size", 16))]
    seen = 0
    for _ in range(3):
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as running:
            end = time.monotonic() + 120
            while (now := sum(kafka.count(f"{topic}-out", part) for part in range(PARTITIONS))) <= seen:
                assert running.poll() is None and time.monotonic() < end, running.communicate()
            running.send_signal(signal.SIGKILL)
        seen = now
    assert seen < whole, "all was predicted before a process was killed"
    muster.run(*predict(kafka, topic, model))
    check_each_once(kafka, topic, wanted, times)


def test_bad_records_aborted_ones_and_deletions_have_no_prediction(muster, kafka, topic, local, model, tmp_path) -> None:
    rows = values(local, "jsonl", 0)[:100]
    for name in (topic, f"{topic}-out"):
        kafka.create(name)
    messages = [{"value": row, "key": f"0-{i}"} for i, row in enumerate(rows)]
    messages[30] = {"value": b'{"I1": "much"}', "key": "bad"}
    messages[60] = {"value": None, "key": "deleted"}
    kafka.send_messages(topic, messages)
    producer = kafka.producer(transactional_id=topic)
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(topic, rows[0], key="aborted")
    assert producer.flush(60) == 0
    producer.abort_transaction(60)
    assert f"{topic}/0: offset 30: " in muster.fail(*predict(kafka, topic, model))
    rejects = tmp_path / "rejects.jsonl"
    flags = ("--max-bad-records", 1, "--rejects", rejects, "--json")
    said = muster.event("predicted", *predict(kafka, topic, model, *flags))
    assert (said["examples"], said["bad_records"]) == (98, 1)
    assert json.loads(rejects.read_text())["where"] == f"{topic}/0: offset 30"
    written = kafka.read_messages(f"{topic}-out")
    wanted = [i for i in range(100) if i not in (30, 60)]
    assert [message.key() for message in written] == [f"0-{i}".encode() for i in wanted]
    assert [json.loads(message.value())["record"] for message in written] == [f"{topic}/0:{i}" for i in wanted]
    assert "Predicted 0 examples in" in muster.run(*predict(kafka, topic, model))  # the group is at the end


def test_the_key_of_a_message_can_be_the_key_of_the_model(muster, kafka, topic, local, tmp_path) -> None:
    fill(kafka, topic, local)
    keyed, model = tmp_path / "keyed.yaml", tmp_path / "m"
    text = (local / "model.yaml").read_text()
    keyed.write_text(text.replace("{label: int,", '{user: {type: string, default: ""}, label: int,') + "\nkey: user\n")
    muster.run("train", keyed, "--train", kafka.url(topic, "?key=user"), "--model-dir", model, "--max-steps", 5)
    command = predict(kafka, topic, model)
    command[command.index(kafka.url(topic))] = kafka.url(topic, "?key=user")
    muster.run(*command)
    for message in kafka.read_messages(f"{topic}-out", 1):
        assert json.loads(message.value())["user"] == (message.key() or b"").decode()


def start(kafka: Kafka, topic: str, command: list[object], muster: Muster) -> subprocess.Popen[str]:
    """Starts a prediction, and returns when some of it is committed."""
    running = subprocess.Popen([muster.binary, *map(str, command)],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # fmt: skip
    end = time.monotonic() + 120
    while kafka.count(f"{topic}-out") == 0:
        assert running.poll() is None and time.monotonic() < end, running.communicate()
    return running


def test_a_later_prediction_of_a_group_ends_the_earlier_one(muster, kafka, topic, local, model, tmp_path) -> None:
    times = 10
    fill(kafka, topic, local, times)
    first = start(kafka, topic, predict(kafka, topic, model, "--batch-size", 16), muster)
    first.send_signal(signal.SIGSTOP)
    muster.run(*predict(kafka, topic, model))
    first.send_signal(signal.SIGCONT)
    _, errors = first.communicate(timeout=120)
    assert first.returncode == 1
    assert "another writer with this transaction id has begun, and this one ends" in errors
    check_each_once(kafka, topic, predicted(muster, local, model, tmp_path), times)


def test_a_broker_that_dies_during_a_prediction_is_waited_for(muster, local, model, tmp_path) -> None:
    times = 10
    (tmp_path / "broker").mkdir()
    for kafka in run(Kafka(tmp_path / "broker")):
        fill(kafka, "visits", local, times)
        running = start(kafka, "visits", predict(kafka, "visits", model, "--batch-size", 16), muster)
        kafka.kill(0)
        kafka.start_broker(0)
        _, errors = running.communicate(timeout=180)
        assert running.returncode == 0, errors
        check_each_once(kafka, "visits", predicted(muster, local, model, tmp_path), times)


def test_a_broker_of_version_4(muster, local, model, tmp_path) -> None:
    (tmp_path / "broker").mkdir()
    for kafka in run(Kafka(tmp_path / "broker", version="4.1.1")):
        fill(kafka, "visits", local)
        muster.run(*predict(kafka, "visits", model))
        check_each_once(kafka, "visits", predicted(muster, local, model, tmp_path))


def test_workers_take_the_partitions_in_turn(muster, kafka, topic, local, model, tmp_path) -> None:
    fill(kafka, topic, local)
    command = predict(kafka, topic, model, "--workers", 2)
    wanted = predicted(muster, local, model, tmp_path)
    task = muster.event("predicted", *command, "--task", 1, "--json")
    assert task["examples"] == len(wanted[1])
    muster.run(*command)
    check_each_once(kafka, topic, wanted)


def test_csv_has_no_header_and_the_key_of_the_model(muster, kafka, topic, local, tmp_path) -> None:
    model = tmp_path / "m"
    keyed = tmp_path / "keyed.yaml"
    keyed.write_text((local / "model.yaml").read_text() + "\nkey: C1\n")
    muster.run("train", keyed, "--train", *files(local, "jsonl"), "--model-dir", model, "--max-steps", 5)
    fill(kafka, topic, local)
    muster.run(*predict(kafka, topic, model, "--format", "csv"))
    muster.run("predict", model, "--data", local / "part-0.jsonl", "--out", tmp_path / "out.csv")
    assert kafka.read(f"{topic}-out") == (tmp_path / "out.csv").read_bytes().splitlines()[1:]


def test_what_cannot_be_written_is_named(muster, kafka, topic, local, model, tmp_path) -> None:
    fill(kafka, topic, local)
    command = ["predict", model, "--data", kafka.url(topic), "--group", "g", "--out"]
    assert f"there is no topic '{topic}-uot' (did you mean '{topic}-out'?)" in muster.fail(
        *command, kafka.url(f"{topic}-uot"))  # fmt: skip
    assert "is the topic of --data" in muster.refuse(*command, kafka.url(topic))
    assert "needs --group NAME" in muster.refuse(*command[:4], "--out", kafka.url(f"{topic}-out"))
    assert "none; predict into a file" in muster.refuse(
        "predict", model, "--data", local / "part-0.jsonl", "--group", "g", "--out", kafka.url(topic))  # fmt: skip
    assert "give --format jsonl, csv or tfrecord" in muster.fail(*predict(kafka, topic, model, "--format", "batches"))


def test_permissions_of_a_prediction(muster, secure, local, model, tmp_path) -> None:
    fill(secure, "visits", local)
    config = ("--kafka-config", secure.config(tmp_path / "kafka.config"))
    command = predict(secure, "visits", model, *config)
    secure.allow("visits", "READ", "DESCRIBE")
    assert "the user needs Read on the group" in muster.fail(
        *train(local, tmp_path / "f", secure.url("visits"), "--follow", "--follow-group", "lag", *config))  # fmt: skip
    secure.allow("visits-out", "DESCRIBE")
    assert "Write and Describe on the transactional id" in muster.fail(*command)
    secure.allow_transactions("muster-")
    assert "the user needs Read on the group" in muster.fail(*command)
    secure.allow_group("group-visits")
    errors = muster.fail(*command)
    assert "writing to topic visits-out" in errors, errors
    assert "the user needs Write and Describe on it" in errors, errors
    secure.allow("visits-out", "WRITE")
    muster.run(*command)
    check_each_once(secure, "visits", predicted(muster, local, model, tmp_path))
