"""The TFJob of a job on executors, as data, and whether Spark has room for it."""

from __future__ import annotations

import json
import time
import uuid
from typing import Any, Dict, List, Mapping, NamedTuple, Optional

from muster.spark import sessions

_POLL_SECONDS = 0.2
_EXECUTORS_SECONDS = 30.0  # for executors that are on their way
_TYPES = {
    "chief": "Chief",
    "master": "Master",
    "worker": "Worker",
    "ps": "PS",
    "evaluator": "Evaluator",
}


class Policy(NamedTuple):
    """What follows a task's end."""

    restarts: int = 5  # of one task, and of the job, in an hour
    restart_policy: str = "OnFailure"  # TFJob's word
    all_workers: bool = False  # without a chief, all workers must succeed instead of worker 0
    scope: Optional[str] = None  # "gang": all tasks start again together; None: as TFJob has it
    finish_timeout: Optional[str] = None  # for workers that still run when the chief has succeeded


def make(
    command: List[str], counts: Mapping[str, int], env: Mapping[str, str], policy: Policy
) -> Dict[str, Any]:
    """counts: tasks by type, "chief" or "worker" for example; a type of no tasks is left out."""
    container: Dict[str, Any] = {"name": "tensorflow", "command": command}
    container["env"] = [{"name": name, "value": value} for name, value in env.items()]
    specs = {
        _TYPES[kind]: {
            "replicas": count,
            "restartPolicy": policy.restart_policy,
            "template": {"spec": {"containers": [container]}},
        }
        for kind, count in counts.items()
        if count > 0
    }
    budget = {"perTask": policy.restarts, "perJob": policy.restarts, "window": "1h"}
    annotations = {"muster/restartBudget": json.dumps(budget)}
    if policy.scope is not None:
        annotations["muster/restartScope"] = policy.scope
    if policy.finish_timeout is not None:
        annotations["muster/finishTimeout"] = policy.finish_timeout
    spec: Dict[str, Any] = {"tfReplicaSpecs": specs}
    if policy.all_workers:
        spec["successPolicy"] = "AllWorkers"
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": {"name": f"spark-{uuid.uuid4().hex[:8]}", "annotations": annotations},
        "spec": spec,
    }


def check_slots(
    context: Any, tasks: int, what: str = "", fewer: str = "the job fewer tasks"
) -> None:
    """Raises ValueError where Spark would wait, or fail, for want of slots for so many tasks.

    what: what takes the slots; fewer: how to take fewer of them. Both go into the message.
    """
    sessions.check_running(context)
    if context.getConf().get("spark.dynamicAllocation.enabled", "false").lower() == "true":
        raise ValueError(
            "a job needs executors that stay: set spark.dynamicAllocation.enabled=false"
        )
    there, end = slots(context), time.monotonic() + _EXECUTORS_SECONDS
    while there < tasks and not context.master.startswith("local") and time.monotonic() < end:
        time.sleep(_POLL_SECONDS)
        there = slots(context)
    if there < tasks:
        cpus = context.getConf().get("spark.task.cpus", "1")
        raise ValueError(
            f"{what or f'the job has {tasks} tasks'}, but Spark's executors have {there} slots (master "
            f"{context.master}, spark.task.cpus={cpus}): give it more cores, as by --master local[{tasks}], "
            f"--total-executor-cores or --num-executors, or {fewer}"
        )


def slots(context: Any) -> int:
    scala = context._jsc.sc()
    profile = scala.resourceProfileManager().defaultResourceProfile()
    return int(scala.maxNumConcurrentTasks(profile))
