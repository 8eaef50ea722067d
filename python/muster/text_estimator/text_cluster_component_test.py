"""TextEstimator's TFoS mode: the tasks of a job, what each reads, and what happens when one is killed."""

from __future__ import annotations

import json
import os
import pathlib
import queue
import signal
import time
from typing import Any, Iterator

import pytest

from muster.binary import MusterError
from muster.text_estimator import TextEstimator
from muster.text_estimator.cluster import Roles, find_roles
from testbed.spark import sessions

ROWS = 1001


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    yield from sessions.running("local[3,3]")


def train(args: Any = {}, ctx: Any = None, _read_data: Any = None) -> Any:
    """A map_fun that writes down what it reads. Parameter servers stay, as those of TensorFlow do."""
    params = args["params"]["fitParam"][0]
    ids = [row["id"] for batch in _read_data(max_records=params["batch_size"]) for row in batch]
    folder = pathlib.Path(params["folder"])
    name = f"{ctx.job_name}-{ctx.task_index}"
    said = {"ids": ids, "number": ctx.executor_id, "workers": ctx.num_workers, "args": sorted(args),
            "roles": {role: len(tasks) for role, tasks in ctx.cluster_spec.items()}}  # fmt: skip
    (folder / (name + ".writing")).write_text(json.dumps(said))
    (folder / (name + ".writing")).rename(folder / (name + ".json"))
    if params.get("die") == name and not (folder / "died").exists():
        (folder / "died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if params.get("fail") == name:
        raise RuntimeError("no convergence")
    end = time.monotonic() + 120
    while ctx.job_name == "ps" and time.monotonic() < end:
        time.sleep(0.1)
    return name


def feed(args: Any = {}, ctx: Any = None, _read_data: Any = None) -> Any:
    """A map_fun of TensorFlowOnSpark."""
    if ctx.job_name == "ps":
        return None
    named = ctx.get_data_feed(input_mapping={"id": "x"}).next_batch(2)
    rows, sizes = ctx.get_data_feed(train=True), []
    while not rows.should_stop() and len(sizes) < 30:
        sizes.append(len(rows.next_batch(100)))
    return named, sizes, ctx.absolute_path("hdfs://a/b")


def raw_feed(args: Any = {}, ctx: Any = None, _read_data: Any = None) -> Any:
    """What TFNode.DataFeed(ctx.mgr) does in next_batch, and in terminate after 5 rows."""
    rows, ids = ctx.mgr.get_queue("input"), []
    for _ in range(5):
        ids.append(rows.get(block=True)["id"])
        rows.task_done()
    ctx.mgr.set("state", "terminating")
    try:
        rows.get(block=True, timeout=5)
    except queue.Empty:
        return ids, ctx.mgr.get("state"), ctx.get_data_feed().should_stop(), ctx.mgr.get_queue("output").qsize()


def fit(spark: Any, tmp_path: pathlib.Path, map_fun: Any = train, **params: Any) -> Any:
    where = {"topic": "test", "group_id": "g", "test_mode": True, "mock_kafka_file": str(tmp_path / "mock")}
    sets = [{"batch_size": 10, "folder": str(tmp_path), **params}]
    made = TextEstimator(kafkaParam=where, fitParam=sets, runningMode="TFoS", mapFnParam=map_fun)
    return made.fit(spark.range(0, ROWS, 1, 2)).collect()[0][1]


def said_by(folder: pathlib.Path, name: str) -> Any:
    return json.loads((folder / f"{name}.json").read_text())


def test_workers_share_the_rows(spark: Any, tmp_path: pathlib.Path) -> None:
    result = fit(spark, tmp_path, cluster_size=3, num_ps=1, master_node="chief")
    assert result == "chief-0"
    chief, worker, ps = (said_by(tmp_path, name) for name in ("chief-0", "worker-0", "ps-0"))
    assert sorted(chief["ids"] + worker["ids"]) == list(range(ROWS))
    assert (len(chief["ids"]), len(worker["ids"]), ps["ids"]) == (500, 501, [])
    assert chief["roles"] == {"chief": 1, "ps": 1, "worker": 1}
    assert [said["number"] for said in (ps, chief, worker)] == [0, 1, 2]
    assert chief["workers"] == 2
    assert {"params", "cluster_size", "num_ps", "tensorboard", "batch_size"} <= set(chief["args"])


def test_a_worker_that_is_killed_reads_its_share_again(spark: Any, tmp_path: pathlib.Path) -> None:
    assert fit(spark, tmp_path, die="worker-1") == "worker-0"  # as many tasks as slots: 2 workers, 1 ps
    shares = [said_by(tmp_path, f"worker-{index}")["ids"] for index in (0, 1)]
    assert (tmp_path / "died").exists()
    assert sorted(shares[0] + shares[1]) == list(range(ROWS))


def test_the_feed_of_tensorflowonspark(spark: Any, tmp_path: pathlib.Path) -> None:
    named, sizes, path = fit(spark, tmp_path, feed, cluster_size=2, epochs=2)
    assert named == {"x": [0, 1]} and path == "hdfs://a/b"
    assert sizes == [100] * 20  # of 2002, without the first two
    assert fit(spark, tmp_path, raw_feed, cluster_size=1) == ([0, 1, 2, 3, 4], "terminating", True, 0)


def test_a_map_fun_that_fails(spark: Any, tmp_path: pathlib.Path) -> None:
    with pytest.raises(MusterError, match="failed.*\n(.*\n)*RuntimeError: no convergence"):
        fit(spark, tmp_path, cluster_size=1, fail="worker-0")


def test_roles(spark: Any) -> None:
    assert find_roles(spark, {}) == Roles(2, 1, False)  # of 3 slots
    assert find_roles(spark, {"cluster_size": 1}) == Roles(1, 0, False)
    assert find_roles(spark, {"cluster_size": 2, "num_ps": 1, "master_node": "chief"}) == Roles(0, 1, True)
    with pytest.raises(ValueError, match="at least one task must be a worker"):
        find_roles(spark, {"cluster_size": 2, "num_ps": 2})
    with pytest.raises(ValueError, match="master_node 'master'"):
        find_roles(spark, {"master_node": "master"})
