"""Trainings by `muster worker` in pods, on a volume that a training of this machine sees too."""

from __future__ import annotations

import os
import pathlib
from typing import Any

from testbed.jobs import Jobs
from testbed.kubernetes.api import Object
from testbed.kubernetes.operators import wait_for
from testbed.kubernetes.process_space import ProcessSpace
from testbed.trainings import Trainings

MOUNT = "/training"
DEADLINE = 400.0  # for a training to get somewhere, on a loaded machine


def make_claim(space: ProcessSpace, name: str = "work") -> pathlib.Path:
    """Returns the folder that is its volume."""
    space.make_claim(name)
    folder = space.kubelet.claims / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def volume_job(
    name: str, replicas: dict[str, int], command: list[str], grace: int = 20, **spec: Any
) -> Object:  # fmt: skip
    """A job whose pods see the claim `work` at MOUNT."""
    container = {"name": "tensorflow", "image": "image", "command": command,
                 "volumeMounts": [{"name": "work", "mountPath": MOUNT}]}  # fmt: skip
    pod = {"containers": [container], "terminationGracePeriodSeconds": grace,
           "volumes": [{"name": "work", "persistentVolumeClaim": {"claimName": "work"}}]}  # fmt: skip
    replica = {"restartPolicy": "ExitCode", "template": {"spec": pod}}
    return {
        "apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": name},
        "spec": {"tfReplicaSpecs": {kind: {"replicas": count, **replica}
                                    for kind, count in replicas.items()}, **spec},
    }  # fmt: skip


class NativeJobs:
    """`trainings` works in the folder of the claim `work`."""

    def __init__(self, space: ProcessSpace, trainings: Trainings):
        self.space = space
        self.trainings = trainings

    @staticmethod
    def make(binary: str, space: ProcessSpace) -> NativeJobs:
        return NativeJobs(space, Trainings(Jobs(binary, make_claim(space))))

    def inside(self, path: str) -> str:
        """Where a pod sees a file of the volume."""
        folder = self.trainings.jobs.folder
        return f"{MOUNT}/{os.path.relpath(folder / path, folder)}"

    def job(
        self, name: str, replicas: dict[str, int], *flags: object, **spec: Any
    ) -> Object:
        """It trains into the folder of its name."""
        words = ["muster", "worker", self.inside(self.trainings.spec),
                 "--train", self.inside(self.trainings.data),
                 "--model-dir", f"{MOUNT}/{name}", *map(str, flags)]  # fmt: skip
        return volume_job(name, replicas, words, **spec)

    def submit(self, *job: Any, **spec: Any) -> None:
        self.space.submit(self.job(*job, **spec))

    def tasks(self, job: str) -> Object:
        tasks: Object = self.space.job(job)["status"]["muster"]["state"]["tasks"]
        return tasks

    def said(self) -> str:
        jobs = [job.get("status") for job in self.space.api.items(self.space.jobs)]
        return f"{self.space.pods()}\n{self.space.kubelet.logs()}\n{self.space.log()}\n{jobs}"

    def wait_step(self, model: str, step: int) -> None:
        wait_for(lambda: self.trainings.step(model) >= step, self.said, DEADLINE)

    def wait_log(self, pod: str, text: str) -> None:
        wait_for(lambda: text in self.space.kubelet.log(pod), self.said, DEADLINE)

    def wait_success(self, job: str) -> None:
        def ended() -> bool:
            assert not self.space.condition(job, "Failed"), self.said()
            return self.space.condition(job, "Succeeded") is not None

        wait_for(ended, self.said, DEADLINE)

    def harm(self, how: str, pod: str) -> None:
        """Ends the pod, and waits until another one of this name runs."""
        uid = self.space.pod(pod)["metadata"]["uid"]
        path = f"{self.space.core}/pods/{pod}"
        if how == "kill":
            self.space.kubelet.kill(pod)
        elif how == "delete":
            self.space.api.delete(path)
        elif how == "drain":
            self.space.api.create(f"{path}/eviction", {
                "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod},
            })  # fmt: skip
        else:
            self.space.kubelet.evict(pod)

        def is_replaced() -> bool:
            found = self.space.api.find(path)
            return (found is not None and found["metadata"]["uid"] != uid
                    and found["status"]["phase"] == "Running")  # fmt: skip

        wait_for(is_replaced, self.said, DEADLINE)
