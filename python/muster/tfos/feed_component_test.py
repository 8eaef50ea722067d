"""muster.tfos.TFCluster with rows that Spark sends: InputMode.SPARK."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import time
from typing import Any, Iterator

import numpy as np
import pytest

from muster.binary import MusterError
from muster.tfos import TFCluster, reservation
from testbed import documents
from testbed.spark import sessions
from testbed.spark.fixtures import spark
from testbed.waiting import wait

__all__ = ["spark"]
DEADLINE = 180.0


def run(spark: Any, program: Any, args: Any, **arguments: Any) -> TFCluster.TFCluster:
    arguments = {"num_executors": 2, "num_ps": 0, **arguments}
    return TFCluster.run(
        spark.sparkContext, program, args, input_mode=TFCluster.InputMode.SPARK, **arguments
    )


def keep(args: Any, ctx: Any) -> None:
    """Writes the rows that this node gets to a file, which is there when all is done."""
    feed = ctx.get_data_feed()
    path = pathlib.Path(args) / f"{ctx.job_name}-{ctx.task_index}"
    with open(path.with_suffix(".tmp"), "w") as file:
        while not feed.should_stop():
            for row in feed.next_batch(100):
                file.write(f"{row}\n")
    time.sleep(1)  # an export after the feed
    path.with_suffix(".tmp").rename(path)


def square(args: Any, ctx: Any) -> None:
    feed = ctx.get_data_feed(train_mode=False)
    while not feed.should_stop():
        feed.batch_results([row * row for row in feed.next_batch(30)])


def rows_in(folder: pathlib.Path) -> list[int]:
    files = [path for path in folder.iterdir() if path.suffix != ".tmp"]
    return sorted(int(line) for path in files for line in path.read_text().split())


def failed_tasks(spark: Any) -> int:
    """How many attempts of Spark's tasks have failed in this session."""
    tracker = spark.sparkContext.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(None)]
    stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
    return sum(stage.numFailedTasks for stage in stages if stage)


def test_training(spark: Any, tmp_path: pathlib.Path) -> None:
    cluster = run(spark, keep, str(tmp_path), master_node="chief")
    # Partitions of different sizes, an empty one too; two epochs.
    rdd = spark.sparkContext.parallelize(range(10_000), 7).filter(lambda n: not 2000 < n < 5000)
    cluster.train(rdd, num_epochs=2)
    cluster.shutdown()
    kept = [n for n in range(10_000) if not 2000 < n < 5000]
    assert rows_in(tmp_path) == sorted(kept * 2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["chief-0", "worker-0"]


def test_a_task_that_fails_repeats_nothing(spark: Any, tmp_path: pathlib.Path) -> None:
    (tmp_path / "rows").mkdir()

    def broken(rows: Iterator[int]) -> Iterator[int]:
        for number, row in enumerate(rows):
            if number == 4000 and row == 9000 and not (tmp_path / "failed").exists():
                (tmp_path / "failed").touch()
                os.kill(os.getpid(), signal.SIGKILL)  # this Python worker
            yield row

    cluster = run(spark, keep, str(tmp_path / "rows"))
    cluster.train(spark.sparkContext.parallelize(range(10_000), 2).mapPartitions(broken), num_epochs=1)
    cluster.shutdown()
    assert (tmp_path / "failed").exists()
    assert rows_in(tmp_path / "rows") == list(range(10_000))


def keep_columns(args: Any, ctx: Any) -> None:
    """Writes the column `id` of what this node gets to a file, and checks another one against it."""
    feed, ids = ctx.get_data_feed(), []
    columns = feed.next_columns(300)
    while columns:
        assert (columns["pair"] == columns["id"][:, None] * [1.0, 0.5]).all()
        assert columns["text"].tolist() == [f"n{n}" for n in columns["id"]]
        ids += columns["id"].tolist()
        columns = feed.next_columns(300)
    (pathlib.Path(args) / f"{ctx.job_name}-{ctx.task_index}").write_text("\n".join(map(str, ids)))


def test_columns_of_a_dataframe(spark: Any, tmp_path: pathlib.Path) -> None:
    """A Python worker is killed when it has fed half of a partition; partitions are uneven, one is empty."""
    (tmp_path / "rows").mkdir()

    def broken(batches: Iterator[Any]) -> Iterator[Any]:
        for number, batch in enumerate(batches):
            if number == 20 and not (tmp_path / "failed").exists():
                (tmp_path / "failed").touch()
                os.kill(os.getpid(), signal.SIGKILL)
            yield batch

    table = spark.range(0, 10_000, 1, 4).filter("id < 4000 or id > 7500")
    table = table.selectExpr("id", "array(id * 1.0D, id * 0.5D) as pair", "concat('n', id) as text")
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", 50)
    try:
        cluster = run(spark, keep_columns, str(tmp_path / "rows"))
        cluster.train(table.mapInArrow(broken, table.schema), num_epochs=2)
        cluster.shutdown()
    finally:
        spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    assert (tmp_path / "failed").exists()
    kept = [n for n in range(10_000) if n < 4000 or n > 7500]
    assert rows_in(tmp_path / "rows") == sorted(kept * 2)


def test_a_program_that_has_enough_columns(spark: Any, tmp_path: pathlib.Path) -> None:
    def program(args: Any, ctx: Any) -> None:
        feed = ctx.get_data_feed(input_mapping={"id": "number"})
        numbers = feed.next_columns(500)["number"].tolist()
        (pathlib.Path(args) / str(ctx.task_index)).write_text("\n".join(map(str, numbers)))
        feed.terminate()

    cluster = run(spark, program, str(tmp_path))
    cluster.train(spark.range(0, 2_000_000, 1, 8))
    cluster.shutdown()
    assert len(set(rows_in(tmp_path))) == 1000


def test_an_error_while_columns_are_under_way(spark: Any) -> None:
    def program(args: Any, ctx: Any) -> None:
        ctx.get_data_feed(input_mapping={"other": "x"}).next_columns(10)

    cluster, before = run(spark, program, None), failed_tasks(spark)
    with pytest.raises(MusterError, match="no column 'other'; it has: id"):
        cluster.train(spark.range(0, 10_000_000, 1, 4), 1)
    assert failed_tasks(spark) == before  # each would fill the log of Spark, four times


def test_the_page_about_columns(tmp_path: pathlib.Path) -> None:
    blocks = documents.blocks_of("docs/tensorflowonspark.md")
    (block,) = [block for block in blocks if block.file == "columns.py"]
    (tmp_path / "columns.py").write_text(block.text)
    spark_submit = pathlib.Path(sys.executable).with_name("spark-submit")
    done = subprocess.run(
        [str(spark_submit), "--master", sessions.RETRYING, "--conf", "spark.ui.enabled=false", "columns.py", "."],
        cwd=tmp_path, timeout=300, env={**os.environ, "PYTHONPATH": sessions.PYTHONPATH},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    for number in range(2):
        weights = np.load(tmp_path / f"worker-{number}.npy")
        assert weights == pytest.approx([3.0, -2.0], abs=0.01)


def test_inference(spark: Any) -> None:
    cluster = run(spark, square, None)
    rdd = spark.sparkContext.parallelize(range(1000), 5)
    results = cluster.inference(rdd)
    assert results.collect() == [n * n for n in range(1000)]
    assert results.sum() == sum(n * n for n in range(1000))  # a second time
    assert cluster.inference(rdd.filter(lambda n: n > 900)).count() == 99
    assert results.take(3) == [0, 1, 4]  # the rest is given up
    assert results.count() == 1000
    cluster.shutdown()


def test_an_error_while_rows_are_under_way(spark: Any) -> None:
    def program(args: Any, ctx: Any) -> None:
        ctx.get_data_feed().next_batch(10)
        raise ValueError("this column has no numbers")

    cluster, before = run(spark, program, None), failed_tasks(spark)
    start = time.monotonic()
    with pytest.raises(MusterError, match="ValueError: this column has no numbers"):
        cluster.train(spark.sparkContext.parallelize(range(1_000_000), 4), 1)
    assert failed_tasks(spark) == before
    assert time.monotonic() - start < 60  # and not after the feed's timeout of 600 s


def test_an_error_after_the_feed(spark: Any) -> None:
    def program(args: Any, ctx: Any) -> None:
        square(args, ctx)
        raise ValueError("the export has failed")

    cluster = run(spark, program, None, num_executors=1)
    assert cluster.inference(spark.sparkContext.parallelize(range(10), 1)).count() == 10
    with pytest.raises(MusterError, match="ValueError: the export has failed"):
        cluster.shutdown()


def test_a_program_that_hangs(spark: Any) -> None:
    def program(args: Any, ctx: Any) -> None:
        ctx.get_data_feed().next_batch(10)
        time.sleep(600)

    cluster = run(spark, program, None, num_executors=1)
    try:
        with pytest.raises(MusterError, match="no progress for 10 s .feed_timeout.: worker-0 has taken 10 of"):
            cluster.train(spark.sparkContext.parallelize(range(1000), 1), 1, feed_timeout=10)
    finally:
        with pytest.raises(TimeoutError):
            cluster.shutdown(timeout=1)


def test_a_program_that_has_enough(spark: Any, tmp_path: pathlib.Path) -> None:
    def program(args: Any, ctx: Any) -> None:
        feed = ctx.get_data_feed()
        batch = feed.next_batch(500)
        (pathlib.Path(args) / str(ctx.task_index)).write_text("\n".join(map(str, batch)))
        feed.terminate()

    cluster = run(spark, program, str(tmp_path))
    cluster.train(spark.sparkContext.parallelize(range(20_000), 8))
    cluster.shutdown()
    assert len(rows_in(tmp_path)) == 1000


def test_a_node_that_is_killed_gets_the_feed_from_its_beginning(spark: Any, tmp_path: pathlib.Path) -> None:
    def program(args: Any, ctx: Any) -> None:
        folder = pathlib.Path(args)
        mark = folder / f"{ctx.task_index}.pid"
        first = not mark.exists()
        mark.write_text(str(os.getpid()))
        feed, rows = ctx.get_data_feed(), []
        while not feed.should_stop():
            rows += feed.next_batch(10)
            if first and len(rows) >= 1000:
                time.sleep(600)
        (folder / str(ctx.task_index)).write_text("\n".join(map(str, rows)))

    cluster = run(spark, program, str(tmp_path))
    marks = [tmp_path / f"{index}.pid" for index in range(2)]
    wait(lambda: all(mark.exists() and mark.read_text() for mark in marks), "programs")
    pid = int(marks[1].read_text())
    before = {node["addr"] for node in cluster.cluster_info}

    def kill(rows: Iterator[int]) -> Iterator[int]:
        """Once half of its rows are out, nodes wait: one of them is lost."""
        for number, row in enumerate(rows):
            if number == 4000 and row == 4000 and not (tmp_path / "killed").exists():
                (tmp_path / "killed").touch()
                os.kill(pid, signal.SIGKILL)
            yield row

    cluster.train(spark.sparkContext.parallelize(range(10_000), 2).mapPartitions(kill), 1)
    # A task that was sent to the nodes before does not reach those that came in their places.
    assert before.isdisjoint(node["addr"] for node in cluster.cluster_info)
    cluster.shutdown()
    (tmp_path / "killed").unlink()
    for mark in marks:
        mark.unlink()
    assert rows_in(tmp_path) == list(range(10_000))


def test_a_stream(spark: Any, tmp_path: pathlib.Path) -> None:
    from pyspark.streaming import StreamingContext

    def program(args: Any, ctx: Any) -> None:
        feed = ctx.get_data_feed()
        rows = feed.next_batch(150)
        feed.terminate()  # which ends the stream
        (pathlib.Path(args) / "rows").write_text("\n".join(map(str, rows)))

    streaming = StreamingContext(spark.sparkContext, 1)
    batches = [spark.sparkContext.parallelize(range(n, n + 100), 2) for n in (0, 100, 200)]
    cluster = run(spark, program, str(tmp_path), num_executors=1)
    cluster.train(streaming.queueStream(batches), feed_timeout=60)
    streaming.start()
    cluster.shutdown(ssc=streaming, timeout=DEADLINE)
    rows = rows_in(tmp_path)
    assert rows[:100] == list(range(100))
    assert len(set(rows)) == 150 and set(rows) < set(range(200))


def test_a_stream_ends_when_a_program_outside_asks(spark: Any, tmp_path: pathlib.Path) -> None:
    from pyspark.streaming import StreamingContext

    def program(args: Any, ctx: Any) -> None:
        feed = ctx.get_data_feed()
        while not feed.should_stop():
            rows = feed.next_batch(10)
            with open(pathlib.Path(args) / "rows", "a") as file:
                file.write("".join(f"{row}\n" for row in rows))

    streaming = StreamingContext(spark.sparkContext, 1)
    batches = [spark.sparkContext.parallelize(range(n, n + 10), 2) for n in (0, 10)]
    cluster = run(spark, program, str(tmp_path), num_executors=1)
    cluster.train(streaming.queueStream(batches), feed_timeout=60)
    streaming.start()
    wait(lambda: (tmp_path / "rows").exists() and len(rows_in(tmp_path)) == 20, "all rows")
    client = reservation.Client(cluster.cluster_meta["server_addr"])
    client.request_stop()
    client.close()
    cluster.shutdown(ssc=streaming, timeout=DEADLINE)
    assert rows_in(tmp_path) == list(range(20))


def test_what_a_feed_needs(spark: Any) -> None:
    cluster = run(spark, square, None, num_executors=1)
    with pytest.raises(ValueError, match="no queue 'other' among input, output, error"):
        cluster.train(None, qname="other")
    with pytest.raises(ValueError, match="negative"):
        cluster.train(None, -1)
    cluster.shutdown()
    with pytest.raises(ValueError, match="need InputMode.TENSORFLOW"):
        run(spark, square, None, eval_node=True)
