"""For the program of a node: its feed of rows, paths and, in TensorFlow 1, servers and exports."""

from __future__ import annotations

import getpass
import logging
import os
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

from muster.tfos import arrow_batches
from muster.tfos.arrow_batches import View
from muster.tfos.marker import EndFeed, EndPartition

logger = logging.getLogger(__name__)

# The schemes of Hadoop's file systems; gs, abfs and the rest of the newer ones as well.
_SCHEMES = (
    "abfs://", "abfss://", "adl://", "file://", "gs://", "hdfs://", "oss://", "s3://", "s3a://",
    "s3n://", "swift://", "viewfs://", "wasb://", "wasbs://",
)  # fmt: skip


def hdfs_path(ctx: Any, path: str) -> str:
    """An absolute path with its scheme, of a path that may lack either.

    A relative one begins in the user's folder of HDFS or, with file://, where the driver was started.
    """
    if path.startswith(_SCHEMES):
        return path
    root: str = ctx.defaultFS
    if path.startswith("/"):
        return root + path
    if root.startswith(("hdfs://", "viewfs://")):
        return f"{root}/user/{getpass.getuser()}/{path}"
    if root.startswith("file://"):
        return f"{root}/{ctx.working_dir[1:]}/{path}"
    logger.warning("a relative path in a file system of an unknown scheme, %s: %s", root, path)
    return f"{root}/{path}"


def start_cluster_server(ctx: Any, num_gpus: int = 1, rdma: bool = False) -> Any:
    """(ClusterSpec, Server) of TensorFlow 1, or of tf.compat.v1 in TensorFlow 2."""
    import tensorflow

    v1 = tensorflow.compat.v1
    if num_gpus == 0:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    cluster = v1.train.ClusterSpec(ctx.cluster_spec)
    ctx.release_port()
    protocol = "grpc+verbs" if rdma else "grpc"
    server = v1.train.Server(cluster, ctx.job_name, ctx.task_index, protocol=protocol)
    return cluster, server


def export_saved_model(
    sess: Any, export_dir: str, tag_set: str, signatures: Mapping[str, Mapping[str, Any]]
) -> None:
    """Writes a session's graph and variables as a SavedModel.

    tag_set: tags, separated by commas. signatures: by key {"inputs": {alias: tensor}, "outputs":
    {alias: tensor}, "method_name": name}; without method_name it is the key.
    """
    import tensorflow

    v1 = tensorflow.compat.v1
    graph = sess.graph
    graph._unsafe_unfinalize()  # a supervised session has finalized it, and the builder adds nodes
    builder = v1.saved_model.builder.SavedModelBuilder(export_dir)

    def infos(tensors: Mapping[str, Any]) -> Dict[str, Any]:
        return {alias: v1.saved_model.utils.build_tensor_info(t) for alias, t in tensors.items()}

    made = {
        key: v1.saved_model.signature_def_utils.build_signature_def(
            inputs=infos(each["inputs"]), outputs=infos(each["outputs"]),
            method_name=each.get("method_name", key),
        )
        for key, each in signatures.items()
    }  # fmt: skip
    builder.add_meta_graph_and_variables(
        sess, tag_set.split(","), signature_def_map=made, clear_devices=True
    )
    graph.finalize()
    builder.save()


def release_port(ctx: Any) -> None:
    """Frees the node's port for a server that does not share it (release_port=False of run())."""
    if ctx.tmp_socket is not None:
        ctx.tmp_socket.close()
        ctx.tmp_socket = None


class DataFeed:
    """The rows that TFCluster.train() or inference() sends to this node."""

    def __init__(
        self,
        mgr: Any,
        train_mode: bool = True,
        qname_in: str = "input",
        qname_out: str = "output",
        input_mapping: Optional[Mapping[str, str]] = None,
    ) -> None:
        """train_mode: False if rows have results; then no batch has rows of two partitions.

        input_mapping: {column: tensor}; batches are then {tensor: list of values}. Columns of a DataFrame
        that was fed go by their names; those of any other row are in the order of the names.
        """
        self.mgr = mgr
        self.train_mode = train_mode
        self.qname_in = qname_in
        self.qname_out = qname_out
        self.done_feeding = False
        self.input_tensors: Optional[List[str]] = None
        self._columns: List[str] = []
        if input_mapping is not None:
            self.input_tensors = [tensor for _, tensor in sorted(input_mapping.items())]
            self._columns = sorted(input_mapping)
        self.queue_in = _queue(mgr, qname_in)
        self.queue_out = _queue(mgr, qname_out)

    def next_batch(self, batch_size: int) -> Union[List[Any], Dict[str, List[Any]]]:
        """Waits for so many rows; fewer where the feed, or a partition of an inference, ends."""
        if self.input_tensors is None:
            rows: List[Any] = []
            for part in self._take(batch_size):
                rows += part
            return rows
        batch: Dict[str, List[Any]] = {tensor: [] for tensor in self.input_tensors}
        for part in self._take(batch_size, arrow_batches.lists_of):
            for i, (column, tensor) in enumerate(zip(self._columns, self.input_tensors)):
                batch[tensor] += [row[i] for row in part] if isinstance(part, list) else part.column(column)
        return batch

    def next_columns(self, batch_size: int) -> Dict[str, Any]:
        """As next_batch, but {column or tensor: array of numpy}; {} where the feed has ended.

        The rows are those of a DataFrame that TFCluster.train() has sent. Lists that all have the same
        length are an array of two dimensions. A null among numbers is NaN. The arrays are not to be changed.
        Raises ValueError if rows of an RDD were sent.
        """
        parts = self._take_columns(batch_size, arrow_batches.arrays_of)
        if not parts:
            return {}
        columns = parts[0] if len(parts) == 1 else arrow_batches.joined(parts)
        if self.input_tensors is None:
            return dict(columns.all())
        return dict(zip(self.input_tensors, map(columns.column, self._columns)))

    def next_arrow(self, batch_size: int) -> Any:
        """As next_columns, but a pyarrow.Table; an empty one where the feed has ended."""
        import pyarrow

        parts = self._take_columns(batch_size, arrow_batches.batch_of)
        if not parts:
            return pyarrow.table({})
        table = pyarrow.Table.from_batches(parts)
        if self.input_tensors is None:
            return table
        return table.select(self._columns).rename_columns(self.input_tensors)

    def _take_columns(self, count: int, view: View) -> List[Any]:
        parts = self._take(count, view)
        if any(isinstance(part, list) for part in parts):
            raise ValueError("rows of an RDD have no columns: give TFCluster.train() a DataFrame")
        return parts

    def _take(self, count: int, view: View = arrow_batches.rows_of) -> List[Any]:
        """So many rows, in lists; those of a DataFrame in slices of that view."""
        parts: List[Any] = []
        left = count
        while left > 0 and not self.done_feeding:
            part = self.queue_in.take(left, view=view)
            marker = part[0] if isinstance(part, list) else None
            if isinstance(marker, EndFeed):
                self.done_feeding = True
            elif isinstance(marker, EndPartition):
                if not self.train_mode and parts:
                    break
            else:
                parts.append(part)
                left -= len(part)
        return parts

    def should_stop(self) -> bool:
        """True once the end of the feed was reached, or terminate() was called."""
        return self.done_feeding

    def batch_results(self, results: Sequence[Any]) -> None:
        """The results of the rows of next_batch, one for each, in their order."""
        self.queue_out.put_block(list(results))

    def terminate(self) -> None:
        """This node wants no more rows: what is under way is dropped, and no more is sent to it."""
        self.done_feeding = True
        self.mgr.set("state", "terminating")
        self.queue_in.clear()


def _queue(mgr: Any, name: str) -> Any:
    found = mgr.get_queue(name)
    if found is None:
        raise ValueError(f"there is no queue '{name}': TFCluster.run(queues=...) names them")
    return found
