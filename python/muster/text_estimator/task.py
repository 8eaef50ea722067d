"""A task of TFoS mode: `python -m muster.text_estimator.task FOLDER`.

The folder has what the driver says, and gets what the map_fun of the chief returns.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
from typing import Any, Dict, List, Mapping, NamedTuple, Tuple

from muster.text_estimator.feed import DataFeed, Manager
from muster.text_estimator.reading import Data
from muster.text_estimator.trials import MapFun

JOB, RESULT = "job.pickle", "result.pickle"
_READERS = ("chief", "worker")
_ROLES = ("ps", "chief", "worker")  # in the order in which TensorFlowOnSpark numbers them


class Said(NamedTuple):
    """What the driver says to all tasks."""

    map_fun: MapFun
    args: Mapping[str, Any]
    data: Data
    epochs: int  # of a data feed
    alone: str  # the role of the only task of a job, which has no TF_CONFIG


class Context(NamedTuple):
    """ctx of map_fun, as TensorFlowOnSpark has it."""

    job_name: str  # chief, worker or ps
    task_index: int
    executor_id: int  # the number of the task among all
    cluster_spec: Dict[str, List[str]]  # HOST:PORT of each task, by job_name; "" of the only one
    num_workers: int  # those that read: the chief and the workers
    data: Data  # the rows that this task reads
    mgr: Manager
    working_dir: str
    defaultFS: str = "file://"

    @property
    def worker_num(self) -> int:
        return self.executor_id

    def get_data_feed(self, train: bool = True, *names: Any, **more: Any) -> DataFeed:
        """The rows of this task, as often as "epochs" of the parameters says. All feeds take from one queue."""
        if not train or names or set(more) - {"input_mapping"}:
            raise ValueError("get_data_feed: only train=True and input_mapping are there")
        return DataFeed(self.mgr, more.get("input_mapping"))

    def absolute_path(self, path: str) -> str:
        """The path as one that all tasks understand."""
        return path if "://" in path else os.path.abspath(path)


def context(config: Mapping[str, Any], said: Said) -> Context:
    """What TF_CONFIG says about this task."""
    cluster, name, index = config["cluster"], config["task"]["type"], config["task"]["index"]
    numbers = [(role, at) for role in _ROLES for at in range(len(cluster.get(role, [])))]
    readers = [(role, at) for role in _READERS for at in range(len(cluster.get(role, [])))]
    data = said.data._replace(ranges=[])
    if (name, index) in readers:
        data = said.data.share(readers.index((name, index)), len(readers))
    number, manager = numbers.index((name, index)), Manager(data, said.epochs)
    return Context(name, index, number, cluster, len(readers), data, manager, os.getcwd())


def is_chief(ctx: Context) -> bool:
    """Whether this task's result is the job's."""
    if "chief" in ctx.cluster_spec:
        return ctx.job_name == "chief"
    return (ctx.job_name, ctx.task_index) == ("worker", 0)


def main(folder: str) -> None:
    with open(os.path.join(folder, JOB), "rb") as file:
        said = Said(*pickle.load(file))
    alone = {"cluster": {said.alone: [""]}, "task": {"type": said.alone, "index": 0}}
    config = os.environ.get("TF_CONFIG")
    ctx = context(json.loads(config) if config else alone, said)
    result = said.map_fun(args=said.args, ctx=ctx, _read_data=ctx.data.read)
    if is_chief(ctx):
        path = os.path.join(folder, RESULT)
        with open(path + ".written", "wb") as file:
            pickle.dump(result, file)
        os.rename(path + ".written", path)


def read_result(folder: str) -> Tuple[bool, Any]:
    """Whether the chief has returned, and what."""
    try:
        with open(os.path.join(folder, RESULT), "rb") as file:
            return True, pickle.load(file)
    except FileNotFoundError:
        return False, None


if __name__ == "__main__":
    main(sys.argv[1])
