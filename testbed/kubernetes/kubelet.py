"""A kubelet that pretends: it binds pods and says that they run, until a test ends them."""

from __future__ import annotations

import datetime
import threading
from http.client import HTTPException
from typing import Any, Callable

from testbed.kubernetes.api import Api, ApiError, Object

INCARNATION = "muster/incarnation"


def now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def name_of(pod: Object) -> str:
    return str(pod["metadata"]["name"])


class Kubelet:
    """Of one namespace. Each pod that it sees is in `started` once, in order."""

    def __init__(self, api: Api, namespace: str):
        self.api = api
        self.namespace = namespace
        self.path = f"/api/v1/namespaces/{namespace}/pods"
        self.started: list[Object] = []
        self.seen: set[str] = set()
        self.held: set[str] = set()  # names of pods that do not go when they are deleted
        self.stopped = False
        # What becomes of a pod that was bound: "run", "wait" (it stays Pending), or an exit code.
        self.decide: Callable[[Object], Any] = lambda pod: "run"
        self.connections: list[Any] = []
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def stop(self) -> None:
        self.stopped = True
        for connection in self.connections:
            if connection.sock:
                connection.sock.close()

    def run(self) -> None:
        while not self.stopped:
            try:
                listed = self.api.get(self.path)
                for pod in listed["items"]:
                    self.handle(pod)
                version = listed["metadata"]["resourceVersion"]
                for event in self.api.watch(self.path, version, self.connections):
                    if event["type"] in ("ADDED", "MODIFIED"):
                        self.handle(event["object"])
                    elif event["type"] == "DELETED":
                        self.gone(event["object"]["metadata"]["uid"])
                    elif event["type"] == "ERROR" or self.stopped:
                        break
            except (OSError, HTTPException, ApiError, ValueError, AttributeError):
                threading.Event().wait(0.05)  # the server is away, or the test has ended

    def handle(self, pod: Object) -> None:
        try:
            uid = pod["metadata"]["uid"]
            if pod["metadata"].get("deletionTimestamp"):
                if name_of(pod) in self.held:
                    return
                self.api.delete(f"{self.path}/{name_of(pod)}", grace=0, uid=uid)
            elif uid not in self.seen and not pod["spec"].get("schedulingGates"):
                self.seen.add(uid)
                self.start(pod)
        except ApiError as error:
            if error.code not in (404, 409):
                raise

    def gone(self, uid: str) -> None:
        """A pod's object is not there any more."""

    def start(self, pod: Object) -> None:
        self.started.append(pod)
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name_of(pod)},
                   "target": {"kind": "Node", "name": "node-1"}}  # fmt: skip
        self.api.create(f"{self.path}/{name_of(pod)}/binding", binding)
        fate = self.decide(pod)
        if fate == "wait":
            return
        self.set_running(name_of(pod))
        if isinstance(fate, int):
            self.end(name_of(pod), fate)

    def container(
        self, pod: str, state: Object, restarts: int = 0, last: Object | None = None
    ) -> list[Object]:
        return [{"name": "tensorflow", "image": "i", "imageID": "i", "ready": "running" in state,
                 "restartCount": restarts, "state": state, "lastState": last or {}}]  # fmt: skip

    def set_running(self, pod: str, restarts: int = 0, last: Object | None = None) -> None:
        """`last`: the state in which the run before the last restart ended."""
        state = {"running": {"startedAt": now()}}
        status = {"phase": "Running", "startTime": now(), "containerStatuses":
                  self.container(pod, state, restarts, last)}  # fmt: skip
        self.api.patch_status(f"{self.path}/{pod}", status)

    def set_waiting(self, pod: str, reason: str, message: str) -> None:
        state = {"waiting": {"reason": reason, "message": message}}
        self.api.patch_status(
            f"{self.path}/{pod}",
            {"phase": "Pending", "containerStatuses": self.container(pod, state)},
        )

    def end(
        self, pod: str, code: int, reason: str = "", message: str = "", disruption: str = ""
    ) -> None:
        """The container exits; with `disruption`, because the platform ended it."""
        terminated = {"exitCode": code, "reason": reason or ("Error" if code else "Completed"),
                      "message": message, "startedAt": now(), "finishedAt": now()}  # fmt: skip
        status: Object = {
            "phase": "Succeeded" if code == 0 else "Failed",
            "containerStatuses": self.container(pod, {"terminated": terminated}),
        }
        if disruption:
            status["conditions"] = [{"type": "DisruptionTarget", "status": "True",
                                     "reason": disruption, "lastTransitionTime": now()}]  # fmt: skip
        self.api.patch_status(f"{self.path}/{pod}", status)

    def lose(self, pod: str) -> None:
        """The pod fails, and nobody knows how its container ended."""
        self.api.patch_status(f"{self.path}/{pod}", {"phase": "Failed", "containerStatuses": []})

    def incarnations(self, pod: str) -> list[str]:
        """Of the pods of this name that were started, in order."""
        return [
            started["metadata"]["annotations"].get(INCARNATION, "")
            for started in self.started
            if name_of(started) == pod
        ]
