"""Spreads test files over the processes of pytest-xdist, the longest first, so that none runs alone at the end.

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
CLUSTERS = ("hdfs", "kafka", "kubernetes", "yarn")


def kept_in() -> pathlib.Path:
    cache = os.environ.get("MUSTER_CACHE") or os.path.expanduser("~/.cache/muster")
    return pathlib.Path(cache) / "test-file-seconds.json"


def read(path: pathlib.Path) -> dict[str, float]:
    """Seconds by test file, as the last run left them."""
    try:
        return dict(json.loads(path.read_text()))
    except (OSError, ValueError):
        return {}


def expected(file: str, tests: int, seconds: Mapping[str, float]) -> float:
    """The seconds that a file with so many tests will take."""
    if file in seconds:
        return seconds[file]
    return tests + (CLUSTER_SECONDS if any(name in file for name in CLUSTERS) else 0.0)


class LongestFirst(LoadFileScheduling):  # type: ignore[misc]
    def __init__(self, config: pytest.Config, log: Any) -> None:
        super().__init__(config, log)
        self.seconds = read(kept_in())

    def _assign_work_unit(self, node: Any) -> None:
        queue = self.workqueue
        longest = max(queue, key=lambda file: expected(file, len(queue[file]), self.seconds))
        queue.move_to_end(longest, last=False)
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
