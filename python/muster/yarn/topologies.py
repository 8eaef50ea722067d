"""Which tasks an experiment has, and what each of them gets."""

from __future__ import annotations

import enum
import re
from typing import Dict, NamedTuple, Optional, Union

TASK_TYPES = ("chief", "worker", "ps", "evaluator", "tensorboard")
_MIB = {"MiB": 1, "GiB": 1024, "TiB": 1024**2}
_DECIMAL = {"MB": 1000**2, "GB": 1000**3, "TB": 1000**4}
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?) *([A-Za-z]+)")


class NodeLabel(enum.Enum):
    """The label of the nodes that a task runs on."""

    CPU = ""
    GPU = "gpu"


class ContainerKey(NamedTuple):
    type: str
    id: int

    def to_kv_str(self) -> str:
        return f"{self.type}:{self.id}"


def parse_memory(memory: Union[int, str]) -> int:
    """MiB: of a number, which is in MiB, or of a text such as "2 GiB" or "1500 MB"."""
    if isinstance(memory, int):
        return memory
    found = _SIZE.fullmatch(memory.strip())
    if found and found[2] in _MIB:
        return round(float(found[1]) * _MIB[found[2]])
    if found and found[2] in _DECIMAL:
        return -(-round(float(found[1]) * _DECIMAL[found[2]]) // 1024**2)
    raise ValueError(f"memory {memory!r} is no size, such as 2048 (MiB) or '2 GiB'")


class TaskSpec:
    """What each task of a type gets, and how many tasks there are."""

    def __init__(
        self,
        memory: Union[int, str],
        vcores: int,
        instances: int = 1,
        nb_proc_per_worker: int = 1,
        label: NodeLabel = NodeLabel.CPU,
        tb_termination_timeout_seconds: int = -1,
        tb_model_dir: Optional[str] = None,
        tb_extra_args: Optional[str] = None,
    ):
        if nb_proc_per_worker != 1:
            raise ValueError("nb_proc_per_worker: give more instances instead, each with one process")
        self.memory = parse_memory(memory)
        self.vcores = vcores
        self.instances = instances
        self.nb_proc_per_worker = nb_proc_per_worker
        self.label = label
        self.tb_termination_timeout_seconds = tb_termination_timeout_seconds
        self.tb_model_dir = tb_model_dir
        self.tb_extra_args = tb_extra_args


def check(task_specs: Dict[str, TaskSpec]) -> None:
    """ValueError for tasks that no experiment can have."""
    unknown = sorted(set(task_specs) - set(TASK_TYPES))
    if unknown:
        raise ValueError(f"task_specs has {', '.join(unknown)}; known are {', '.join(TASK_TYPES)}")
    if "chief" not in task_specs or task_specs["chief"].instances != 1:
        raise ValueError("task_specs must have exactly one chief")
    for name in ("evaluator", "tensorboard"):
        if name in task_specs and task_specs[name].instances > 1:
            raise ValueError(f"task_specs may have one {name}")
    labels = {spec.label for name, spec in task_specs.items() if name != "tensorboard"}
    if len(labels) > 1:
        raise ValueError("all tasks of a job run on nodes of one label: give each TaskSpec the same")


def single_server_topology(memory: Union[int, str] = "2 GiB", vcores: int = 2) -> Dict[str, TaskSpec]:
    """A chief that trains alone, and an evaluator."""
    return {name: TaskSpec(memory, vcores) for name in ("chief", "evaluator")}


def ps_strategy_topology(
    nb_workers: int = 2, nb_ps: int = 1, memory: Union[int, str] = "2 GiB", vcores: int = 2
) -> Dict[str, TaskSpec]:
    """Replicas that share their weights through parameter servers, and an evaluator."""
    return {
        **single_server_topology(memory, vcores),
        "worker": TaskSpec(memory, vcores, instances=nb_workers),
        "ps": TaskSpec(memory, vcores, instances=nb_ps),
    }
