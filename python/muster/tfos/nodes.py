"""The driver's table of the nodes of a cluster: who is there, who feeds whom, what has failed."""

from __future__ import annotations

import collections
import threading
import time
from typing import Any, Callable, Counter, Dict, List, NamedTuple, Optional, Tuple

Report = Dict[str, Any]
_SERVERS = ("ps", "evaluator")  # tasks that end when the others have
_EVALUATOR = "evaluator-0"


class Role(NamedTuple):
    """A task of the cluster; executor_id counts all of them."""

    executor_id: int
    job_name: str
    task_index: int

    @property
    def task(self) -> str:
        return f"{self.job_name}-{self.task_index}"


def roles(counts: List[Tuple[str, int]]) -> List[Role]:
    """counts: job names in their order, with how many tasks each has."""
    named = [(name, index) for name, count in counts for index in range(count)]
    return [Role(number, name, index) for number, (name, index) in enumerate(named)]


class _Node:
    """What the last incarnation of a task has reported."""

    def __init__(self, report: Report) -> None:
        self.incarnation = int(report["incarnation"])
        self.info: Dict[str, Any] = report["info"]
        self.machine: str = report["machine"]
        self.done = False  # its program has ended without an error
        self.terminated = False  # it wants no more rows


class Nodes:
    """All methods may be called by any thread."""

    def __init__(self, wanted: List[Role], gang: bool) -> None:
        """gang: when one task is started again, all of them are, but an evaluator."""
        self._change = threading.Condition()
        self._wanted = wanted
        self._gang = gang
        self._nodes: Dict[str, _Node] = {}
        self._start: Dict[str, int] = {}  # the incarnations of the gang's last start
        self._feeding: Dict[Tuple[str, int], str] = {}  # (feed, partition): the task that gets its rows
        self._restarts = 0
        self._errors: Dict[str, str] = {}
        self._fed: Counter[str] = collections.Counter()  # how many partitions each task has got
        self._feed_ended_at: Optional[int] = None  # restarts of the nodes whose feed has ended
        self._stop_requested = False
        self._has_ended: Callable[[], bool] = lambda: False
        self._answers: Dict[str, Callable[[Report], Report]] = {
            "register": self._register,
            "poll": self._poll,
            "failed": self._failed,
            "done": self._done,
            "terminated": self._terminated,
            "assign": self._assign,
            "release": self._release,
            "state": self._state,
        }

    def answer(self, report: Report) -> Report:
        with self._change:
            answer = self._answers[report["what"]](report)
            self._change.notify_all()
            return answer

    # What nodes say.

    def _register(self, report: Report) -> Report:
        task, node = report["task"], _Node(report)
        if node.incarnation < self._start.get(task, 0):
            return {}  # of a process that was ended meanwhile
        gone = [name for name in self._nodes if self._is_replaced_by(task, name)]
        if gone:
            self._restarts += 1
            self._errors = {}
        for name in gone:
            del self._nodes[name]
        self._nodes[task] = node
        return {}

    def _is_in_gang(self, task: str) -> bool:
        return self._gang and task != _EVALUATOR

    def _is_replaced_by(self, new: str, name: str) -> bool:
        """Whether a node has ended when the node `new` reports."""
        if name == new or not (self._is_in_gang(new) and self._is_in_gang(name)):
            return name == new
        return self._nodes[name].incarnation < min(self._start.values(), default=0)

    def _poll(self, report: Report) -> Report:
        """Of a node that runs: whether its feed has ended, and whether it shall end."""
        servers_end = report["task"].rpartition("-")[0] in _SERVERS and self._others_are_done()
        return {"feed_ended": self._feed_ended_at == self._restarts, "stop": servers_end}

    def _others_are_done(self) -> bool:
        others = [role.task for role in self._wanted if role.job_name not in _SERVERS]
        return all(task in self._nodes and self._nodes[task].done for task in others)

    def _failed(self, report: Report) -> Report:
        self._errors.setdefault(report["task"], report["error"])
        return {}

    def _done(self, report: Report) -> Report:
        self._nodes[report["task"]].done = True
        return self._terminated(report)

    def _terminated(self, report: Report) -> Report:
        self._nodes[report["task"]].terminated = True
        if report["requested"]:
            self._stop_requested = True
        return {}

    # What tasks that feed ask.

    def _assign(self, report: Report) -> Report:
        """The node that gets a partition's rows: the same one in each attempt while it wants rows."""
        if self._errors:
            return {"failed": next(iter(self._errors.values()))}
        if self._missing() and self._has_ended():
            return {"failed": "the cluster has ended"}
        if self._missing():
            return {"wait": f"{', '.join(self._missing())} is not there"}
        if report["restarts"] != self._restarts:
            return {"stale": "nodes were started again"}
        feeders = [t for t in self._nodes if t.rpartition("-")[0] not in _SERVERS]
        here = [t for t in feeders if self._nodes[t].machine == report["machine"]]
        if not here:
            return {"wait": "no node is on this machine"}
        open_ones = [task for task in here if not self._nodes[task].terminated]
        if not open_ones:
            return {"terminated": True}
        if self._has_ended():
            return {"failed": "the cluster has ended"}
        key = (report["feed"], report["partition"])
        task = self._feeding.get(key)
        if task not in open_ones:
            busy = list(self._feeding.values())
            task = min(open_ones, key=lambda each: (busy.count(each), self._fed[each], each))
            self._feeding[key] = task
            self._fed[task] += 1
        return {"task": task, "addr": self._nodes[task].info["addr"]}

    def _state(self, report: Report) -> Report:
        """What has become of a node that was fed."""
        node = self._nodes.get(report["task"])
        return {
            "terminated": node is not None and node.terminated,
            "restarts": self._restarts,
            "error": self._errors.get(report["task"]),
            "ended": self._has_ended(),
        }

    def _release(self, report: Report) -> Report:
        self._feeding.pop((report["feed"], report["partition"]), None)
        return {}

    def _missing(self) -> List[str]:
        return [role.task for role in self._wanted if role.task not in self._nodes]

    # What the driver asks.

    def watch(self, has_ended: Callable[[], bool]) -> None:
        """has_ended: whether the job of the nodes has ended; called by any thread."""
        self._has_ended = has_ended

    def expect(self, task: str, incarnation: int) -> None:
        """The job starts a process of the task. It may never report: only so is it known what starts with what."""
        with self._change:
            if not self._is_in_gang(task):
                return
            if self._start.get(task, incarnation) < incarnation:
                self._start = {}  # the gang is started again
            self._start[task] = incarnation

    def wake(self) -> None:
        """wait() looks again: something has changed that no report says."""
        with self._change:
            self._change.notify_all()

    def missing(self) -> List[str]:
        """Tasks that have not reported yet."""
        with self._change:
            return self._missing()

    def wait(self, until: Callable[[], bool], seconds: float) -> bool:
        """Waits until `until`, called after each report, is true; returns whether it is."""
        end = time.monotonic() + seconds
        while not until():
            left = end - time.monotonic()
            if left <= 0:
                return False
            with self._change:
                self._change.wait(left)
        return True

    def cluster_info(self) -> List[Dict[str, Any]]:
        """In the order of executor_id."""
        with self._change:
            return [dict(self._nodes[r.task].info) for r in self._wanted if r.task in self._nodes]

    def restarts(self) -> int:
        """How often nodes have reported anew: it grows when the cluster is started again."""
        with self._change:
            return self._restarts

    def error(self) -> Optional[str]:
        """What the first program that failed has said."""
        with self._change:
            return next(iter(self._errors.values()), None)

    def end_feed(self, restarts: int) -> None:
        """Nodes see the end of their feed, unless they were started again after so many restarts."""
        with self._change:
            self._feed_ended_at = restarts

    def forget_feed(self, feed: str) -> None:
        """A feed has ended; tasks that died in it have released nothing."""
        with self._change:
            self._feeding = {key: task for key, task in self._feeding.items() if key[0] != feed}

    def want_no_rows(self) -> bool:
        """Whether no node wants rows any more."""
        with self._change:
            fed = [n for task, n in self._nodes.items() if task.rpartition("-")[0] not in _SERVERS]
            return not self._missing() and all(node.terminated for node in fed)

    def stop_was_requested(self) -> bool:
        """A node has called terminate()."""
        with self._change:
            return self._stop_requested
