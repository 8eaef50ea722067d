"""`muster operator` as a process, and what a test asks of its jobs."""

from __future__ import annotations

import copy
import os
import pathlib
import signal
import subprocess
import time
from typing import Any, Callable, TypeVar

from testbed.kubernetes.api import Api, ApiError, Object
from testbed.kubernetes.cluster import HERE, OPERATOR, Cluster
from testbed.kubernetes.kubelet import Kubelet

DEADLINE = 120.0
DEPLOY = HERE.parent.parent / "deploy" / "kubernetes"
T = TypeVar("T")


def wait_for(look: Callable[[], T], what: object = "", seconds: float = DEADLINE) -> T:
    """The first result that counts as true."""
    deadline = time.monotonic() + seconds
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < deadline, what() if callable(what) else what
        time.sleep(0.02)


def tfjob(name: str, replicas: dict[str, int], policy: str = "Never", **spec: Any) -> Object:
    container = {"name": "tensorflow", "image": "image", "command": ["python", "main.py"]}
    replica = {"restartPolicy": policy, "template": {"spec": {"containers": [container]}}}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": {"name": name},
        "spec": {
            "tfReplicaSpecs": {
                kind: {"replicas": count, **copy.deepcopy(replica)}
                for kind, count in replicas.items()
            },
            **spec,
        },
    }


def state_of(pod: Object) -> str:
    if pod["metadata"].get("deletionTimestamp"):
        return "Deleting"
    return "Gated" if pod["spec"].get("schedulingGates") else str(pod["status"]["phase"])


def run_operator(
    config: pathlib.Path, log: pathlib.Path, *flags: str
) -> subprocess.Popen[bytes]:
    if "--health-port" not in flags:
        flags = ("--health-port", "-1", *flags)
    with open(log, "wb") as output:
        return subprocess.Popen(
            [os.environ["MUSTER_BINARY"], "operator", "--kubeconfig", str(config), *flags],
            stdout=output, stderr=output,
        )  # fmt: skip


def start_muster(
    cluster: Cluster, namespace: str, log: pathlib.Path, *flags: str
) -> subprocess.Popen[bytes]:
    """For the jobs of one namespace; its lease outlives a slow machine."""
    config = cluster.kubeconfig(OPERATOR, f"muster-{namespace}", namespace=namespace)
    return run_operator(config, log, "--namespace", namespace, "--lease", "120", *flags)


def stop_process(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=DEADLINE)


class Space:
    """A namespace with a kubelet that pretends, or another one; operators that see it alone."""

    def __init__(
        self, cluster: Cluster, name: str, folder: pathlib.Path, kubelet: Kubelet | None = None
    ):
        self.cluster = cluster
        self.api: Api = cluster.api
        self.name = name
        self.folder = folder
        self.core = cluster.namespace(name)
        self.jobs = f"/apis/kubeflow.org/v1/namespaces/{name}/tfjobs"
        self.kubelet = kubelet or Kubelet(cluster.api, name)
        self.operators: list[subprocess.Popen[bytes]] = []

    def start_operator(
        self, *flags: str, server: str = "", lease: str = "", token_file: str = ""
    ) -> subprocess.Popen[bytes]:
        """Operators with different namespaces `lease` all lead, and each job is one's alone. On a busy
        machine a renewal of the lease may take longer than the operator waits for it by default.
        """
        if "--lease" not in flags:
            flags = ("--lease", "60", *flags)
        number = len(self.operators)
        config = self.cluster.kubeconfig(
            OPERATOR, f"operator-{self.name}-{number}", server=server, namespace=self.name,
            token_file=token_file,
        )  # fmt: skip
        self.operators.append(run_operator(
            config, self.folder / f"operator-{number}.log", "--namespace", self.name,
            "--lease-namespace", lease or self.name, *flags,
        ))  # fmt: skip
        return self.operators[-1]

    def stop(self) -> None:
        for operator in self.operators:
            stop_process(operator)
        self.kubelet.stop()

    def log(self) -> str:
        """Of the last operator."""
        return (self.folder / f"operator-{len(self.operators) - 1}.log").read_text()

    def submit(self, job: Object) -> str:
        self.api.create(self.jobs, job)
        return str(job["metadata"]["name"])

    def make_claim(self, name: str) -> None:
        """A PersistentVolumeClaim, which is bound to nothing."""
        self.cluster.create({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": self.name},
            "spec": {"accessModes": ["ReadWriteMany"],
                     "resources": {"requests": {"storage": "1Gi"}}},
        })  # fmt: skip

    def job(self, name: str) -> Object:
        return self.api.get(f"{self.jobs}/{name}")

    def condition(self, name: str, kind: str) -> Object | None:
        """The job's condition of that type, if it is true."""
        for condition in self.job(name).get("status", {}).get("conditions", []):
            if condition["type"] == kind and condition["status"] == "True":
                return condition
        return None

    def wait_condition(self, name: str, kind: str) -> Object:
        def state() -> str:
            status = self.job(name).get("status", {})
            return f"no {kind}: {status}\n{self.pods()}\n{self.log()}"

        return wait_for(lambda: self.condition(name, kind), state)

    def pods(self) -> dict[str, str]:
        """Phase by name; "Deleting" for one that is being deleted, "Gated" before its admission."""
        pods = self.api.items(f"{self.core}/pods")
        return {pod["metadata"]["name"]: state_of(pod) for pod in pods}

    def services(self) -> list[str]:
        return sorted(s["metadata"]["name"] for s in self.api.items(f"{self.core}/services"))

    def wait_pods(self, **expected: str) -> None:
        """Names with "_" in place of "-"."""
        wanted = {name.replace("_", "-"): phase for name, phase in expected.items()}
        wait_for(
            lambda: self.pods() == wanted, lambda: f"{self.pods()}, not {wanted}\n{self.log()}"
        )

    def pod(self, name: str) -> Object:
        return self.api.get(f"{self.core}/pods/{name}")

    def events(self, job: str) -> list[tuple[str, str]]:
        return [
            (event["reason"], event["message"])
            for event in self.api.items(f"{self.core}/events")
            if event["involvedObject"]["name"] == job
        ]


def install(cluster: Cluster) -> None:
    """Applies deploy/kubernetes, and lets the operator lead in any namespace of a test."""
    cluster.apply(DEPLOY / "crd.yaml")
    cluster.apply(DEPLOY / "rbac.yaml")
    cluster.apply(DEPLOY / "user.yaml")
    wait_for(lambda: is_served(cluster.api), "TFJobs are not served")
    subject = {"kind": "ServiceAccount", "name": "muster-operator", "namespace": "muster"}
    rule = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"],
            "verbs": ["get", "create", "update"]}  # fmt: skip
    name = {"name": "muster-test-leases"}
    group = "rbac.authorization.k8s.io"
    cluster.create({"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": name,
                    "rules": [rule]})  # fmt: skip
    cluster.create({"apiVersion": f"{group}/v1", "kind": "ClusterRoleBinding", "metadata": name,
                    "roleRef": {"apiGroup": group, "kind": "ClusterRole", **name},
                    "subjects": [subject]})  # fmt: skip


def is_served(api: Api) -> bool:
    try:
        api.get("/apis/kubeflow.org/v1/tfjobs")
        api.get("/apis/kubeflow.org/v1alpha1/tfjobs")
        return True
    except ApiError:
        return False
