"""A job with a restart, whose end a test knows: that of an undisturbed run."""

from __future__ import annotations

import threading

from testbed.kubernetes.api import Object
from testbed.kubernetes.kubelet import Kubelet, name_of
from testbed.kubernetes.operators import Space, tfjob, wait_for


class Story:
    """Of each job: worker-1 is killed once, then worker-0 succeeds, and what runs is cleaned up."""

    def __init__(self, kubelet: Kubelet):
        self.kubelet = kubelet
        self.lock = threading.Lock()
        kubelet.decide = self.decide

    def decide(self, pod: Object) -> object:
        name = name_of(pod)
        if not name.endswith("-worker-1"):
            return "run"
        if len(self.kubelet.incarnations(name)) == 1:
            return 137
        self.kubelet.set_running(name)
        self.kubelet.end(name.replace("-worker-1", "-worker-0"), 0)
        return "wait"


def submit(space: Space, name: str) -> None:
    policy = {"cleanPodPolicy": "Running", "backoffLimit": 3}
    space.submit(tfjob(name, {"PS": 1, "Worker": 2}, "ExitCode", runPolicy=policy))


def has_ended(space: Space, name: str) -> bool:
    """Whether the job has succeeded and what is left of it is that of worker-0."""
    left = [f"{name}-worker-0"]
    return (
        space.condition(name, "Succeeded") is not None
        and [pod for pod in space.pods() if pod.startswith(f"{name}-")] == left
        and [service for service in space.services() if service.startswith(f"{name}-")] == left
    )


def check_end(space: Space, name: str) -> None:
    space.wait_condition(name, "Succeeded")
    wait_for(
        lambda: has_ended(space, name),
        lambda: f"{name} leaves {space.pods()}, {space.services()}\n{space.log()}",
    )
    check_counts(space, name)


def check_counts(space: Space, name: str) -> None:
    """No pod was there twice in one incarnation, and no restart was counted twice."""
    tasks = space.job(name)["status"]["muster"]["state"]["tasks"]
    counted = {task: (t["restarts"], t["disruptions"]) for task, t in tasks.items()}
    assert counted == {"ps-0": (0, 0), "worker-0": (0, 0), "worker-1": (1, 0)}, counted
    for task, starts in [("ps-0", 1), ("worker-0", 1), ("worker-1", 2)]:
        incarnations = space.kubelet.incarnations(f"{name}-{task}")
        assert len(incarnations) == starts == len(set(incarnations)), (task, incarnations)
