"""Pods whose containers are processes: volumes, names, ends, restarts, logs."""

from __future__ import annotations

import base64
import os
import pathlib
import signal
import subprocess
import sys
import time
from typing import Any

import pytest

from testbed.kubernetes.api import Object
from testbed.kubernetes.operators import wait_for


def make(space: ProcessSpace, name: str, script: str, policy: str = "Never", **more: Any) -> None:
    container = {"name": "tensorflow", "image": "image", "command": ["sh", "-c", script],
                 "terminationMessagePolicy": "FallbackToLogsOnError",
                 **more.pop("container", {})}  # fmt: skip
    labels = {"app": name}
    space.api.create(f"{space.core}/pods", {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels},
        "spec": {"restartPolicy": policy, "containers": [container], **more},
    })  # fmt: skip


def serve(space: ProcessSpace, name: str) -> None:
    space.api.create(f"{space.core}/services", {
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"clusterIP": "None", "selector": {"app": name}},
    })  # fmt: skip


def wait_phase(space: ProcessSpace, name: str, phase: str) -> Object:
    wait_for(lambda: space.pod(name)["status"]["phase"] == phase, lambda: space.pod(name))
    return space.pod(name)


def terminated(pod: Object) -> Object:
    state: Object = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    return state


def read_log(space: ProcessSpace, name: str, query: str = "") -> str:
    """As kubectl logs does: through the API server."""
    connection = space.api.connect()
    headers = space.api.headers("application/json")
    connection.request("GET", f"{space.core}/pods/{name}/log?{query}", None, headers)
    return connection.getresponse().read().decode()


def test_ends_and_logs(process_space: ProcessSpace) -> None:
    space = process_space
    make(space, "good", "echo one; echo two; hostname")
    make(space, "bad", "echo because; exit 3")
    make(space, "killed", "kill -9 $$$$; sleep 60 & wait")  # the first process of a container lives
    make(space, "lines", "echo one; sleep 1; echo two; sleep 60")
    assert terminated(wait_phase(space, "good", "Succeeded"))["reason"] == "Completed"
    assert read_log(space, "good") == "one\ntwo\ngood\n"
    assert read_log(space, "good", "tailLines=1") == "good\n"
    assert read_log(space, "good", "limitBytes=5") == "one\nt"
    stamped = read_log(space, "good", "timestamps=true&tailLines=1")
    assert stamped.startswith("20") and stamped.endswith("Z good\n")
    end = terminated(wait_phase(space, "bad", "Failed"))
    assert (end["exitCode"], end["reason"], end["message"]) == (3, "Error", "because\n")
    wait_for(lambda: "one" in space.kubelet.log("lines"))
    space.api.delete(f"{space.core}/pods/lines", grace=2)
    assert read_log(space, "lines", "follow=true") == "one\ntwo\n"
    space.kubelet.kill("killed")
    assert terminated(wait_phase(space, "killed", "Failed"))["exitCode"] == 137


def test_names_ports_volumes_and_environment(process_space: ProcessSpace) -> None:
    space = process_space
    space.api.create(f"{space.core}/secrets", {
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"},
        "data": {"key": base64.b64encode(b"secret").decode()},
    })  # fmt: skip
    space.cluster.create({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "c", "namespace": space.name},
        "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}},
    })  # fmt: skip
    server = "import socket\ns = socket.create_server(('0.0.0.0', 2222))\ns.accept()[0].send(b'%s')"
    for name in ["a", "b"]:
        serve(space, name)
        make(space, name, f'exec {sys.executable} -c "{server % name}"')
    # As that user sees this machine's files there may be no Python.
    client = f"""for name in a b.{space.name}.svc; do
  until bash -c "cat </dev/tcp/$name/2222"; do sleep 0.1; done 2>/dev/null
  echo
done
id -u; id -G; cat /s/key; stat -L -c ' %a %u:%g' /s/key; echo $NAME $GREETING >/c/file"""
    make(space, "client", client, container={
        "volumeMounts": [{"name": "s", "mountPath": "/s"}, {"name": "c", "mountPath": "/c"}],
        "env": [{"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                {"name": "GREETING", "value": "hello $(NAME)"}],
    }, securityContext={"runAsUser": 12345, "runAsGroup": 12, "fsGroup": 77}, volumes=[
        {"name": "s", "secret": {"secretName": "s", "defaultMode": 0o400}},
        {"name": "c", "persistentVolumeClaim": {"claimName": "c"}},
    ])  # fmt: skip
    wait_phase(space, "client", "Succeeded")
    said = space.kubelet.log("client").splitlines()
    assert said == ["a", "b", "12345", "12 77", "secret 440 0:77"]
    assert (space.kubelet.claims / "c" / "file").read_text() == "client hello client\n"


def test_restarts_deletions_and_evictions(process_space: ProcessSpace) -> None:
    space = process_space
    make(space, "again", "test -e /d/x && exit 0; touch /d/x; exit 1", "OnFailure",
         container={"volumeMounts": [{"name": "d", "mountPath": "/d"}]},
         volumes=[{"name": "d", "emptyDir": {}}])  # fmt: skip
    handler = "trap 'echo asked; exit 5' TERM; while :; do sleep 0.05; done"
    make(space, "polite", handler)
    make(space, "deaf", "sleep 1000")  # as first process it does not end by SIGTERM
    make(space, "evicted", handler)
    make(space, "drained", handler)
    make(space, "greedy", f'exec {sys.executable} -c "x = bytearray(200 << 20); input()"; :',
         container={"resources": {"limits": {"memory": "64Mi"}}})  # fmt: skip
    done = wait_phase(space, "again", "Succeeded")["status"]["containerStatuses"][0]
    assert done["restartCount"] == 1 and done["lastState"]["terminated"]["exitCode"] == 1
    end = terminated(wait_phase(space, "greedy", "Failed"))
    assert (end["exitCode"], end["reason"]) == (137, "OOMKilled")
    for name in ["polite", "deaf", "evicted", "drained"]:
        wait_phase(space, name, "Running")
    space.kubelet.evict("evicted")
    assert wait_phase(space, "evicted", "Failed")["status"]["reason"] == "Evicted"
    space.api.create(f"{space.core}/pods/drained/eviction", {
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "drained"},
    })  # fmt: skip
    wait_for(lambda: "drained" not in space.pods())
    space.api.delete(f"{space.core}/pods/polite")
    space.api.delete(f"{space.core}/pods/deaf", grace=1)
    wait_for(lambda: not {"polite", "deaf"} & set(space.pods()), space.pods)


def test_what_cannot_start_says_why(process_space: ProcessSpace) -> None:
    space = process_space
    make(space, "image", "true", container={"image": "example/none:1"})
    make(space, "claim", "true", container={"volumeMounts": [{"name": "v", "mountPath": "/v"}]},
         volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "none"}}])  # fmt: skip

    def waiting(name: str) -> Object:
        statuses = space.pod(name)["status"].get("containerStatuses", [{}])
        found: Object = statuses[0].get("state", {}).get("waiting", {})
        return found

    wait_for(lambda: waiting("image").get("reason") == "ErrImagePull")
    wait_for(lambda: "none" in waiting("claim").get("message", ""))


OWNER = """
import sys
from testbed.kubernetes.node import Node
from testbed.kubernetes.process_space import ProcessSpace
node = Node()
node.add("p")
container = node.start("p", "sleep 98765")
print(node.first, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_node_dies_with_its_owner(
    process_space: ProcessSpace, repository: pathlib.Path, how: int
) -> None:
    owner = subprocess.Popen([sys.executable, "-c", OWNER], cwd=repository,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # fmt: skip
    assert owner.stdout
    first = int(owner.stdout.readline())
    owner.send_signal(how)
    owner.communicate()
    deadline = time.monotonic() + 20
    while os.path.exists(f"/proc/{first}") or "sleep\00098765" in commands():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def commands() -> str:
    texts = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            texts.append(path.read_text(errors="replace"))
        except OSError:
            pass
    return "\n".join(texts)
