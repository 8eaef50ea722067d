"""What a node's program is given: `ctx`."""

from __future__ import annotations

import json
import os
import socket
import sys
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence

from muster.spark.place import task_gpus
from muster.tfos import TFManager, TFNode, board, gpus, reservation, util


class TFNodeContext:
    """A node's place in its cluster, and what it can do there. Attributes are TensorFlowOnSpark's."""

    def __init__(
        self,
        executor_id: int = 0,
        job_name: str = "",
        task_index: int = 0,
        cluster_spec: Optional[Dict[str, List[str]]] = None,
        defaultFS: str = "file://",
        working_dir: str = ".",
        mgr: Any = None,
        tmp_socket: Optional[socket.socket] = None,
    ) -> None:
        self.worker_num = executor_id  # its older name
        self.executor_id = executor_id
        self.job_name = job_name
        self.task_index = task_index
        self.cluster_spec = cluster_spec or {}
        training = (self.cluster_spec.get(name, []) for name in ("master", "chief", "worker"))
        self.num_workers = sum(map(len, training))
        self.defaultFS = defaultFS
        self.working_dir = working_dir
        self.mgr = mgr
        self.tmp_socket = tmp_socket

    def absolute_path(self, path: str) -> str:
        return TFNode.hdfs_path(self, path)

    def start_cluster_server(self, num_gpus: int = 1, rdma: bool = False) -> Any:
        return TFNode.start_cluster_server(self, num_gpus, rdma)

    def export_saved_model(
        self, sess: Any, export_dir: str, tag_set: str, signatures: Mapping[str, Mapping[str, Any]]
    ) -> None:
        TFNode.export_saved_model(sess, export_dir, tag_set, signatures)

    def get_data_feed(
        self,
        train_mode: bool = True,
        qname_in: str = "input",
        qname_out: str = "output",
        input_mapping: Optional[Mapping[str, str]] = None,
    ) -> TFNode.DataFeed:
        return TFNode.DataFeed(self.mgr, train_mode, qname_in, qname_out, input_mapping)

    def release_port(self) -> None:
        TFNode.release_port(self)


def run(
    fn: Any, tf_args: Any, cluster_meta: Mapping[str, Any], tensorboard: bool, log_dir: Optional[str],
    queues: Sequence[str], background: bool,
) -> Callable[[Iterable[int]], List[Any]]:  # fmt: skip
    """For RDD.mapPartitions over executor ids: a node in a task of Spark, which ends with fn(tf_args, ctx).

    For programs that make clusters of their own; TFCluster.run() does more. cluster_meta: server_addr, of a
    reservation.Server, by which nodes find each other; cluster_template, {job name: executor ids};
    default_fs, working_dir and release_port. Raises ValueError with background.
    """
    if background:
        raise ValueError("background: only TFCluster.run(input_mode=InputMode.SPARK) has nodes beside tasks")

    def run_node(numbers: Iterable[int]) -> List[Any]:
        executor_id = list(numbers)[-1]
        template = cluster_meta["cluster_template"]
        job_name = next(job for job, ids in template.items() if executor_id in ids)
        task_index = template[job_name].index(executor_id)
        held = hold_port(0)
        tensorboard_here = tensorboard and executor_id == _board_node(template)
        shown = board.start(log_dir, executor_id) if tensorboard_here else None
        try:
            info = {
                "executor_id": executor_id, "host": util.get_ip_address(), "job_name": job_name,
                "task_index": task_index, "port": held.getsockname()[1],
                "tb_pid": shown.pid if shown else 0, "tb_port": shown.port if shown else 0,
            }  # fmt: skip
            cluster = _get_cluster_spec(_meet(cluster_meta["server_addr"], info))
            set_tf_config(cluster, job_name, task_index)
            given = task_gpus() if _has_spark_resource_api() else []
            chosen = gpus.visible(gpus.wanted(tf_args), given, cluster, job_name, task_index)
            os.environ["CUDA_VISIBLE_DEVICES"] = chosen
            ctx = TFNodeContext(
                executor_id, job_name, task_index, cluster, cluster_meta["default_fs"],
                cluster_meta["working_dir"], TFManager.start(b"", queues), held,
            )  # fmt: skip
            if cluster_meta.get("release_port", True):
                ctx.release_port()
            if isinstance(tf_args, list):
                sys.argv = tf_args
            fn(tf_args, ctx)
        finally:
            held.close()
            if shown is not None:
                shown.end()
        return []

    return run_node


def _board_node(template: Mapping[str, List[int]]) -> Optional[int]:
    """The executor id of the node beside which TensorBoard runs."""
    ids = (template[job][0] for job in ("worker", "chief", "master") if template.get(job))
    return next(ids, None)


def _meet(server: Any, info: Dict[str, Any]) -> List[Dict[str, Any]]:
    """Reports to the server; returns what all nodes have reported, in the order of executor_id."""
    client = reservation.Client(server)
    try:
        if not any(node["executor_id"] == info["executor_id"] for node in client.get_reservations()):
            client.register(info)
        return sorted(client.await_reservations(), key=lambda node: int(node["executor_id"]))
    finally:
        client.close()


def _get_cluster_spec(nodes: Sequence[Mapping[str, Any]]) -> Dict[str, List[str]]:
    spec: Dict[str, List[str]] = {}
    for node in nodes:
        spec.setdefault(node["job_name"], []).append(f"{node['host']}:{node['port']}")
    return spec


def _has_spark_resource_api() -> bool:
    """Whether tasks can ask Spark for what they were given."""
    from pyspark import TaskContext

    return hasattr(TaskContext, "resources")


def set_tf_config(cluster: Mapping[str, List[str]], job_name: str, task_index: int) -> None:
    """TF_CONFIG of a cluster that has a chief or master; no other one has it."""
    if "chief" in cluster or "master" in cluster:
        task = {"type": job_name, "index": task_index}
        os.environ["TF_CONFIG"] = json.dumps({"cluster": cluster, "task": task, "environment": "cloud"})
    else:
        os.environ.pop("TF_CONFIG", None)


def hold_port(port: int) -> socket.socket:
    """A socket at the port, or a free one for 0, beside others that share it: servers without SO_REUSEADDR
    fail there."""
    held = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("", port))
    return held
