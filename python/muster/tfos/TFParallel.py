"""Independent instances of one program on executors, without a cluster."""

from __future__ import annotations

import os
import sys
from typing import Any, Iterator, List, Optional

from muster.spark import manifest
from muster.spark.place import task_gpus
from muster.tfos import gpus, util
from muster.tfos.TFCluster import default_fs
from muster.tfos.TFSparkNode import TFNodeContext


def run(sc: Any, map_fn: Any, tf_args: Any, num_executors: int, use_barrier: bool = True) -> None:
    """Runs map_fn(tf_args, ctx) so often, each in a task of Spark; returns when all have.

    ctx has executor_id and worker_num, num_workers, defaultFS and working_dir. use_barrier: all run at
    the same time. Each sees the GPUs that Spark has given its task, or num_gpus of tf_args (1 without it)
    that are free, if its machine has any. Raises ValueError if there are too few slots for use_barrier;
    otherwise what Spark raises.
    """
    if use_barrier:
        manifest.check_slots(sc, num_executors)
    filesystem, working_dir, alias = default_fs(sc), os.getcwd(), "tensorflowonspark" in sys.modules
    num_gpus = gpus.wanted(tf_args)

    def run_one(numbers: Iterator[int]) -> List[int]:
        if alias:
            import muster.tfos.as_tensorflowonspark  # noqa: F401

        for number in numbers:
            _set_gpus(num_gpus, number, use_barrier)
            ctx = TFNodeContext(number, defaultFS=filesystem, working_dir=working_dir)
            ctx.num_workers = num_executors
            if isinstance(tf_args, list):
                sys.argv = tf_args
            map_fn(tf_args, ctx)
        return []

    numbers = sc.parallelize(range(num_executors), num_executors)
    (numbers.barrier() if use_barrier else numbers).mapPartitions(run_one).collect()


def _set_gpus(wanted: Optional[int], number: int, use_barrier: bool) -> None:
    from pyspark import BarrierTaskContext

    given = task_gpus()
    if given:
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(given[:wanted])
        return
    nodes = [task.address for task in BarrierTaskContext.get().getTaskInfos()] if use_barrier else []
    util.single_node_env(1 if wanted is None else wanted, number, nodes)
