"""TFoS mode: one distributed job, a task of Spark for each of its chief, workers and parameter servers."""

from __future__ import annotations

import os
import sys
import tempfile
from typing import Any, Dict, List, Mapping, NamedTuple, Sequence

from muster import binary
from muster.spark import job, manifest
from muster.text_estimator import task
from muster.text_estimator.reading import Data
from muster.text_estimator.trials import MapFun, Trial


# How long workers may continue after the chief, as TensorFlowOnSpark waits for them.
_FINISH_SECONDS = 3 * 24 * 3600.0


class Roles(NamedTuple):
    """How many tasks of each kind."""

    workers: int
    ps: int
    chief: bool


def run(
    spark: Any, data: Data, sets: Sequence[Mapping[str, Any]], args: Mapping[str, Any], map_fun: MapFun
) -> List[Trial]:
    """Runs the job of the first set; returns it as the only trial, with the result of the chief, or of
    worker 0 where there is none.

    args: what args["params"] has beside "fitParam". Raises ValueError for a job that cannot begin, and
    MusterError if it fails.
    """
    from pyspark import cloudpickle

    roles = find_roles(spark, sets[0])
    size = roles.workers + roles.ps + roles.chief
    given: Dict[str, Any] = {"tensorboard": None, **sets[0], "cluster_size": size, "num_ps": roles.ps}
    given["params"] = {**args, "fitParam": list(sets)}
    epochs = max(int(sets[0].get("epochs", 1)), 1)
    said = task.Said(map_fun, given, data, epochs, "chief" if roles.chief else "worker")
    with tempfile.TemporaryDirectory(prefix="muster-text-") as folder:
        with open(os.path.join(folder, task.JOB), "wb") as file:
            file.write(cloudpickle.dumps(tuple(said)))
        job.run(
            spark,
            [sys.executable, "-m", "muster.text_estimator.task", folder],
            workers=roles.workers, ps=roles.ps, chief=roles.chief, all_workers=not roles.chief,
            finish_seconds=_FINISH_SECONDS,
            env={"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )  # fmt: skip
        returned, result = task.read_result(folder)
    if not returned:
        raise binary.MusterError("the job has ended, but its chief has not returned from map_fun")
    return [Trial(sets[0], "complete", result, "")]


def find_roles(spark: Any, params: Mapping[str, Any]) -> Roles:
    """The tasks that "cluster_size", "num_ps" and "master_node" of the parameters ask for.

    By default as many tasks as Spark has slots, one of them a parameter server, and no chief.
    """
    size = int(params.get("cluster_size", manifest.slots(spark.sparkContext)))
    ps = int(params.get("num_ps", 1 if size > 1 else 0))
    master = params.get("master_node")
    if master not in (None, "chief"):
        raise ValueError(f"master_node '{master}': it is 'chief', or absent")
    workers = size - ps - (1 if master else 0)
    if ps < 0 or workers < 0 or workers + bool(master) < 1:
        raise ValueError(
            f"cluster_size is {size} and num_ps {ps}: at least one task must be a worker"
        )
    return Roles(workers, ps, bool(master))
