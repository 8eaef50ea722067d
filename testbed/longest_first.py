"""Spreads test files over the processes of pytest-xdist: those of one cluster to one process, since each process
starts a cluster of its own, and the longest first, so that none runs alone at the end.

How long a file takes is known from the last run on this machine (MUSTER_CACHE/test-file-seconds.json).
"""

from __future__ import annotations

import collections
import json
import os
import pathlib
from typing import Any, Mapping

import pytest
from xdist.scheduler import LoadFileScheduling

CLUSTER_SECONDS = 60.0  # guessed for a file that was never run: to start a cluster of these takes long
# What a file's path says of the cluster that it needs; a YARN stands on an HDFS.
CLUSTERS = {"hdfs": "hadoop", "yarn": "hadoop", "kafka": "kafka", "kubernetes": "kubernetes"}


def kept_in() -> pathlib.Path:
    cache = os.environ.get("MUSTER_CACHE") or os.path.expanduser("~/.cache/muster")
    return pathlib.Path(cache) / "test-file-seconds.json"


def read(path: pathlib.Path) -> dict[str, float]:
    """Seconds by test file, as the last run left them."""
    try:
        return dict(json.loads(path.read_text()))
    except (OSError, ValueError):
        return {}


def cluster_of(file: str) -> str:
    """The cluster that the tests of a file need; "" for none."""
    return next((cluster for word, cluster in CLUSTERS.items() if word in file), "")


def choose(files: Mapping[str, float], started: set[str], elsewhere: set[str]) -> str:
    """The file to run next, of those with these expected seconds, in a process that has started some clusters while
    other processes have started others: the longest of its own clusters, which nobody else should run; else of a
    cluster that nobody has started; else of none.
    """

    def rank(file: str) -> tuple[int, float]:
        cluster = cluster_of(file)
        if cluster in started:
            return 3, files[file]
        if not cluster:
            return 1, files[file]
        return 0 if cluster in elsewhere else 2, files[file]

    return max(files, key=rank)


def expected(file: str, tests: int, seconds: Mapping[str, float]) -> float:
    """The seconds that a file with so many tests will take."""
    if file in seconds:
        return seconds[file]
    return tests + (CLUSTER_SECONDS if cluster_of(file) else 0.0)


class LongestFirst(LoadFileScheduling):  # type: ignore[misc]
    def __init__(self, config: pytest.Config, log: Any) -> None:
        super().__init__(config, log)
        self.seconds = read(kept_in())
        self.started: collections.defaultdict[Any, set[str]] = collections.defaultdict(set)

    def _assign_work_unit(self, node: Any) -> None:
        queue = self.workqueue
        files = {file: expected(file, len(tests), self.seconds) for file, tests in queue.items()}
        elsewhere = set().union(*(names for other, names in self.started.items() if other is not node))
        chosen = choose(files, self.started[node], elsewhere)
        self.started[node] |= {cluster_of(chosen)} - {""}
        queue.move_to_end(chosen, last=False)
        super()._assign_work_unit(node)


class Times:
    """Keeps how long each file has taken, for the next run."""

    def __init__(self) -> None:
        self.seconds: collections.Counter[str] = collections.Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid.partition("::")[0]] += report.duration

    def pytest_sessionfinish(self) -> None:
        path = kept_in()
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}")
        part.write_text(json.dumps({**read(path), **self.seconds}, indent=1))
        part.replace(path)
