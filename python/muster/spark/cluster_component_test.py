"""muster.spark on a standalone cluster of two workers: speculation, and executors that are killed."""

from __future__ import annotations

import os
import pathlib
import signal
import time
from typing import Any, Iterator

import pytest
from pyspark import TaskContext

from muster.spark import MusterEstimator, read_tfrecords, write_tfrecords
from testbed import daemons
from testbed.spark import sessions
from testbed.spark.cluster import SparkCluster

PAIR = """
inputs: {x: float, y: int}
label: y
columns: {x: {numeric: x}}
model: {type: linear, linear: {columns: [x]}}
"""


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


def left(folder: pathlib.Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_speculative_task_repeats_nothing(spark: Any, tmp_path: pathlib.Path) -> None:
    tries = tmp_path / "tries"
    tries.mkdir()

    def slow(batches: Iterator[Any]) -> Iterator[Any]:
        context = TaskContext.get()
        (tries / f"{context.partitionId()}-{context.attemptNumber()}").touch()
        for batch in batches:
            yield batch
        # The first attempt of one task waits until another one was started.
        end = time.monotonic() + 60
        while context.partitionId() == 3 and context.attemptNumber() == 0 and time.monotonic() < end:
            if (tries / "3-1").exists():
                time.sleep(1)  # and is then about as late as that one
                break
            time.sleep(0.05)

    df = spark.range(0, 4000, 1, 4).mapInArrow(slow, "id long")
    done = write_tfrecords(df, tmp_path / "data")
    assert (tries / "3-1").exists(), "Spark has not speculated"
    assert (done.rows, done.files) == (4000, 4)
    ids = [row.id for row in read_tfrecords(spark, tmp_path / "data").collect()]
    assert sorted(ids) == list(range(4000))
    assert left(tmp_path) == ["data", "tries"]


def test_an_executor_that_is_killed_repeats_nothing(spark: Any, tmp_path: pathlib.Path) -> None:
    killed = tmp_path / "killed"

    def kill(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            yield batch
        if TaskContext.get().partitionId() == 2 and not killed.exists():
            killed.touch()
            stat = pathlib.Path(f"/proc/{os.getppid()}/stat").read_text()
            os.kill(int(stat.rpartition(")")[2].split()[1]), signal.SIGKILL)  # the executor's JVM
            time.sleep(60)

    df = spark.range(0, 4000, 1, 4).mapInArrow(kill, "id long")
    assert write_tfrecords(df, tmp_path / "data").rows == 4000
    ids = [row.id for row in read_tfrecords(spark, tmp_path / "data").collect()]
    assert sorted(ids) == list(range(4000))
    assert left(tmp_path) == ["data", "killed"]


def test_fit_and_transform(spark: Any, tmp_path: pathlib.Path) -> None:
    df = spark.range(0, 200, 1, 4).selectExpr("id", "id % 10 / 10D as x", "int(id % 10 > 4) as y")
    with pytest.raises(ValueError, match="staging is needed with Spark's master spark://"):
        MusterEstimator(model=PAIR).fit(df)
    model = MusterEstimator(model=PAIR, staging=str(tmp_path)).fit(df)
    assert sorted(row.id for row in model.transform(df).collect()) == list(range(200))
    assert left(tmp_path) == []
