"""Operators of different Leases that watch the same namespace: each job is run by one of them."""

from __future__ import annotations

import pathlib
import subprocess
from typing import Iterator

import pytest

from testbed.kubernetes.api import Api, ApiError
from testbed.kubernetes.cluster import OPERATOR, Cluster
from testbed.kubernetes.kubelet import Kubelet
from testbed.kubernetes.operators import (
    DEPLOY, is_served, run_operator, stop_process, tfjob, wait_for,
)  # fmt: skip
from testbed.kubernetes.proxy import Proxy

GROUP = "rbac.authorization.k8s.io"
LEASES = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"],
          "verbs": ["get", "create", "update"]}  # fmt: skip


@pytest.fixture
def deployed(tmp_path: pathlib.Path) -> Iterator[Cluster]:
    """With the rights of deploy/kubernetes/rbac.yaml, and a Lease in the namespace `team`."""
    cluster = Cluster(tmp_path)
    try:
        cluster.start()
        cluster.apply(DEPLOY / "crd.yaml")
        cluster.apply(DEPLOY / "rbac.yaml")
        wait_for(lambda: is_served(cluster.api), "TFJobs are not served")
        for name in ("team", "rest"):
            cluster.namespace(name)
        grant_lease(cluster, "team")
        yield cluster
    finally:
        cluster.stop()


def grant_lease(cluster: Cluster, namespace: str) -> None:
    metadata = {"name": "lease", "namespace": namespace}
    subject = {"kind": "ServiceAccount", "name": "muster-operator", "namespace": "muster"}
    for kind, rest in {
        "Role": {"rules": [LEASES]},
        "RoleBinding": {"roleRef": {"apiGroup": GROUP, "kind": "Role", "name": "lease"},
                        "subjects": [subject]},
    }.items():  # fmt: skip
        cluster.create({"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": metadata, **rest})


class Operator:
    """One with a Lease of its own, and what it changes, but for Leases and events."""

    def __init__(self, cluster: Cluster, lease: str, *flags: str, seconds: int = 60):
        self.lease = f"{lease}/muster-operator"
        self.proxy = Proxy(cluster)
        self.path = cluster.folder / f"{lease}.log"
        config = cluster.kubeconfig(OPERATOR, lease, server=self.proxy.server, namespace=lease)
        self.process: subprocess.Popen[bytes] = run_operator(
            config, self.path, "--lease", str(seconds), *flags
        )
        wait_for(lambda: "leads: it has the lease" in self.log(), self.log)

    def log(self) -> str:
        return self.path.read_text()

    def changes(self, namespace: str) -> list[str]:
        found = f"/namespaces/{namespace}/"
        return [c for c in self.proxy.calls if found in c and "/events" not in c]

    def stop(self) -> None:
        stop_process(self.process)
        self.proxy.stop()


def test_a_job_is_run_by_the_operators_of_one_lease(deployed: Cluster) -> None:
    api = deployed.api
    kubelets = [Kubelet(api, "team"), Kubelet(api, "rest")]
    operators = [team := Operator(deployed, "team", "--namespace", "team", seconds=30)]

    def jobs(namespace: str) -> str:
        return f"/apis/kubeflow.org/v1/namespaces/{namespace}/tfjobs"

    def own(namespace: str, name: str) -> dict:
        return dict(api.get(f"{jobs(namespace)}/{name}").get("status", {}).get("muster", {}))

    def runs(namespace: str, name: str) -> bool:
        path = f"/api/v1/namespaces/{namespace}/pods/{name}-worker-0"
        pod = api.find(path)
        return pod is not None and pod["status"].get("phase") == "Running"

    try:
        api.create(jobs("team"), tfjob("first", {"Worker": 1}, "ExitCode"))
        wait_for(lambda: runs("team", "first"), team.log)
        operators.append(every := Operator(deployed, "muster"))
        leaves = "leaves the job team/first and others alone: "
        wait_for(lambda: leaves in every.log() and "by the lease team/muster-operator" in every.log(),
                 every.log)  # fmt: skip

        # Both see these at once. Who comes second is refused when it claims the job.
        names = [f"j{i}" for i in range(8)]
        for name in names:
            api.create(jobs("team"), tfjob(name, {"Worker": 1}, "ExitCode"))
        api.create(jobs("rest"), tfjob("other", {"Worker": 1}, "ExitCode"))
        for name in names:
            wait_for(lambda: runs("team", name), team.log)
            lease = own("team", name)["lease"]
            (stranger,) = [each for each in operators if each.lease != lease]
            done = [call for call in stranger.changes("team") if name in call]
            assert all(f"PUT {jobs('team')}/{name}/status" in call for call in done), done
        wait_for(lambda: runs("rest", "other"), every.log)
        assert own("rest", "other")["lease"] == "muster/muster-operator"
        assert team.changes("rest") == []
        assert not [call for call in every.changes("team") if "first" in call]

        # The other one takes over when the lease was not renewed for its length, and keeps the job.
        stop_process(team.process)
        kubelets[0].end("first-worker-0", 137)
        wait_for(lambda: kubelets[0].incarnations("first-worker-0") == ["1", "2"], every.log)
        assert "takes over the jobs of the lease team/muster-operator" in every.log()
        wait_for(lambda: own("team", "first")["lease"] == every.lease, every.log)
        team.stop()
        operators.append(team := Operator(deployed, "team", "--namespace", "team"))
        wait_for(lambda: "by the lease muster/muster-operator" in team.log(), team.log)
        kubelets[0].end("first-worker-0", 0)
        wait_for(lambda: own("team", "first").get("state", {}).get("phase") == "succeeded",
                 lambda: f"{own('team', 'first')}")  # fmt: skip
        assert team.changes("team") == []
    finally:
        for operator in operators:
            operator.stop()
        for kubelet in kubelets:
            kubelet.stop()


def is_forbidden(operator: Api) -> bool:
    leases = "/apis/coordination.k8s.io/v1/namespaces/team/leases/muster-operator"
    try:
        operator.find(leases)
        return False
    except ApiError as error:
        return error.code == 403


def test_a_lease_that_may_not_be_seen_leaves_its_jobs_alone(deployed: Cluster) -> None:
    """As with the rights that an earlier rbac.yaml gave."""
    api = deployed.api
    kubelet = Kubelet(api, "rest")
    jobs = "/apis/kubeflow.org/v1/namespaces/rest/tfjobs"
    team = Operator(deployed, "team")
    try:
        api.create(jobs, tfjob("j", {"Worker": 1}))
        wait_for(lambda: kubelet.incarnations("j-worker-0") == ["1"], team.log)
    finally:
        team.stop()
    api.delete(f"/apis/{GROUP}/v1/namespaces/team/rolebindings/lease")
    path = f"/apis/{GROUP}/v1/clusterroles/muster-operator"
    role = api.get(path)
    for rule in role["rules"]:
        if "muster-operator" in rule.get("resourceNames", []):
            rule["resourceNames"].remove("muster-operator")
    api.call("PUT", path, role)
    operator = Api(deployed.port, deployed.folder / "ca.crt", OPERATOR)
    wait_for(lambda: is_forbidden(operator), "the server does not know that the right is gone")
    every = Operator(deployed, "muster")
    try:
        said = "cannot see whether the operators of the lease team/muster-operator run it"
        wait_for(lambda: said in every.log(), every.log)
        assert "kubectl apply -f deploy/kubernetes/rbac.yaml" in every.log()
        assert every.changes("rest") == []
    finally:
        every.stop()
        kubelet.stop()
