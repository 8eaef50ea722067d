"""Muster's operator where Kubeflow's training operator runs: each has namespaces of its own."""

from __future__ import annotations

import os
import pathlib
import subprocess
from typing import Iterator

import pytest
import yaml

from testbed.kubernetes.api import Api, ApiError, Object
from testbed.kubernetes.cluster import KUBEFLOW, OPERATOR, Cluster
from testbed.kubernetes.kubelet import Kubelet
from testbed.kubernetes.operators import DEPLOY, run_operator, stop_process, tfjob, wait_for
from testbed.kubernetes.peer import UNLIMITED, build_peer, start_peer

DEFINITION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/tfjobs.kubeflow.org"
INCARNATION = "muster/incarnation"
LEASE = (
    "/apis/coordination.k8s.io/v1/namespaces/kubeflow/leases/1ca428e5.training-operator.kubeflow.org"
)


@pytest.fixture(scope="module")
def kubeflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster with Kubeflow's definition of TFJobs and with its operator."""
    cluster = Cluster(pathlib.Path(tmp_path_factory.mktemp("beside")))
    try:
        cluster.start()
        cluster.apply(build_peer() / "tfjobs.yaml")
        cluster.apply(DEPLOY / "rbac.yaml")
        wait_for(lambda: is_served(cluster.api), "TFJobs are not served")
        for name in ("kubeflow", "theirs", "ours"):
            cluster.namespace(name)
        start_kubeflow(cluster)
        yield cluster
    finally:
        cluster.end("kubeflow")
        cluster.stop()


def start_kubeflow(cluster: Cluster) -> None:
    """Until it leads."""
    before = lease_renewal(cluster)
    elect = ("--leader-elect", "--leader-election-namespace", "kubeflow")
    log = cluster.folder / "peer.log"
    cluster.processes["kubeflow"] = start_peer(cluster, "", log, *UNLIMITED, *elect)
    wait_for(lambda: lease_renewal(cluster) != before, "Kubeflow's operator does not lead")


def lease_renewal(cluster: Cluster) -> str:
    lease = cluster.api.find(LEASE)
    return lease["spec"].get("renewTime", "") if lease else ""


def is_served(api: Api) -> bool:
    try:
        api.get("/apis/kubeflow.org/v1/tfjobs")
        return True
    except ApiError:
        return False


def jobs(namespace: str) -> str:
    return f"/apis/kubeflow.org/v1/namespaces/{namespace}/tfjobs"


def find_pod(cluster: Cluster, namespace: str, name: str) -> Object:
    path = f"/api/v1/namespaces/{namespace}/pods/{name}"
    return wait_for(lambda: cluster.api.find(path), f"no pod {name}")


def refusal(cluster: Cluster, *flags: str) -> str:
    """Why an operator does not start."""
    config = cluster.kubeconfig(OPERATOR, "refused", namespace="muster")
    words = [os.environ["MUSTER_BINARY"], "operator", "--kubeconfig", str(config),
             "--health-port", "-1", *flags]  # fmt: skip
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1, done.stderr
    return done.stderr


def replace_definition(cluster: Cluster) -> None:
    """kubectl replace -f deploy/kubernetes/crd.yaml"""
    definition = yaml.safe_load((DEPLOY / "crd.yaml").read_text())
    found = cluster.api.get(DEFINITION)
    definition["metadata"]["resourceVersion"] = found["metadata"]["resourceVersion"]
    cluster.api.call("PUT", DEFINITION, definition)


def is_kept_away(cluster: Cluster) -> bool:
    """Whether the policy is in force for Kubeflow's operator."""
    api = Api(cluster.port, cluster.folder / "ca.crt", KUBEFLOW)
    try:
        api.create(f"{jobs('ours')}?dryRun=All", tfjob("try", {"Worker": 1}))
        return False
    except ApiError as error:
        assert error.code == 422 and "are Muster's" in str(error), error
        return True


def test_each_has_its_namespaces(kubeflow: Cluster, tmp_path: pathlib.Path) -> None:
    api = kubeflow.api
    kubelets = [Kubelet(api, "ours"), Kubelet(api, "theirs")]
    api.create(jobs("theirs"), tfjob("stored", {"Worker": 1}))
    find_pod(kubeflow, "theirs", "stored-worker-0")
    said = refusal(kubeflow)
    assert "is not Muster's" in said and "kubectl replace -f deploy/kubernetes/crd.yaml" in said

    replace_definition(kubeflow)
    assert api.get(f"{jobs('theirs')}/stored")["spec"]["tfReplicaSpecs"]["Worker"]["replicas"] == 1
    said = refusal(kubeflow)
    assert "its Lease kubeflow/1ca428e5.training-operator.kubeflow.org" in said
    assert "kubectl label namespace NAMESPACE muster/operator=enabled" in said
    said = refusal(kubeflow, "--namespace", "ours")
    assert "kubectl label namespace ours muster/operator=enabled" in said

    api.merge("/api/v1/namespaces/ours", {"metadata": {"labels": {"muster/operator": "enabled"}}})
    assert "The namespace theirs is not labelled" in refusal(kubeflow, "--namespace", "theirs")
    kubeflow.apply(DEPLOY / "beside-kubeflow.yaml")
    wait_for(lambda: is_kept_away(kubeflow), "Kubeflow's operator is not kept away")
    config = kubeflow.kubeconfig(OPERATOR, "beside", namespace="muster")
    operator = run_operator(config, tmp_path / "operator.log")
    try:
        for namespace in ("ours", "theirs"):
            api.create(jobs(namespace), tfjob("j", {"Worker": 2}))
        for index in (0, 1):
            pod = find_pod(kubeflow, "ours", f"j-worker-{index}")
            assert INCARNATION in pod["metadata"]["annotations"]
            pod = find_pod(kubeflow, "theirs", f"j-worker-{index}")
            assert INCARNATION not in pod["metadata"].get("annotations", {})
        wait_for(lambda: state(api, "ours", "j") == "Running", (tmp_path / "operator.log").read_text)
        kubelets[0].end("j-worker-0", 0)
        kubelets[1].end("j-worker-0", 0)
        for namespace in ("ours", "theirs"):
            wait_for(lambda: state(api, namespace, "j") == "Succeeded", f"j in {namespace}")
        assert "muster" not in api.get(f"{jobs('theirs')}/j")["status"]
        assert not [event for event in api.items("/api/v1/namespaces/ours/events")
                    if event["source"]["component"] == "tfjob-controller"]  # fmt: skip
    finally:
        stop_process(operator)
        for kubelet in kubelets:
            kubelet.stop()


def test_a_kubeflow_that_comes_later_ends_the_operator(
    kubeflow: Cluster, tmp_path: pathlib.Path
) -> None:
    """A lease that was not renewed for five minutes was left behind by one that is gone."""
    kubeflow.end("kubeflow")
    replace_definition(kubeflow)
    kubeflow.api.merge(LEASE, {"spec": {"renewTime": "2024-01-01T00:00:00.000000Z"}})
    log = tmp_path / "operator.log"
    config = kubeflow.kubeconfig(OPERATOR, "alone", namespace="muster")
    operator = run_operator(config, log, "--lease", "60")
    try:
        wait_for(lambda: "leads: it has" in log.read_text(), log.read_text)
        kubeflow.api.create(jobs("theirs"), tfjob("alone", {"Worker": 1}))
        pod = find_pod(kubeflow, "theirs", "alone-worker-0")
        assert INCARNATION in pod["metadata"]["annotations"]
        start_kubeflow(kubeflow)
        wait_for(lambda: operator.poll() is not None, log.read_text)
        assert operator.returncode == 1
        assert "has come into this cluster (its Lease kubeflow/" in log.read_text()
        assert "muster/operator=enabled" in log.read_text()
    finally:
        stop_process(operator)


def state(api: Api, namespace: str, name: str) -> str:
    conditions = api.get(f"{jobs(namespace)}/{name}").get("status", {}).get("conditions", [])
    return conditions[-1]["type"] if conditions else ""
