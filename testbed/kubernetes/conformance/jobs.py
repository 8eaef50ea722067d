"""The TFJobs of cases.yaml: each case's job, and the steps of what happens to its pods."""

from __future__ import annotations

import copy
import dataclasses
import pathlib
from typing import Any

import yaml

from testbed.kubernetes.api import Object

HERE = pathlib.Path(__file__).parent


@dataclasses.dataclass
class Case:
    name: str
    job: Object
    waits: bool  # its pods stay Pending until a step runs them
    steps: list[Object]


def merge(base: Object, patch: Object) -> Object:
    """Like a JSON merge patch; lists of containers and ports are replaced."""
    result = copy.deepcopy(base)
    for name, value in patch.items():
        if isinstance(value, dict) and isinstance(result.get(name), dict):
            result[name] = merge(result[name], value)
        else:
            result[name] = copy.deepcopy(value)
    return result


def make_replica(kind: str, count: int | None, case: Object) -> Object:
    container = merge({"name": "tensorflow", "image": "image"}, case.get("container", {}))
    replica: Object = {"template": {"spec": {"containers": [container]}}}
    if count is not None:
        replica["replicas"] = count
    policy = case.get("policies", {}).get(kind, case.get("policy", "Never"))
    if policy is not None:
        replica["restartPolicy"] = policy
    replica["template"] = merge(replica["template"], case.get("pod", {}))
    return merge(replica, case.get("types", {}).get(kind, {}))


def make_job(name: str, case: Object) -> Object:
    spec: Object = {
        "tfReplicaSpecs": {kind: make_replica(kind, n, case) for kind, n in case["tasks"].items()}
    }
    if "run" in case:
        spec["runPolicy"] = case["run"]
    spec.update(case.get("spec", {}))
    job = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": name}, "spec": spec}
    return merge(job, case.get("job", {}))


def read(file: str) -> Any:
    return yaml.safe_load((HERE / file).read_text())


def read_cases(file: str = "cases.yaml") -> list[Case]:
    return [
        Case(name, make_job(name, case), case.get("pods") == "wait", case["steps"])
        for name, case in read(file).items()
    ]
