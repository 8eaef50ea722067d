"""TextEstimator on a real Kafka: each row once, whatever Spark repeats, and the known faults of its model."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import threading
import time
from typing import Any, Iterator

import pytest
from confluent_kafka import KafkaException, TopicPartition
from pyspark import TaskContext
from pyspark.sql import types

from muster.binary import MusterError
from muster.text_estimator import TextEstimator, writing
from muster.text_estimator.ranges import Range
from muster.text_estimator.reading import Data
from muster.text_estimator.topic import Topic, fresh
from testbed.kafka.cluster import Kafka
from testbed.kafka.fixtures import kafka, topic
from testbed.spark.fixtures import spark

__all__ = ["kafka", "spark", "topic"]
ROWS = 3000
DEADLINE = 120.0


def read_ids(args: Any = {}, ctx: Any = None, _read_data: Any = None) -> Any:
    """A map_fun: all ids, twice, as two epochs."""
    threads = args["params"]["fitParam"].get("threads", 1)
    return [[row["id"] for batch in _read_data(64, threads) for row in batch] for _ in range(2)]


def estimator(kafka: Kafka, topic: str, sets: Any, map_fun: Any = read_ids, **more: Any) -> TextEstimator:
    where = {"bootstrap_servers": kafka.brokers.split(","), "topic": topic, "group_id": "g", **more}
    return TextEstimator(kafkaParam=where, fitParam=sets, mapFnParam=map_fun)


def test_a_topic_that_is_not_there(kafka: Kafka) -> None:
    with pytest.raises(MusterError, match="nothing: there is no such topic"):
        Topic(kafka.brokers, "nothing").read_end()


def test_trials_do_not_share_the_rows(spark: Any, kafka: Kafka, topic: str) -> None:
    """The model's trials have one group id, and split the rows between them."""
    sets = [{"rate": 0.1}, {"rate": 0.2}]
    model = estimator(kafka, topic, sets).fit(spark.range(0, ROWS, 1, 3))
    assert [params for params, _ in model.collect()] == sets
    assert [found for _, found in model.collect()] == [[list(range(ROWS))] * 2] * 2
    groups = kafka.admin().list_consumer_groups().result(60)
    assert [group.group_id for group in groups.valid] == []


def test_each_fit_has_a_topic(spark: Any, kafka: Kafka, topic: str) -> None:
    made = estimator(kafka, topic, [{}])
    first, second = (made.fit(spark.range(0, size)) for size in (10, 20))
    assert first.topic != second.topic and first.topic.startswith(topic + "_")
    assert [len(model.collect()[0][1][0]) for model in (first, second)] == [10, 20]
    again = estimator(kafka, first.topic, [{}], reuse_topic=True).fit(spark.range(0, 5))
    assert again.topic == first.topic and again.collect() == first.collect()
    removed = estimator(kafka, topic, [{}], delete_topic=True).fit(spark.range(0, 5))
    names = set(kafka.admin().list_topics(timeout=30).topics)
    assert {first.topic, second.topic} <= names and removed.topic not in names


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_several_consumers_end(spark: Any, kafka: Kafka, topic: str, threads: int) -> None:
    """Each consumer of the model counts the marks of all partitions, and waits for those that another took."""
    rows = spark.range(0, ROWS, 1, 4).filter("id < 750 or id > 1500")  # a partition is almost empty
    model = estimator(kafka, topic, [{"threads": threads}]).fit(rows.filter("id < 2250"))
    wanted = sorted(row.id for row in rows.filter("id < 2250").collect())
    assert [sorted(ids) for ids in model.collect()[0][1]] == [wanted] * 2


def test_the_tail_is_there(spark: Any, kafka: Kafka, topic: str) -> None:
    """The model's consumers leave what comes with, or after, the last mark."""

    def sizes(args: Any = {}, ctx: Any = None, _read_data: Any = None) -> Any:
        return [[len(batch) for batch in _read_data(size)] for size in (1, 64, 100, 101, 102)]

    model = estimator(kafka, topic, [{}], sizes).fit(spark.range(0, 101, 1, 3))
    assert model.collect()[0][1] == [[1] * 101, [64, 37], [100, 1], [101], [101]]


def hand_written(kafka: Kafka, topic: str, values: list[bytes], schema: Any) -> None:
    """A topic as a fit writes it, with these records."""
    kafka.create(topic, 2)
    kafka.send(topic, values, 1)
    end = {"ranges": [Range(1, 0, len(values))], "schema": json.loads(schema.json())}
    kafka.send(topic, [json.dumps(end)], 0)


def test_bad_records_are_named(spark: Any, kafka: Kafka, topic: str) -> None:
    """The model leaves them out and says nothing."""
    rows = spark.range(0, 1)
    values = [b'{"id": 1}', b'{"id": "x"}', b'{"id": 2}', b"\xff\x80", b'{"id": 3}']
    hand_written(kafka, topic, values, rows.schema)
    where = {"topic": topic, "reuse_topic": True}
    with pytest.raises(MusterError, match=f"BadRecord: {topic}/1: offset 1: is no row: 'x' is no int"):
        estimator(kafka, sets=[{}], **where).fit(rows)
    with pytest.raises(MusterError, match=f"BadRecord: {topic}/1: offset 3: is no row: "):
        estimator(kafka, sets=[{}], max_bad_records=1, **where).fit(rows)
    model = estimator(kafka, sets=[{}, {"threads": 3}], max_bad_records=2, **where).fit(rows)
    assert [sorted(found[0]) for _, found in model.collect()] == [[1, 2, 3]] * 2


def test_a_topic_that_is_not_whole(spark: Any, kafka: Kafka, topic: str) -> None:
    kafka.create(topic, 2)
    kafka.send(topic, [b'{"id": 1}'], 1)
    with pytest.raises(MusterError, match="has no end record, which a fit writes after its last row"):
        estimator(kafka, topic, [{}], reuse_topic=True).fit(spark.range(0, 1))


def ids_of(data: Any) -> list[int]:
    return [row.id for batch in data.read() for row in batch]


def test_a_task_that_fails_while_it_writes(spark: Any, kafka: Kafka, topic: str) -> None:
    def fail_once(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            yield batch
        if TaskContext.get().attemptNumber() < 2 and TaskContext.get().partitionId() == 1:
            if TaskContext.get().attemptNumber() == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            raise RuntimeError("lost")

    rows = spark.range(0, ROWS, 1, 3).mapInArrow(fail_once, "id long")
    data = writing.write(rows, fresh(Topic(kafka.brokers, topic)))
    assert ids_of(data) == list(range(ROWS))


def test_a_task_that_fails_when_it_has_written(spark: Any, kafka: Kafka, topic: str) -> None:
    """Its rows are committed, but Spark does not know it, and writes them again."""
    where = fresh(Topic(kafka.brokers, topic))
    rows = spark.range(0, ROWS, 1, 3)
    written = writing.written_by_tasks(rows, where)
    where.create(3)

    def lose(results: Iterator[Any]) -> Iterator[Any]:
        found = list(results)
        if TaskContext.get().attemptNumber() == 0:
            raise RuntimeError("lost")
        return iter(found)

    data = writing.end(where, written.mapPartitions(lose).collect(), rows.schema)
    assert len(kafka.read(where.name, 2)) == 2 * ROWS / 3
    assert ids_of(data) == list(range(ROWS))
    assert writing.read_end(where) == data


def wait_for_messages(kafka: Kafka, name: str, count: int) -> None:
    """Until the partition of rows has so many, committed or not."""
    consumer, end, last = kafka.consumer(committed=False), time.monotonic() + DEADLINE, "nothing"
    while time.monotonic() < end:
        try:
            found = consumer.get_watermark_offsets(TopicPartition(name, 1), 30)[1]
            if found >= count:
                consumer.close()
                return
            last = f"{found} messages"
        except KafkaException as error:  # the topic is so new that its leader is not known yet
            last = str(error)
        time.sleep(0.05)
    raise AssertionError(f"{name} has not got {count} messages: {last}")


def test_an_earlier_attempt_adds_nothing(kafka: Kafka, topic: str) -> None:
    """As when Spark takes an executor for lost, and it is not: two attempts of one task write at once."""
    where = fresh(Topic(kafka.brokers, topic))
    where.create(1)
    begun, fenced = threading.Event(), threading.Event()
    errors: list[BaseException] = []

    def late() -> Iterator[str]:
        yield from ('{"id": 1}',) * 10
        wait_for_messages(kafka, where.name, 10)
        begun.set()
        assert fenced.wait(DEADLINE)
        yield from ('{"id": 2}',) * 10

    def write() -> None:
        try:
            where.write(1, late())
        except BaseException as error:
            errors.append(error)

    earlier = threading.Thread(target=write)
    earlier.start()
    assert begun.wait(DEADLINE), errors
    found = where.write(1, ['{"id": 3}'] * 5)
    fenced.set()
    earlier.join(2 * DEADLINE)
    assert not earlier.is_alive()
    assert [type(error) for error in errors] == [MusterError] and "fenced" in str(errors[0])
    assert [event["record"] for event in where.records([found])] == ['{"id": 3}'] * 5
    assert kafka.read(where.name, 1) == [b'{"id": 3}'] * 5


def test_a_partition_of_several_transactions(kafka: Kafka, topic: str, monkeypatch: Any) -> None:
    monkeypatch.setattr("muster.text_estimator.topic._TRANSACTION_SECONDS", 0.0)
    where = fresh(Topic(kafka.brokers, topic))
    where.create(1)
    found = where.write(1, [str(number) for number in range(5)])
    assert found == Range(1, 0, 9)  # with the marks between them
    assert kafka.read(where.name, 1) == [b"0", b"1", b"2", b"3", b"4"]


def test_brokers_that_are_not_there(spark: Any, topic: str, monkeypatch: Any) -> None:
    monkeypatch.setattr("muster.text_estimator.topic._REACH_SECONDS", 2.0)
    made = TextEstimator(
        kafkaParam={"bootstrap_servers": "127.0.0.1:9", "topic": topic}, mapFnParam=read_ids
    )
    with pytest.raises(MusterError, match="kafka://127.0.0.1:9/.*: no broker of 127.0.0.1:9 has answered within 2 s"):
        made.fit(spark.range(3))


def readers(name: str) -> list[str]:
    """Processes that read the topic."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().decode().split("\0")
        except (OSError, UnicodeDecodeError):
            continue
        if "cat" in words and any(f"/{name}?" in word for word in words):
            found.append(entry.name)
    return found


@pytest.mark.parametrize("threads", [1, 3])
def test_a_reader_that_stops_early_leaves_no_process(kafka: Kafka, topic: str, threads: int) -> None:
    where = fresh(Topic(kafka.brokers, topic))
    where.create(1)
    found = where.write(1, ('{"id": %d}' % number for number in range(50_000)))
    schema = types.StructType().add("id", "long").json()
    read = Data(where, [found], schema).read(10, threads)
    assert len(next(read)) == 10
    assert len(readers(where.name)) == threads
    read.close()
    assert readers(where.name) == []
