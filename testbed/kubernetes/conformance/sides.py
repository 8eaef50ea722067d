"""One of the two controllers with its namespace, whose jobs all take the same steps."""

from __future__ import annotations

import json
import time
from typing import Any

from testbed.kubernetes.api import ApiError, Object
from testbed.kubernetes.cluster import Cluster
from testbed.kubernetes.conformance.jobs import Case
from testbed.kubernetes.kubelet import Kubelet, name_of

PREFIX = "training.kubeflow.org/"
# A side has come to rest when nothing has changed for so many seconds.
STILL_SECONDS = 1.5
PATIENCE = 60.0
# What differs between two runs of the same controller.
VOLATILE = {"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation",
            "deletionTimestamp", "lastUpdateTime", "lastTransitionTime"}  # fmt: skip


class Side:
    def __init__(self, cluster: Cluster, namespace: str, cases: list[Case], groups: str = ""):
        """`groups`: the version of the API that has PodGroups, where there are any."""
        self.api = cluster.api
        self.namespace = namespace
        self.core = cluster.namespace(namespace)
        self.jobs = f"/apis/kubeflow.org/v1/namespaces/{namespace}/tfjobs"
        self.lists = [self.jobs, f"{self.core}/pods", f"{self.core}/services"]
        self.groups = groups
        if groups:
            self.lists.append(f"/apis/{groups}/namespaces/{namespace}/podgroups")
        self.kubelet = Kubelet(cluster.api, namespace)
        self.cases = cases
        waiting = {case.name for case in cases if case.waits}
        self.kubelet.decide = lambda pod: (
            "wait" if pod["metadata"]["labels"].get(PREFIX + "job-name") in waiting else "run"
        )

    def submit(self) -> None:
        for case in self.cases:
            self.api.create(self.jobs, case.job)

    def take_step(self, number: int) -> None:
        for case in self.cases:
            if number < len(case.steps):
                for verb, what in case.steps[number].items():
                    if verb != "wait":
                        self.act(case.name, verb, what)

    def act(self, job: str, verb: str, what: Any) -> None:
        kubelet = self.kubelet
        if verb == "edit":
            self.api.merge(f"{self.jobs}/{job}", {"spec": what})
        elif verb == "touch":
            self.api.merge(f"{self.jobs}/{job}", {"metadata": {"labels": {"touched": "yes"}}})
        elif verb == "podgroup":
            self.set_pod_group(job, what)
        else:
            for task in what:
                pod = f"{job}-{task}"
                try:
                    if verb == "end":
                        end = what[task] if isinstance(what[task], dict) else {"code": what[task]}
                        kubelet.end(pod, **end)
                    elif verb == "evict":
                        kubelet.end(pod, 137, disruption=what[task])
                    elif verb == "lost":
                        kubelet.lose(pod)
                    elif verb == "run":
                        kubelet.set_running(pod)
                    elif verb == "waiting":
                        kubelet.set_waiting(pod, *what[task])
                    elif verb == "restart":
                        kubelet.set_running(pod, restarts=what[task])
                    elif verb == "terminate":
                        kubelet.held.add(pod)
                        self.api.delete(f"{self.core}/pods/{pod}")
                    elif verb == "delete":
                        self.api.delete(f"{self.core}/pods/{pod}", grace=0)
                    else:
                        raise ValueError(f"{job}: {verb} is no step")
                except ApiError as error:
                    # One controller may have removed a pod that the other one keeps.
                    if error.code != 404:
                        raise

    def set_pod_group(self, job: str, phase: str) -> None:
        self.api.merge(f"{self.lists[-1]}/{job}/status", {"status": {"phase": phase}})

    def look(self) -> dict[str, str]:
        """The versions of all that the controller makes."""
        return {
            f"{path}/{item['metadata']['name']}": item["metadata"]["resourceVersion"]
            for path in self.lists
            for item in self.api.items(path)
        }

    def rest(self) -> None:
        """Waits until the controller has done what there is to do."""
        deadline = time.monotonic() + PATIENCE
        known, since = self.look(), time.monotonic()
        while time.monotonic() - since < STILL_SECONDS and time.monotonic() < deadline:
            time.sleep(0.25)
            seen = self.look()
            if seen != known:
                known, since = seen, time.monotonic()

    def record(self) -> dict[str, Object]:
        """By case, what there is now: path -> value of each leaf."""
        found: dict[str, Object] = {case.name: {} for case in self.cases}
        for pod in self.api.items(f"{self.core}/pods"):
            self.put(found, job_of(pod), f"pods/{task_of(pod)}", read_pod(pod))
        for service in self.api.items(f"{self.core}/services"):
            self.put(found, job_of(service), f"services/{task_of(service)}", strip(service))
        for job in self.api.items(self.jobs):
            self.put(found, name_of(job), "status", read_status(job.get("status", {})))
        for path in self.lists[3:]:
            for group in self.api.items(path):
                read = strip({k: v for k, v in group.items() if k != "status"})
                self.put(found, name_of(group), "podgroup", read)
        for name, leaves in found.items():
            # How many pods of each name there were.
            for pod in {name_of(pod) for pod in self.kubelet.started if job_of(pod) == name}:
                count = sum(name_of(started) == pod for started in self.kubelet.started)
                leaves[f"started/{pod[len(name) + 1 :]}"] = count
        return found

    def events(self) -> dict[str, Object]:
        """By case, REASON/MESSAGE -> type; an event of several pods is one for each of them."""
        found: dict[str, Object] = {case.name: {} for case in self.cases}
        for event in self.api.items(f"{self.core}/events"):
            job = event["involvedObject"]["name"]
            if event["involvedObject"]["kind"] != "TFJob" or job not in found:
                continue
            message = event["message"].replace(self.namespace, "NS")
            messages = [message]
            for start in ("Created pod: ", "Created service: ", "Deleted pod: ", "Deleted service: "):
                if message.startswith(start):
                    messages = [start + name for name in message[len(start) :].split(", ")]
            for each in messages:
                found[job][f"events/{event['reason']}/{each.replace('/', '~')}"] = event["type"]
        return found

    def put(self, found: dict[str, Object], job: str, path: str, value: Any) -> None:
        if job in found:
            flatten(path, value, self.namespace, found[job])


def job_of(item: Object) -> str:
    owners = item["metadata"].get("ownerReferences", [])
    return str(owners[0]["name"]) if owners else ""


def task_of(item: Object) -> str:
    return name_of(item)[len(job_of(item)) + 1 :]


def strip(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: strip(v) for k, v in value.items() if k not in VOLATILE}
    return [strip(each) for each in value] if isinstance(value, list) else value


def read_pod(pod: Object) -> Object:
    read: Object = strip(pod)
    read["status"] = {"phase": pod["status"]["phase"]}
    read["deleting"] = "deletionTimestamp" in pod["metadata"]
    for container in read["spec"]["containers"]:
        env = {}
        for variable in container.get("env", []):
            value = variable.get("value", "")
            # The last one of a name counts.
            is_config = variable["name"] == "TF_CONFIG"
            env[variable["name"]] = json.loads(value) if is_config else value
        container["env"] = env
    return read


def read_status(status: Object) -> Object:
    conditions = status.get("conditions", [])
    return {
        "order": " ".join(condition["type"] for condition in conditions),
        "conditions": {
            condition["type"]: {k: condition[k] for k in ("status", "reason", "message")}
            for condition in conditions
        },
        "replicaStatuses": status.get("replicaStatuses", {}),
        "times": " ".join(k for k in ("startTime", "completionTime") if status.get(k)),
    }


def flatten(path: str, value: Any, namespace: str, leaves: Object) -> None:
    if isinstance(value, dict) and value:
        for name, each in value.items():
            flatten(f"{path}/{name.replace('/', '~')}", each, namespace, leaves)
    elif isinstance(value, list) and value:
        for number, each in enumerate(value):
            label = str(number)
            if isinstance(each, dict) and "name" in each:
                label = str(each["name"])
            flatten(f"{path}/{label}", each, namespace, leaves)
    elif value not in (None, {}, []):
        leaves[path] = value.replace(namespace, "NS") if isinstance(value, str) else value
