"""Which GPUs a node's program sees: the value of CUDA_VISIBLE_DEVICES."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Optional, Sequence

from muster.tfos import gpu_info

_POD = "SPARK_EXECUTOR_POD_IP"  # set by Spark on Kubernetes, where a pod may see GPUs that it was not given


def wanted(args: Any) -> Optional[int]:
    """num_gpus of a program's arguments; None if they have none."""
    if isinstance(args, dict):
        found = args.get("num_gpus")
    else:
        found = getattr(args, "num_gpus", None)
    return None if found is None else int(found)


def visible(
    count: Optional[int], given: List[str], cluster: Dict[str, List[str]], job_name: str, task_index: int
) -> str:
    """Those that Spark has given; otherwise `count` that are free, one if it is None. Empty without a GPU.

    cluster: the addresses of each job's tasks; those of one machine get GPUs that differ. Raises
    RuntimeError where there are not `count`.
    """
    found = given if count is None else given[:count]
    if not given and count != 0 and _POD not in os.environ and gpu_info.is_gpu_available():
        mine = cluster[job_name][task_index]
        index = on_machine_of(mine, [one for job in cluster.values() for one in job]).index(mine)
        found = list(gpu_info.get_gpus(count or 1, index, format=gpu_info.AS_LIST))
    if count is not None and len(found) < count:
        raise RuntimeError(
            f"{job_name}-{task_index} wants {count} GPUs (num_gpus) and gets {len(found)}: give Spark's tasks "
            "more (spark.task.resource.gpu.amount), or ask for fewer"
        )
    return ",".join(found)


def on_machine_of(address: str, addresses: Sequence[str]) -> List[str]:
    """Those of addresses, "host:port" or "host", that have the host of one of them."""
    return [other for other in addresses if _host(other) == _host(address)]


def _host(address: str) -> str:
    host, colon, _ = address.rpartition(":")
    return host if colon else address
