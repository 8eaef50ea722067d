"""Fixtures of tests against a real API server; a conftest.py takes them over by name."""

from __future__ import annotations

import os
import pathlib
import re
from typing import Iterator

import pytest

from testbed.jobs import Jobs
from testbed.kubernetes import node
from testbed.kubernetes.api import Api, ApiError
from testbed.kubernetes.cluster import USER, Cluster
from testbed.kubernetes.egress import Egress
from testbed.kubernetes.logs import PodLogs
from testbed.kubernetes.operators import Space, install, wait_for
from testbed.kubernetes.process_kubelet import ProcessKubelet
from testbed.kubernetes.process_space import ProcessSpace


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One API server for all tests of a process; each test has a namespace of its own."""
    started = Cluster(pathlib.Path(tmp_path_factory.mktemp("kubernetes")))
    started.egress = Egress(started.folder)
    try:
        started.start()
        yield started
    finally:
        started.stop()


@pytest.fixture(scope="session")
def installed(cluster: Cluster) -> Cluster:
    """The API server with what deploy/kubernetes has."""
    install(cluster)
    return cluster


@pytest.fixture
def space(
    installed: Cluster, request: pytest.FixtureRequest, tmp_path: pathlib.Path
) -> Iterator[Space]:
    """A namespace of the test's own, without an operator yet."""
    made = Space(installed, namespace_of(request), tmp_path)
    yield made
    made.stop()


@pytest.fixture
def process_space(
    installed: Cluster, request: pytest.FixtureRequest, tmp_path: pathlib.Path
) -> Iterator[ProcessSpace]:
    """As `space`, with pods whose containers run, write logs and find each other by name."""
    if why := node.available():
        pytest.skip(why)
    name = namespace_of(request)
    kubelet = ProcessKubelet(installed, name, tmp_path)
    try:
        yield (made := ProcessSpace(installed, name, tmp_path, kubelet))
        made.stop()
    finally:
        kubelet.stop()


def namespace_of(request: pytest.FixtureRequest) -> str:
    return re.sub(r"[^a-z0-9]+", "-", request.node.name.lower())[:50].strip("-")


@pytest.fixture(scope="session")
def pod_logs(installed: Cluster) -> Iterator[PodLogs]:
    """What the pods of the pretending kubelet have written."""
    served = PodLogs(installed)
    yield served
    served.stop()


@pytest.fixture
def user(space: Space, pod_logs: PodLogs, tmp_path: pathlib.Path) -> Jobs:
    """A person who may do in the test's namespace what deploy/kubernetes/user.yaml allows."""
    return make_user(space, tmp_path)


@pytest.fixture
def process_user(process_space: ProcessSpace, tmp_path: pathlib.Path) -> Jobs:
    """As `user`, in the namespace whose pods are processes."""
    return make_user(process_space, tmp_path)


def make_user(space: Space, folder: pathlib.Path) -> Jobs:
    group = "rbac.authorization.k8s.io"
    space.cluster.create({
        "apiVersion": f"{group}/v1", "kind": "RoleBinding",
        "metadata": {"name": "user", "namespace": space.name},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "muster-user"},
        "subjects": [{"kind": "User", "name": "user"}],
    })  # fmt: skip
    person = Api(space.cluster.port, space.cluster.folder / "ca.crt", USER)
    wait_for(lambda: may_get(person, space.jobs), "the server does not know the right")
    jobs = Jobs(os.environ["MUSTER_BINARY"], folder)
    config = space.cluster.kubeconfig(USER, f"user-{space.name}", namespace=space.name)
    jobs.environment["KUBECONFIG"] = str(config)
    return jobs


def may_get(api: Api, path: str) -> bool:
    try:
        api.get(path)
        return True
    except ApiError:
        return False
