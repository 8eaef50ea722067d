"""The client of Kubernetes' API against a real API server."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
from typing import Any, Iterator

import pytest

from testbed.kubernetes.cluster import ADMINISTRATOR, OPERATOR, RENEWED, STRANGER, Cluster

REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}


class Probe:
    def __init__(self, config: pathlib.Path, page_size: int = 500):
        program = pathlib.Path(os.environ["MUSTER_BINARY"]).parent / "muster-kubernetes-probe"
        self.process = subprocess.Popen(
            [str(program), str(config), str(page_size)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def send(self, **call: Any) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps(call) + "\n")
        self.process.stdin.flush()

    def read(self) -> dict[str, Any]:
        assert self.process.stdout
        return json.loads(self.process.stdout.readline())

    def call(self, op: str, target: str, **more: Any) -> dict[str, Any]:
        self.send(op=op, target=target, **more)
        return self.read()

    def ok(self, op: str, target: str, **more: Any) -> dict[str, Any]:
        result = self.call(op, target, **more)
        assert "ok" in result, result
        return result["ok"]

    def end(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        assert self.process.wait(timeout=60) == 0


@pytest.fixture
def probe(cluster: Cluster) -> Iterator[Probe]:
    started = Probe(cluster.kubeconfig(ADMINISTRATOR, "probe"), page_size=7)
    yield started
    started.end()


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def make_maps(cluster: Cluster, namespace: str, count: int) -> str:
    path = cluster.namespace(namespace) + "/configmaps"
    for i in range(count):
        cluster.api.create(path, config_map(f"m-{i:02d}"))
    return path


def test_an_object_lives_and_conflicts_are_told_apart(cluster: Cluster, probe: Probe) -> None:
    path = cluster.namespace("client-life") + "/configmaps"
    made = probe.ok("create", path, body=config_map("a", x="1"))
    assert probe.call("create", path, body=config_map("a"))["code"] == "ALREADY_EXISTS"
    changed = probe.ok("merge", f"{path}/a", body={"data": {"x": "2"}})
    assert changed["data"] == {"x": "2"}
    stale = probe.call("replace", f"{path}/a", body=made)
    assert stale["code"] == "ABORTED" and "modified" in stale["message"]
    other = probe.call("delete", f"{path}/a", uid="00000000-0000-0000-0000-000000000000")
    assert other["code"] == "ABORTED"
    probe.ok("delete", f"{path}/a", uid=made["metadata"]["uid"])
    assert probe.call("get", f"{path}/a")["code"] == "NOT_FOUND"
    assert probe.call("create", path, body={"kind": "ConfigMap"})["code"] == "INVALID_ARGUMENT"
    absent = probe.call("get", "/apis/muster.test/v1/nothing")
    assert absent["code"] == "NOT_FOUND"


def test_a_list_comes_in_pages_and_by_label(cluster: Cluster, probe: Probe) -> None:
    path = make_maps(cluster, "client-pages", 30)
    cluster.api.merge(f"{path}/m-04", {"metadata": {"labels": {"app": "a", "n": "4"}}})
    names = probe.ok("list", path)["names"]
    assert [name for name in names if name.startswith("m-")] == [f"m-{i:02d}" for i in range(30)]
    assert probe.ok("list", path, selector="app=a,n!=5")["names"] == ["m-04"]


def test_a_version_that_is_too_old_is_out_of_range(cluster: Cluster, probe: Probe) -> None:
    cluster.restart_server()  # it knows nothing of the time before
    result = probe.call("watch", "/api/v1/configmaps", version="1")
    assert result["code"] == "OUT_OF_RANGE", result


def test_a_refusal_says_who_may_not_do_what(cluster: Cluster) -> None:
    stranger = Probe(cluster.kubeconfig(STRANGER, "stranger"))
    refused = stranger.call("list", "/api/v1/pods")
    assert refused["code"] == "PERMISSION_DENIED"
    assert 'User "stranger" cannot list resource "pods"' in refused["message"]
    stranger.end()
    nobody = Probe(cluster.kubeconfig("no-token-of-this-cluster", "nobody"))
    unknown = nobody.call("list", "/api/v1/pods")
    assert unknown["code"] == "UNAUTHENTICATED"
    assert "nobody.kubeconfig" in unknown["message"] and "no-token" not in unknown["message"]
    nobody.end()


def test_a_client_certificate_is_who_one_is(cluster: Cluster) -> None:
    probe = Probe(cluster.certificate_config())
    review = probe.ok("create", REVIEWS, body=REVIEW)
    assert review["status"]["userInfo"]["username"] == "root"
    probe.end()


def test_a_renewed_token_is_used_from_the_next_call_on(
    cluster: Cluster, tmp_path: pathlib.Path
) -> None:
    token = tmp_path / "token"

    def write(text: str) -> None:
        (tmp_path / "new").touch(mode=0o600)
        (tmp_path / "new").write_text(text)
        (tmp_path / "new").rename(token)

    write(OPERATOR)
    probe = Probe(cluster.kubeconfig("", "file", token_file=str(token)))
    probe.ok("create", REVIEWS, body=REVIEW)
    write("expired")
    assert probe.call("create", REVIEWS, body=REVIEW)["code"] == "UNAUTHENTICATED"
    write(RENEWED)
    user = probe.ok("create", REVIEWS, body=REVIEW)["status"]["userInfo"]["username"]
    assert user == "system:serviceaccount:muster:muster-operator"
    probe.end()


def test_a_reflector_follows_changes_and_a_restart_of_the_server(cluster: Cluster) -> None:
    path = make_maps(cluster, "client-reflector", 3)
    cluster.api.call("DELETE", path, None)
    probe = Probe(cluster.kubeconfig(ADMINISTRATOR, "reflector"))

    def until(event: str, name: str) -> None:
        while True:
            line = probe.read()
            if line.get("event") == event and line.get("name") == name:
                return

    cluster.api.create(path, config_map("first"))
    probe.send(op="reflect", target=path)
    until("set", "first")
    cluster.api.create(path, config_map("second"))
    until("set", "second")
    cluster.api.delete(f"{path}/second")
    until("remove", "second")
    cluster.restart_server()
    cluster.api.create(path, config_map("third"))
    until("set", "third")
    probe.end()
