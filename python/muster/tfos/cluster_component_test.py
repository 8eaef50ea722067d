"""muster.tfos.TFCluster with programs that read their data themselves."""

from __future__ import annotations

import json
import os
import pathlib
import threading
import time
from typing import Any

import pytest

from muster.binary import MusterError
from muster.tfos import TFCluster
from testbed.spark.fixtures import spark
from testbed.waiting import wait

__all__ = ["spark"]


def describe(args: Any, ctx: Any) -> None:
    """Writes what the node was given."""
    found = {
        "executor_id": ctx.executor_id,
        "worker_num": ctx.worker_num,
        "num_workers": ctx.num_workers,
        "cluster_spec": ctx.cluster_spec,
        "default_fs": ctx.defaultFS,
        "path": ctx.absolute_path("data"),
        "socket": ctx.tmp_socket is not None,
        "tf_config": os.environ.get("TF_CONFIG"),
    }
    path = pathlib.Path(args["folder"]) / f"{ctx.job_name}-{ctx.task_index}"
    path.with_suffix(".tmp").write_text(json.dumps(found))
    path.with_suffix(".tmp").rename(path)


def test_nodes_of_a_cluster_with_a_chief(spark: Any, tmp_path: pathlib.Path) -> None:
    cluster = TFCluster.run(
        spark.sparkContext, describe, {"folder": str(tmp_path)}, num_executors=2, num_ps=0, master_node="chief"
    )
    assert [(node["executor_id"], node["job_name"]) for node in cluster.cluster_info] == [
        (0, "chief"), (1, "worker"),
    ]  # fmt: skip
    assert cluster.tensorboard_url() is None
    cluster.shutdown()
    chief, worker = (json.loads((tmp_path / name).read_text()) for name in ("chief-0", "worker-0"))
    assert chief["cluster_spec"] == worker["cluster_spec"]
    addresses = [f"{node['host']}:{node['port']}" for node in cluster.cluster_info]
    assert chief["cluster_spec"] == {"chief": addresses[:1], "worker": addresses[1:]}
    assert (worker["executor_id"], worker["worker_num"], worker["num_workers"]) == (1, 1, 2)
    assert json.loads(worker["tf_config"]) == {
        "cluster": worker["cluster_spec"], "task": {"type": "worker", "index": 0}, "environment": "cloud",
    }  # fmt: skip
    assert worker["default_fs"] == "file://"
    assert worker["path"] == f"file://{os.getcwd()}/data"
    assert not worker["socket"]
    assert spark.range(0, 100, 1, 4).count() == 100  # Spark has its slots again


def test_nodes_without_a_chief_have_no_tf_config(spark: Any, tmp_path: pathlib.Path) -> None:
    args = {"folder": str(tmp_path)}
    TFCluster.run(spark.sparkContext, describe, args, num_executors=1, num_ps=0).shutdown()
    worker = json.loads((tmp_path / "worker-0").read_text())
    assert worker["tf_config"] is None
    assert list(worker["cluster_spec"]) == ["worker"]


def test_parameter_servers_end_with_the_workers(spark: Any, tmp_path: pathlib.Path) -> None:
    def program(args: Any, ctx: Any) -> None:
        folder = pathlib.Path(args)
        (folder / f"{ctx.job_name}-{ctx.executor_id}").touch()
        while ctx.job_name == "ps" or not (folder / "ps-0").exists():
            time.sleep(0.1)

    TFCluster.run(spark.sparkContext, program, str(tmp_path), num_executors=2, num_ps=1).shutdown()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ps-0", "worker-1"]


def test_parameter_servers_on_the_driver_take_no_slot(spark: Any, tmp_path: pathlib.Path) -> None:
    def program(args: Any, ctx: Any) -> None:
        (pathlib.Path(args) / f"{ctx.job_name}-{ctx.executor_id}").touch()
        while ctx.job_name == "ps":
            time.sleep(0.1)

    cluster = TFCluster.run(  # in two slots
        spark.sparkContext, program, str(tmp_path), num_executors=3, num_ps=1, driver_ps_nodes=True
    )
    cluster.shutdown()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ps-0", "worker-1", "worker-2"]


def test_an_error_of_a_program_reaches_the_driver(spark: Any) -> None:
    def program(args: Any, ctx: Any) -> None:
        if ctx.task_index == 1:
            print("a last line", flush=True)
            raise ValueError("this column has no numbers")
        while True:  # the other node would never end
            time.sleep(0.1)

    cluster = TFCluster.run(spark.sparkContext, program, None, num_executors=2, num_ps=0)
    with pytest.raises(MusterError, match="(?s)worker-1.*a last line.*ValueError: this column has no numbers") as caught:
        cluster.shutdown()
    assert "node_process.py" not in str(caught.value)


def test_a_node_that_is_killed_is_started_again(spark: Any, tmp_path: pathlib.Path) -> None:
    def program(args: Any, ctx: Any) -> None:
        folder = pathlib.Path(args)
        tries = len(list(folder.glob(f"{ctx.task_index}-*")))
        (folder / f"{ctx.task_index}-{tries}").write_text(str(os.getpid()))
        while not (folder / "1-1").exists():
            time.sleep(0.05)

    cluster = TFCluster.run(spark.sparkContext, program, str(tmp_path), num_executors=2, num_ps=0)
    os.kill(int(wait(lambda: (tmp_path / "1-0").exists() and (tmp_path / "1-0").read_text(), "a pid")), 9)
    cluster.shutdown()
    # Nodes that know each other by their sockets start again together.
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0-0", "0-1", "1-0", "1-1"]


def test_a_port_is_held_until_it_is_released(spark: Any) -> None:
    def program(args: Any, ctx: Any) -> None:
        import socket

        port = ctx.tmp_socket.getsockname()[1]
        assert ctx.cluster_spec["chief"] == [f"127.0.0.1:{port}"]
        with socket.socket() as other:
            try:
                other.bind(("0.0.0.0", port))
            except OSError:
                pass
            else:
                raise AssertionError("another server could have taken the port")
        ctx.release_port()
        assert ctx.tmp_socket is None
        with socket.create_server(("", port)):
            pass

    cluster = TFCluster.run(
        spark.sparkContext, program, [], num_executors=1, num_ps=0, master_node="chief", release_port=False
    )
    cluster.shutdown()


def test_a_node_that_does_not_come_is_named(spark: Any, tmp_path: pathlib.Path) -> None:
    with pytest.raises(MusterError, match=r"after 0 s \(reservation_timeout\).*chief-0, worker-0; Spark has"):
        TFCluster.run(
            spark.sparkContext, describe, {"folder": str(tmp_path)}, num_executors=2, num_ps=0,
            master_node="chief", reservation_timeout=0,
        )  # fmt: skip
    assert spark.range(0, 100, 1, 4).count() == 100


def test_a_program_that_does_not_end(spark: Any) -> None:
    def program(args: Any, ctx: Any) -> None:
        while True:
            time.sleep(0.1)

    cluster = TFCluster.run(spark.sparkContext, program, [], num_executors=1, num_ps=0)
    with pytest.raises(TimeoutError):
        cluster.shutdown(timeout=1)
    assert spark.range(0, 100, 1, 4).count() == 100


def test_clusters_that_cannot_be(spark: Any) -> None:
    def start(**arguments: Any) -> Any:
        return TFCluster.run(spark.sparkContext, describe, {}, **arguments)

    with pytest.raises(ValueError, match="3 tasks, but Spark's executors have 2 slots"):
        start(num_executors=3, num_ps=0)
    with pytest.raises(ValueError, match="a worker or a master_node"):
        start(num_executors=1, num_ps=1)
    with pytest.raises(ValueError, match="1 ps, 1 master and 0 evaluator needs more than num_executors=1"):
        start(num_executors=1, num_ps=1, master_node="chief")
    with pytest.raises(ValueError, match="'chief' or 'master'"):
        start(num_executors=1, num_ps=0, master_node="boss")
    with pytest.raises(ValueError, match="cannot be sent to executors: "):
        TFCluster.run(spark.sparkContext, describe, threading.Lock(), num_executors=1, num_ps=0)
