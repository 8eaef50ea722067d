"""muster.tfos on a standalone cluster of two workers, whose executors are killed."""

from __future__ import annotations

import os
import pathlib
import threading
import time
from typing import Any, Callable, Iterator

import pytest

from muster.tfos import TFCluster
from testbed import daemons
from testbed.spark import executors, sessions
from testbed.spark.cluster import SparkCluster
from testbed.waiting import wait

DEADLINE = 180.0


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    for cluster in daemons.run(SparkCluster(tmp_path_factory.mktemp("spark"))):
        for session in sessions.running(cluster.master, spark__cores__max=2):
            status = session.sparkContext._jsc.sc().getExecutorMemoryStatus
            wait(lambda: status().size() == 3, "the driver and two executors")
            yield session


@pytest.fixture
def run(spark: Any) -> Iterator[Callable[..., Any]]:
    """Starts clusters of two workers, which end with the test."""
    clusters = []

    def start(program: Any, folder: pathlib.Path, mode: int) -> Any:
        clusters.append(TFCluster.run(spark.sparkContext, program, str(folder), 2, 0, input_mode=mode))
        return clusters[-1]

    yield start
    for cluster in clusters:
        cluster.stop()


def started(folder: pathlib.Path, index: int, tries: int) -> list[pathlib.Path]:
    """The files that a program of the node has made at its starts, with its pid."""
    found = sorted(path for path in folder.glob(f"start-{index}-*") if path.read_text())
    return found if len(found) >= tries else []


def start_file(folder: str, index: int) -> int:
    """Writes such a file; returns how many there were."""
    number = len(list(pathlib.Path(folder).glob(f"start-{index}-*")))
    pathlib.Path(folder, f"start-{index}-{number}").write_text(str(os.getpid()))
    return number


def test_an_executor_that_is_lost(run: Any, tmp_path: pathlib.Path) -> None:
    def program(args: Any, ctx: Any) -> None:
        start_file(args, ctx.task_index)
        while not pathlib.Path(args, "go").exists():
            time.sleep(0.05)

    cluster = run(program, tmp_path, TFCluster.InputMode.TENSORFLOW)
    for index in range(2):
        wait(lambda index=index: started(tmp_path, index, 1), f"worker {index}")
    executors.kill(int(started(tmp_path, 1, 1)[0].read_text()))
    for index in range(2):
        wait(lambda index=index: started(tmp_path, index, 2), f"another worker {index}")
    (tmp_path / "go").touch()
    cluster.shutdown(timeout=DEADLINE)


@pytest.mark.parametrize("rows_before", [1000, 10_000], ids=["while it is fed", "after the feed"])
def test_an_executor_that_is_lost_with_rows(
    spark: Any, run: Any, tmp_path: pathlib.Path, rows_before: int
) -> None:
    def program(args: Any, ctx: Any) -> None:
        starts = start_file(args, ctx.task_index)
        feed, rows = ctx.get_data_feed(), []
        while not feed.should_stop():
            rows += feed.next_batch(10)
            if starts == 0 and len(rows) == rows_before:
                pathlib.Path(args, f"fed-{ctx.task_index}").touch()
                time.sleep(600)  # until it is ended because another one is lost
        pathlib.Path(args, f"rows-{ctx.task_index}").write_text("\n".join(map(str, rows)))

    def kill() -> None:
        for index in range(2):
            wait((tmp_path / f"fed-{index}").exists, f"rows of worker {index}")
        executors.kill(int(started(tmp_path, 1, 1)[0].read_text()))

    cluster = run(program, tmp_path, TFCluster.InputMode.SPARK)

    def beside_the_other(index: int, rows: Iterator[int]) -> Iterator[int]:
        """Begins when both partitions have an executor, so that each worker is fed."""
        (tmp_path / f"partition-{index}").touch()
        wait((tmp_path / f"partition-{1 - index}").exists, "the other partition")
        return rows

    thread = threading.Thread(target=kill)
    thread.start()
    rows = spark.sparkContext.parallelize(range(20_000), 2).mapPartitionsWithIndex(beside_the_other)
    cluster.train(rows, 1)
    cluster.shutdown(timeout=DEADLINE)
    thread.join()
    found = [int(line) for path in tmp_path.glob("rows-*") for line in path.read_text().split()]
    assert sorted(found) == list(range(20_000))
    assert started(tmp_path, 0, 2) and started(tmp_path, 1, 2)
