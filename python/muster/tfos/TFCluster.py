"""A cluster of nodes on Spark's executors that run one program, and what feeds them.

The nodes are a job of muster.spark: its coordinator starts again what was lost. With InputMode.TENSORFLOW
a node holds its slot of Spark; with InputMode.SPARK nodes run beside the slots, which the feed uses.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
import uuid
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from muster import binary
from muster.spark import manifest
from muster.spark.job import Job, Options
from muster.spark.places_server import PlacesServer
from muster.spark.reach import Home
from muster.tfos import gpus, reservation
from muster.tfos.feeder import Feed
from muster.tfos.link import Link
from muster.tfos.node_process import ADDRESS, COMMAND, Program
from muster.tfos.nodes import Nodes, Role, roles
from muster.tfos.training_data import TrainingData, repeat

logger = logging.getLogger("muster")

QUEUES = ("input", "output", "error")
_RESTARTS = "spark.muster.tfos.restarts"  # of a node, and of the cluster, in an hour
_DEFAULT_RESTARTS = "3"
_WORKERS_MAY_TAKE = "72h"  # after the chief; shutdown(timeout) ends them before
_EPOCHS = 10  # where the program decides when it has had enough
_AGAIN_SECONDS = 120.0  # for a cluster that was lost to be there again
_LOOK_SECONDS, _TAKE_LEAVE_SECONDS = 0.5, 2.0


class InputMode:
    """Where rows come from."""

    TENSORFLOW = 0  # the program reads files
    SPARK = 1  # TFCluster.train() and inference() send them


class TFCluster:
    """A cluster that runs. Made by run()."""

    def __init__(
        self, sc: Any, job: Job, nodes: Nodes, server: PlacesServer, input_mode: int, queues: List[str]
    ) -> None:
        self.sc = sc
        self.input_mode = input_mode
        self.queues = queues
        self.server: Optional[reservation.Server] = None  # of a stream, whose end can be asked for there
        self.cluster_meta: Dict[str, Any] = {}  # server_addr: the server's (host, port)
        self._job = job
        self._nodes = nodes
        self._server = server
        self._link = Link(server.reach)
        self._fed: List[TrainingData] = []  # what nodes have got, and get again when they are started again
        self._delivered = 0  # how many of them the nodes of now have got
        self._restarts = nodes.restarts()  # of the nodes of now

    @property
    def cluster_info(self) -> List[Dict[str, Any]]:
        """Of each node: executor_id, host, job_name, task_index, port, tb_pid, tb_port, addr."""
        return self._nodes.cluster_info()

    def train(
        self, dataRDD: Any, num_epochs: int = 0, feed_timeout: float = 600, qname: str = "input"
    ) -> None:
        """Sends the rows of an RDD, num_epochs times (0: 10 times), or of a DStream, to the workers.

        A DataFrame in place of an RDD is sent by columns, many times as fast as its .rdd is; programs get its
        rows by next_batch(), or its columns by next_columns() and next_arrow() of their DataFeed.
        Returns when programs have taken all rows, each once, or want no more. When a node is lost, also
        later, the cluster is started again, and gets all that it was fed again; of a DStream, the RDD
        that is under way. reservation.Client(cluster_meta["server_addr"]).request_stop() of any program
        ends a stream. feed_timeout: seconds for which a program may take no row. Raises MusterError
        with what a program has raised.
        """
        self._check_fed(qname)
        if num_epochs < 0:
            raise ValueError("num_epochs cannot be negative")
        if hasattr(dataRDD, "foreachRDD"):
            if self.server is None:
                self.server = reservation.Server(1)
                self.cluster_meta["server_addr"] = self.server.start()
            dataRDD.foreachRDD(lambda rdd: self._feed_part(TrainingData(rdd, feed_timeout, qname)))
        else:
            rows = repeat(dataRDD, num_epochs or _EPOCHS, self.sc)
            self._fed.append(TrainingData(rows, feed_timeout, qname))
            try:
                self._deliver()
            except BaseException:
                self._fed.pop()  # shutdown() must not try again what has failed
                raise

    def inference(self, dataRDD: Any, feed_timeout: float = 600, qname: str = "input") -> Any:
        """An RDD of results, one for each row, in their order. Nothing is sent before it is used."""
        self._check_fed(qname)
        feed = Feed(self._link, uuid.uuid4().hex, self._nodes.restarts(), qname, feed_timeout)
        return dataRDD.mapPartitions(feed.inference())

    def shutdown(self, ssc: Any = None, grace_secs: float = 0, timeout: float = 259200) -> None:
        """Waits until the programs of all workers have returned, then ends the other nodes.

        In InputMode.SPARK they see the end of their feed first. ssc: a StreamingContext, which is waited
        for, and stopped when a program has called terminate(). grace_secs: has no meaning, since programs
        are always waited for, exports included. timeout: seconds, -1 for no limit.

        Raises MusterError with what a program has raised, TimeoutError after `timeout`.
        """
        try:
            if ssc is not None:
                self._wait_for_stream(ssc)
            end = time.monotonic() + timeout if timeout > 0 else None
            while not self._job.has_ended():
                self._deliver()
                restarts = self._restarts
                self._nodes.end_feed(restarts)
                if not self._wait_for_change(restarts, end):
                    break
            self._wait(0 if end is not None else None)
        finally:
            self.stop()

    def stop(self) -> None:
        """Ends all nodes at once."""
        self._job.stop()
        self._server.close()
        if self.server is not None:
            self.server.stop()

    def tensorboard_url(self) -> Optional[str]:
        """None where run() had no tensorboard=True."""
        for node in self.cluster_info:
            if node["tb_port"] != 0:
                return f"http://{node['host']}:{node['tb_port']}"
        return None

    def _check_fed(self, qname: str) -> None:
        if self.input_mode != InputMode.SPARK:
            raise ValueError("train() and inference() need TFCluster.run(input_mode=InputMode.SPARK)")
        if qname not in self.queues:
            raise ValueError(f"there is no queue '{qname}' among {', '.join(self.queues)}")

    def _deliver(self) -> None:
        """Feeds what the nodes of now have not got."""
        while True:
            restarts = self._nodes.restarts()
            if restarts != self._restarts:
                self._restarts, self._delivered = restarts, 0
            if self._delivered == len(self._fed):
                return
            if self._feed(self._fed[self._delivered], restarts):
                self._delivered += 1

    def _feed_part(self, fed: TrainingData) -> None:
        """Feeds an RDD of a DStream, which nodes that are started again later do not get."""
        while not self._feed(fed, self._nodes.restarts()):
            pass

    def _feed(self, fed: TrainingData, restarts: int) -> bool:
        """False if the cluster was started again meanwhile."""
        feed = Feed(self._link, uuid.uuid4().hex, restarts, fed.queue, fed.timeout)
        watch = _Cancelling(self.sc, feed.name, self._is_in_vain)
        try:
            with watch:
                fed.deliver(feed)
            return True
        except Exception as error:
            if self._nodes.want_no_rows() and self._nodes.error() is None:
                return True
            if not self._is_there_again(restarts, watch.has_cancelled):
                raise self._failure(error) from error
            logger.warning("nodes were lost: the cluster has started again, and is fed from the beginning")
            return False
        finally:
            self._nodes.forget_feed(feed.name)

    def _is_in_vain(self) -> bool:
        """Whether a feed has nobody to feed: its tasks hold the slots that lost nodes need."""
        return self._nodes.want_no_rows() or self._job.lacks_places()

    def _is_there_again(self, restarts: int, was_in_vain: bool) -> bool:
        """Whether the cluster was started again and is complete now. was_in_vain: nodes were lost, so it will be."""

        def is_again() -> bool:
            return self._nodes.restarts() != restarts and not self._nodes.missing()

        def is_decided() -> bool:
            return is_again() or self._job.has_ended()

        is_whole = not was_in_vain and self._nodes.restarts() == restarts and not self._job.lacks_places()
        if is_whole and self._nodes.error() is None:
            return False  # the feed itself has failed
        end = time.monotonic() + _AGAIN_SECONDS
        while not is_decided() and time.monotonic() < end:
            self._nodes.wait(is_decided, _LOOK_SECONDS)
        return is_again() and not self._job.has_ended()

    def _failure(self, error: Exception) -> Exception:
        """What to raise for a feed that has failed."""
        said = self._nodes.error()
        if said is None:
            return error
        self.stop()
        return binary.MusterError(said.rstrip())

    def _wait_for_stream(self, ssc: Any) -> None:
        while not ssc.awaitTerminationOrTimeout(1):
            asked = self.server is not None and self.server.done
            if asked or self._nodes.stop_was_requested() or self._job.has_ended():
                ssc.stop(stopSparkContext=False, stopGraceFully=True)
                return

    def _wait_for_change(self, restarts: int, end: Optional[float]) -> bool:
        """Whether nodes were started again before the job has ended; False at the time `end` as well."""

        def has_changed() -> bool:
            return self._job.has_ended() or self._nodes.restarts() != restarts

        while not has_changed():
            if end is not None and time.monotonic() > end:
                return False
            self._nodes.wait(has_changed, _LOOK_SECONDS)
        return not self._job.has_ended()

    def _wait(self, timeout: Optional[float]) -> None:
        try:
            self._job.wait(timeout)
        except binary.MusterError as error:
            said = self._nodes.error()
            raise binary.MusterError(f"{error}\n{said.rstrip()}" if said else str(error)) from None


class _Cancelling:
    """Ends what Spark does in this thread, within the `with`, once it is in vain."""

    def __init__(self, sc: Any, name: str, is_in_vain: Callable[[], bool]) -> None:
        self._sc = sc
        self._tag = f"muster-feed-{name}"
        self._is_in_vain = is_in_vain
        self.has_cancelled = False
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> None:
        self._sc.addJobTag(self._tag)
        self._thread.start()

    def __exit__(self, *error: object) -> None:
        self._left.set()
        self._thread.join()
        self._sc.removeJobTag(self._tag)

    def _watch(self) -> None:
        while not self._left.wait(_LOOK_SECONDS):
            # Tasks that feed may end by themselves, without an error.
            if self._is_in_vain() and not self._left.wait(_TAKE_LEAVE_SECONDS) and self._is_in_vain():
                self.has_cancelled = True
                self._sc.cancelJobsWithTag(self._tag)
                return


def run(
    sc: Any,
    map_fun: Any,
    tf_args: Any,
    num_executors: int,
    num_ps: int,
    tensorboard: bool = False,
    input_mode: int = InputMode.TENSORFLOW,
    log_dir: Optional[str] = None,
    driver_ps_nodes: bool = False,
    master_node: Optional[str] = None,
    reservation_timeout: float = 600,
    queues: Sequence[str] = QUEUES,
    eval_node: bool = False,
    release_port: bool = True,
) -> TFCluster:
    """Starts a cluster of num_executors nodes that run map_fun(tf_args, ctx); returns when all are there.

    Of the nodes num_ps are "ps", one is `master_node` ("chief" or "master") if it is given, one
    "evaluator" with eval_node; the rest are "worker". Executor ids count them in this order.

    tensorboard: worker 0, or the chief, starts TensorBoard on log_dir. driver_ps_nodes: the ps run on
    the driver's machine, outside Spark. reservation_timeout: seconds for all nodes to report.
    release_port: False if the program wants its port to be held, as ctx.tmp_socket, until it calls
    ctx.release_port().

    Raises ValueError for a cluster that cannot be, and MusterError, which names the nodes that are not
    there or has what a program has raised.
    """
    fed = input_mode == InputMode.SPARK
    if fed and (driver_ps_nodes or eval_node):
        raise ValueError("driver_ps_nodes and eval_node need InputMode.TENSORFLOW")
    counts = _counts(num_executors, num_ps, master_node, eval_node)
    wanted = roles(counts)
    local = num_ps if driver_ps_nodes else 0
    manifest.check_slots(sc, num_executors - local)
    gang = fed or num_ps == 0
    policy = manifest.Policy(
        restarts=int(sc.getConf().get(_RESTARTS, _DEFAULT_RESTARTS)),
        restart_policy="ExitCode", all_workers=master_node is None,
        scope="gang" if gang else None, finish_timeout=_WORKERS_MAY_TAKE,
    )  # fmt: skip
    spec = manifest.make(COMMAND, dict(counts), {ADDRESS: "{host}:{port}"}, policy)
    nodes = Nodes(wanted, gang)
    home = Home.of(sc)
    server = PlacesServer(nodes, home)
    try:
        program = Program(
            link=Link(server.reach),
            executor_ids={role.task: role.executor_id for role in wanted},
            default_fs=default_fs(sc), working_dir=os.getcwd(), queues=list(queues), fed=fed,
            num_gpus=gpus.wanted(tf_args), release_port=release_port, log_dir=log_dir,
            board_task=_board_task(wanted) if tensorboard else "",
            alias="tensorflowonspark" in sys.modules, function=pickled((map_fun, tf_args)),
        )  # fmt: skip
        options = Options(
            background=fed, payload=program.dump(), here=False, local_tasks="ps" if local else "",
            local_count=local, expect=nodes.expect,
        )  # fmt: skip
        job = Job(sc, spec, len(wanted), home, options)
        nodes.watch(job.has_ended)
        job.when_ended(nodes.wake)
    except BaseException:
        server.close()
        home.remove()
        raise
    cluster = TFCluster(sc, job, nodes, server, input_mode, list(queues))
    try:
        _wait_until_there(cluster, job, nodes, reservation_timeout)
    except BaseException:
        cluster.stop()
        raise
    url = cluster.tensorboard_url()
    if url is not None:
        logger.info("TensorBoard: %s", url)
    return cluster


def _wait_until_there(cluster: TFCluster, job: Job, nodes: Nodes, seconds: float) -> None:
    end = time.monotonic() + seconds
    while nodes.missing():
        if job.has_ended():
            cluster._wait(None)  # raises, unless all programs have ended well meanwhile
            return
        if time.monotonic() > end:
            raise binary.MusterError(
                f"after {seconds:g} s (reservation_timeout) these nodes have not reported: "
                f"{', '.join(nodes.missing())}; {job.describe_places()}"
            )
        nodes.wait(lambda: not nodes.missing() or job.has_ended(), _LOOK_SECONDS)


def _counts(
    num_executors: int, num_ps: int, master_node: Optional[str], eval_node: bool
) -> List[Tuple[str, int]]:
    if master_node not in (None, "", "chief", "master"):
        raise ValueError(f"master_node '{master_node}': it is 'chief' or 'master'")
    masters, evaluators = int(bool(master_node)), int(eval_node)
    workers = num_executors - num_ps - masters - evaluators
    if workers < 0:
        raise ValueError(
            f"a cluster of {num_ps} ps, {masters} master and {evaluators} evaluator needs more than "
            f"num_executors={num_executors}"
        )
    if masters + workers < 1:
        raise ValueError("a cluster has a worker or a master_node")
    return [
        ("ps", num_ps), (master_node or "chief", masters), ("evaluator", evaluators), ("worker", workers),
    ]  # fmt: skip


def _board_task(wanted: List[Role]) -> str:
    names = [role.task for role in wanted]
    return next(name for name in ("worker-0", "chief-0", "master-0") if name in names)


def pickled(function_and_args: Any) -> bytes:
    """By value, as Spark does it. Raises ValueError with the reason where that cannot be."""
    from pyspark import cloudpickle

    try:
        made: bytes = cloudpickle.dumps(function_and_args)
        return made
    except Exception as error:
        raise ValueError(f"map_fun or its arguments cannot be sent to executors: {error}") from error


def default_fs(sc: Any) -> str:
    """Hadoop's fs.defaultFS; "file://" for its "file:///", to which an absolute path can be added."""
    found = str(sc._jsc.hadoopConfiguration().get("fs.defaultFS"))
    is_local = found.startswith("file:///") and found.endswith("/")
    return found[:-1] if is_local else found
