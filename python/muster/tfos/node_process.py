"""The process of a node: `python -m muster.tfos.node_process`, a task of a job on Spark's executors.

It calls map_fun(args, ctx), reports to the driver's table of nodes (muster.tfos.nodes), and ends with
code 0, or 1 if the program has raised something, which the job does not repeat. A process that is killed
is started again by the job.
"""

from __future__ import annotations

import json
import logging
import os
import pickle
import sys
import threading
import time
import traceback
from typing import Any, Dict, List, NamedTuple, Optional

from muster.binary import MusterError
from muster.spark.reach import machine_id
from muster.tfos import TFManager, board, gpus
from muster.tfos.feed_server import FeedServer, ResultQueue
from muster.tfos.link import Link
from muster.tfos.TFSparkNode import TFNodeContext, hold_port, set_tf_config

logger = logging.getLogger("muster")

_POLL_SECONDS = 0.5
# A node may fail because another one was lost: the coordinator must hear of that one first.
_OTHERS_FIRST_SECONDS = 3.0
ADDRESS = "MUSTER_TFOS_ADDRESS"  # host:port of this node
# It imports what tasks of Spark do, with --py-files and what SparkContext.addPyFile has sent.
COMMAND = [
    "sh", "-c",
    'PYTHONPATH="$PYTHONPATH:$MUSTER_SPARK_PATH" exec "$MUSTER_SPARK_PYTHON" -m muster.tfos.node_process',
]  # fmt: skip


class Program(NamedTuple):
    """What a node runs, and what it must know; without what the job tells it."""

    link: Link
    executor_ids: Dict[str, int]  # by task, "worker-0"
    default_fs: str
    working_dir: str
    queues: List[str]
    fed: bool  # InputMode.SPARK
    num_gpus: Optional[int]  # of the program's arguments
    release_port: bool
    board_task: str  # the task that starts TensorBoard, or ""
    log_dir: Optional[str]
    alias: bool  # the program imports `tensorflowonspark`
    function: bytes  # (map_fun, args), by cloudpickle

    def dump(self) -> bytes:
        """For main(), which is another module of the same source."""
        return pickle.dumps({**self._asdict(), "link": tuple(self.link)}, protocol=4)


class _Node:
    def __init__(self, program: Program) -> None:
        self._program = program
        self._task = os.environ["MUSTER_TASK"]
        self._manager = TFManager.start(b"", program.queues)
        self._server: Optional[FeedServer] = None
        self._board: Optional[board.Board] = None
        self._feed_ended = False

    def run(self) -> int:
        """Returns the exit code."""
        try:
            ctx = self._context()
            if self._program.fed:
                self._manager.when_terminating(self._tell_terminated)
                # A place is used again: who still knows a node that was lost there must not feed this one.
                self._server = FeedServer(_folder(), self._manager, f"feed-{_incarnation()}.sock")
                self._manager.set_queue("output", ResultQueue(self._server))
            if self._task == self._program.board_task:
                self._board = board.start(self._program.log_dir, ctx.executor_id)
            self._register(ctx)
            threading.Thread(target=self._poll, daemon=True).start()
            code = _call(self._program, ctx)
            if code != 0:
                raise MusterError(f"the program has called sys.exit({code})")
        except BaseException as error:
            return self._fail(_trace(error))
        finally:
            if self._board is not None:
                self._board.end()
        self._tell("done", requested=False)
        if self._server is not None:
            self._server.terminate()
        return 0

    def _context(self) -> TFNodeContext:
        job_name, _, index = self._task.rpartition("-")
        address = os.environ[ADDRESS]
        given = os.environ.get("TF_CONFIG")  # a job of one task has none
        cluster = json.loads(given)["cluster"] if given else {job_name: [address]}
        set_tf_config(cluster, job_name, int(index))
        spark_gpus = [one for one in os.environ["MUSTER_SPARK_GPUS"].split(",") if one]
        chosen = gpus.visible(self._program.num_gpus, spark_gpus, cluster, job_name, int(index))
        os.environ["CUDA_VISIBLE_DEVICES"] = chosen
        held = None if self._program.release_port else hold_port(int(address.rpartition(":")[2]))
        executor_id = self._program.executor_ids[self._task]
        return TFNodeContext(
            executor_id, job_name, int(index), cluster, self._program.default_fs,
            self._program.working_dir, self._manager, held,
        )  # fmt: skip

    def _register(self, ctx: TFNodeContext) -> None:
        host, _, port = os.environ[ADDRESS].rpartition(":")
        info = {
            "executor_id": ctx.executor_id,
            "host": host,
            "job_name": ctx.job_name,
            "task_index": ctx.task_index,
            "port": int(port),
            "tb_pid": self._board.pid if self._board is not None else 0,
            "tb_port": self._board.port if self._board is not None else 0,
            "addr": self._server.address if self._server is not None else "",
        }
        self._tell("register", info=info, incarnation=_incarnation(), machine=machine_id())

    def _tell(self, what: str, **fields: Any) -> Dict[str, Any]:
        return self._program.link.ask(what, task=self._task, **fields)

    def _tell_terminated(self) -> None:
        self._tell("terminated", requested=True)

    def _poll(self) -> None:
        """Hears when the feed has ended, and when this node is to end because the others have."""
        while True:
            time.sleep(_POLL_SECONDS)
            try:
                answer = self._tell("poll")
            except MusterError:
                continue  # the agent ends this process when the driver is gone
            if answer["feed_ended"] and not self._feed_ended:
                self._feed_ended = True
                self._end_feed()
            if answer["stop"]:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(0)  # servers do not return

    def _end_feed(self) -> None:
        for name in self._program.queues:
            if name not in ("output", "error"):
                self._manager.get_queue(name).put(None)

    def _fail(self, error: str) -> int:
        sys.stderr.write(error)
        if self._server is not None:
            self._server.fail(error)
        try:
            self._tell("failed", error=error)
        except MusterError as unheard:
            logger.warning("%s", unheard)
        time.sleep(_OTHERS_FIRST_SECONDS)
        return 1


def _trace(error: BaseException) -> str:
    """As Python prints it, but from the program's own first line on."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_globals is globals():
        trace = trace.tb_next
    if trace is None and not isinstance(error, MusterError):
        trace = error.__traceback__
    return "".join(traceback.format_exception(type(error), error, trace))


def _incarnation() -> int:
    """Another one for each process of a task."""
    return int(os.environ["MUSTER_INCARNATION"])


def _folder() -> str:
    return os.path.dirname(os.environ["MUSTER_SPARK_PAYLOAD"])


def _call(program: Program, ctx: TFNodeContext) -> int:
    """Calls map_fun(args, ctx). Returns the code with which it has called sys.exit(), 0 without."""
    if program.alias:
        import muster.tfos.as_tensorflowonspark  # noqa: F401

    map_fun, args = pickle.loads(program.function)
    if isinstance(args, list):
        sys.argv = args
    try:
        map_fun(args, ctx)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        raise
    return 0


def main() -> int:
    from pyspark import SparkFiles

    SparkFiles._root_directory = os.environ["MUSTER_SPARK_FILES"]
    SparkFiles._is_running_on_worker = True
    with open(os.environ["MUSTER_SPARK_PAYLOAD"], "rb") as file:
        fields = pickle.load(file)
    link = Link(*fields.pop("link"))
    return _Node(Program(link=link, **fields)).run()


if __name__ == "__main__":
    sys.exit(main())
