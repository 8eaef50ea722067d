"""TextEstimator on a standalone cluster with a real Kafka: speculation, and executors that are killed."""

from __future__ import annotations

import os
import pathlib
import signal
import time
from typing import Any, Iterator

import pytest
from pyspark import TaskContext

from muster.text_estimator import TextEstimator, writing
from muster.text_estimator.topic import Topic, fresh
from testbed import daemons
from testbed.kafka.cluster import Kafka
from testbed.kafka.fixtures import kafka, topic
from testbed.spark import sessions
from testbed.spark.cluster import SparkCluster

__all__ = ["kafka", "topic"]
ROWS = 4000


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    yield from daemons.run(SparkCluster(tmp_path_factory.mktemp("spark")))


@pytest.fixture(scope="module")
def spark(cluster: SparkCluster) -> Iterator[Any]:
    yield from sessions.running(
        cluster.master, spark__speculation="true", spark__speculation__multiplier="1.1",
        spark__speculation__quantile="0.4", spark__speculation__interval="50ms",
        spark__speculation__minTaskRuntime="100ms", spark__cores__max=2,
    )  # fmt: skip


def kill_executor() -> None:
    """Kills the JVM of this Python worker, and waits to end with it."""
    stat = pathlib.Path(f"/proc/{os.getppid()}/stat").read_text()
    os.kill(int(stat.rpartition(")")[2].split()[1]), signal.SIGKILL)
    time.sleep(60)


def test_a_speculative_task_repeats_nothing(spark: Any, kafka: Kafka, topic: str, tmp_path: pathlib.Path) -> None:
    def slow(batches: Iterator[Any]) -> Iterator[Any]:
        context = TaskContext.get()
        (tmp_path / f"{context.partitionId()}-{context.attemptNumber()}").touch()
        for batch in batches:
            yield batch
        # The first attempt of one task waits until another one was started.
        end = time.monotonic() + 60
        while context.partitionId() == 3 and context.attemptNumber() == 0 and time.monotonic() < end:
            if (tmp_path / "3-1").exists():
                time.sleep(1)  # and is then about as late as that one
                break
            time.sleep(0.05)

    rows = spark.range(0, ROWS, 1, 4).mapInArrow(slow, "id long")
    data = writing.write(rows, fresh(Topic(kafka.brokers, topic)))
    assert (tmp_path / "3-1").exists(), "Spark has not speculated"
    assert [row.id for batch in data.read() for row in batch] == list(range(ROWS))


def test_executors_that_are_killed(spark: Any, kafka: Kafka, topic: str, tmp_path: pathlib.Path) -> None:
    """One while it writes, and one while it runs a trial."""

    def write(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            yield batch
        if TaskContext.get().partitionId() == 2 and not (tmp_path / "writer").exists():
            (tmp_path / "writer").touch()
            kill_executor()

    def read(args: Any = {}, ctx: Any = None, _read_data: Any = None) -> Any:
        ids = []
        for batch in _read_data():
            ids += [row["id"] for row in batch]
            if args["params"]["fitParam"]["dies"] and not (tmp_path / "trial").exists():
                (tmp_path / "trial").touch()
                kill_executor()
        return ids

    where = {"bootstrap_servers": kafka.brokers, "topic": topic, "group_id": "g"}
    sets = [{"dies": True}, {"dies": False}]
    rows = spark.range(0, ROWS, 1, 4).mapInArrow(write, "id long")
    model = TextEstimator(kafkaParam=where, fitParam=sets, mapFnParam=read).fit(rows)
    assert (tmp_path / "writer").exists() and (tmp_path / "trial").exists()
    assert model.collect() == [(params, list(range(ROWS))) for params in sets]
