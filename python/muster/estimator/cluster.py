"""TF_CONFIG: which task of a cluster this process is, by tf.estimator's rules and in its words.

    {"cluster": {"chief": ["host0:2222"], "worker": ["host1:2222"], "ps": ["host2:2222"]},
     "task": {"type": "worker", "index": 0}, "model_dir": "/models/a"}

`muster worker` reads the same variable; here it says what of a program's calls is whose work.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

CHIEF, MASTER, WORKER, PS, EVALUATOR = "chief", "master", "worker", "ps", "evaluator"


class ClusterSpec:
    """The part of tf.train.ClusterSpec that programs use: names of jobs, addresses of their tasks.
    """

    def __init__(self, cluster: Mapping[str, Sequence[str]]) -> None:
        self._tasks = {name: list(tasks) for name, tasks in cluster.items()}

    def __bool__(self) -> bool:
        return bool(self._tasks)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClusterSpec) and self._tasks == other._tasks

    def __hash__(self) -> int:
        return hash(tuple(sorted(self._tasks)))

    def __str__(self) -> str:
        return f"ClusterSpec({self._tasks})"

    __repr__ = __str__

    @property
    def jobs(self) -> List[str]:
        return sorted(self._tasks)

    def as_dict(self) -> Dict[str, List[str]]:
        return {name: list(tasks) for name, tasks in self._tasks.items()}

    def job_tasks(self, job_name: str) -> List[str]:
        if job_name not in self._tasks:
            raise ValueError(f"No such job in cluster: '{job_name}'")
        return list(self._tasks[job_name])

    def num_tasks(self, job_name: str) -> int:
        return len(self.job_tasks(job_name))


@dataclass(frozen=True)
class Task:
    """This process's task. Without a cluster it is a single worker."""

    type: str = WORKER
    index: int = 0
    cluster: ClusterSpec = field(default_factory=lambda: ClusterSpec({}))
    model_dir: Optional[str] = None
    service: Optional[Mapping[str, Any]] = None
    master: str = ""
    evaluation_master: str = ""
    in_cluster: bool = False  # true for the evaluator too, whose `cluster` is empty

    def check_trains(self) -> None:
        """Raises in a cluster's evaluator, for which Estimator.train() has nothing to do."""
        if self.in_cluster and self.type == EVALUATOR:
            raise RuntimeError(
                "This task is the cluster's evaluator, and Estimator.train() has nothing for it to "
                "do: call train_and_evaluate(), or start the cluster without an evaluator."
            )

    @property
    def is_chief(self) -> bool:
        return not self.in_cluster or self.type in (CHIEF, MASTER)

    @property
    def trains(self) -> bool:
        return self.is_chief or self.type == WORKER

    @property
    def workers(self) -> int:
        """The number of tasks that train, including the chief."""
        if not self.in_cluster:
            return 1
        tasks = self.cluster.as_dict()
        return sum(len(tasks.get(name, ())) for name in (CHIEF, MASTER, WORKER))

    @property
    def servers(self) -> int:
        return len(self.cluster.as_dict().get(PS, ()))

    @property
    def rank(self) -> int:
        """This task's number among those that train: the chief first, then the workers."""
        return 0 if self.is_chief else self.index + 1

    @property
    def global_id(self) -> Optional[int]:
        if self.type == EVALUATOR:
            return None
        if not self.in_cluster:
            return 0
        names = self.cluster.jobs
        first = [name for name in (CHIEF, MASTER) if name in names]
        last = [name for name in names if name == PS]
        rest = [name for name in names if name not in (CHIEF, MASTER, PS)]
        before = 0
        for name in [*first, *rest, *last]:
            if name == self.type:
                break
            before += self.cluster.num_tasks(name)
        return before + self.index

    def has_evaluator(self) -> bool:
        """Whether a task of the job evaluates.

        The TF_CONFIG of other tasks need not list the evaluator; `muster run` sets
        MUSTER_EVALUATOR.
        """
        if self.type == EVALUATOR or EVALUATOR in self.cluster.jobs:
            return True
        return os.environ.get("MUSTER_EVALUATOR", "0") not in ("", "0")


def task_of_environment() -> Task:
    """Raises ValueError (TypeError for a service) for what tf.estimator refuses."""
    settings = _settings()
    service = settings.get("service")
    if service is not None and not isinstance(service, dict):
        raise TypeError(
            f'If "service" is set in TF_CONFIG, it must be a dict. Given {type(service)}'
        )
    cluster = ClusterSpec(settings.get("cluster") or {})
    asked = settings.get("task") or {}
    model_dir = settings.get("model_dir")
    if not cluster:
        return _alone(settings, asked, model_dir, service)
    chief = CHIEF
    if MASTER in cluster.jobs:
        chief = MASTER
        if CHIEF in cluster.jobs:
            raise ValueError(
                "If `master` node exists in `cluster`, job `chief` is not supported."
            )
    kind, index = _checked(cluster, asked, chief)
    if kind == EVALUATOR:
        if chief == MASTER:
            raise ValueError(
                "If `master` node exists in `cluster`, task_type `evaluator` is not supported."
            )
        evaluation = settings.get("eval_session_master", "")
        return Task(kind, index, ClusterSpec({}), model_dir, service, "", evaluation, True)
    single = sum(len(tasks) for tasks in cluster.as_dict().values()) == 1
    address = "" if single else f"grpc://{cluster.job_tasks(kind)[index]}"
    master = settings.get("session_master", address)
    return Task(kind, index, cluster, model_dir, service, master, "", True)


def _settings() -> Dict[str, Any]:
    text = os.environ.get("TF_CONFIG") or "{}"
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ValueError(f"TF_CONFIG: not JSON: {error}") from None
    if not isinstance(found, dict):
        raise ValueError(f"TF_CONFIG: must be a JSON object, not {text[:100]}")
    return found


def _alone(settings: Mapping[str, Any], asked: Any, model_dir: Any, service: Any) -> Task:
    if asked.get("type", WORKER) != WORKER:
        raise ValueError('If "cluster" is not set in TF_CONFIG, task type must be WORKER.')
    if int(asked.get("index", 0)) != 0:
        raise ValueError('If "cluster" is not set in TF_CONFIG, task index must be 0.')
    return Task(
        model_dir=model_dir,
        service=service,
        master=settings.get("session_master", ""),
        evaluation_master=settings.get("eval_session_master", ""),
    )


def _checked(cluster: ClusterSpec, asked: Mapping[str, Any], chief: str) -> Tuple[str, int]:
    if chief not in cluster.jobs:
        raise ValueError(f'If "cluster" is set in TF_CONFIG, it must have one "{chief}" node.')
    if cluster.num_tasks(chief) > 1:
        raise ValueError(f'The "cluster" in TF_CONFIG must have only one "{chief}" node.')
    kind, index = asked.get("type"), asked.get("index")
    if not kind:
        raise ValueError('If "cluster" is set in TF_CONFIG, task type must be set.')
    if index is None:
        raise ValueError('If "cluster" is set in TF_CONFIG, task index must be set.')
    index = int(index)
    if index < 0:
        raise ValueError("Task index must be non-negative number.")
    if kind == EVALUATOR:
        return kind, index
    fault = ""
    if kind not in cluster.jobs:
        fault = f"{kind} is not a valid task_type"
    elif index >= cluster.num_tasks(kind):
        fault = f"{index} is not a valid task_id for task_type {kind}"
    if fault:
        raise ValueError(
            f"{fault} in the cluster_spec:\n{cluster}\n\nNote that these values may be coming from "
            "the TF_CONFIG environment variable."
        )
    return str(kind), index
