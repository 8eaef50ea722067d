"""Calls and watches that fail in every way, a renewed token, a vanishing namespace, a definition of
another controller. The end is that of an undisturbed run.
"""

from __future__ import annotations

import collections
import contextlib
import re
import signal
import threading
from typing import Iterator

import pytest
import yaml

from testbed.kubernetes.api import MERGE
from testbed.kubernetes.cluster import OPERATOR, RENEWED
from testbed.kubernetes.operators import DEADLINE, DEPLOY, Space, is_served, tfjob, wait_for
from testbed.kubernetes.proxy import Call, Proxy
from testbed.kubernetes.story import Story, check_end, submit

DEFINITION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/tfjobs.kubeflow.org"
# Of a definition that knows nothing of Muster.
STATUS = {"type": "object", "properties": {
    "conditions": {"type": "array", "items": {
        "type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    "replicaStatuses": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
}}  # fmt: skip
CALLS = 24  # of an undisturbed job, or more


@pytest.mark.parametrize("fault", ["410", "429", "500", "503", "cut", "lost", "timeout"])
def test_any_call_fails(space: Space, fault: str) -> None:
    """As many jobs at once as a job has calls: call n of job n fails."""
    Story(space.kubelet)
    proxy = Proxy(space.cluster)
    lock = threading.Lock()
    counts: dict[str, int] = collections.Counter()
    failed: set[str] = set()

    def judge(call: Call) -> str:
        name = re.search(r"\bj([0-9]+)\b", call.target) or re.search(rb"\bj([0-9]+)\b", call.body)
        if not name or call.is_watch:
            return ""
        job = str(int(name[1]))
        with lock:
            counts[job] += 1
            if counts[job] != int(job):
                return ""
            failed.add(job)
        return fault

    proxy.judge = judge
    space.start_operator("--workers", "24", server=proxy.server)
    # A call without an answer takes 20 s.
    numbers = range(1, CALLS + 1, 4 if fault == "timeout" else 1)
    for number in numbers:
        submit(space, f"j{number}")
    for number in numbers:
        check_end(space, f"j{number}")
    assert len(failed) > len(numbers) / 2, (failed, counts)
    assert space.operators[0].poll() is None
    proxy.stop()


def test_watches_are_cut_and_repeat_themselves(space: Space) -> None:
    Story(space.kubelet)
    proxy = Proxy(space.cluster)
    proxy.repeats_events = True
    space.start_operator(server=proxy.server)
    names = [f"j{number}" for number in range(8)]
    for name in names:
        submit(space, name)
        proxy.cut()
    for name in names:
        check_end(space, name)
        proxy.cut()
    assert space.operators[0].poll() is None
    proxy.stop()


def test_a_watch_that_is_too_old_begins_anew(space: Space) -> None:
    """Each second watch is refused, and what happened meanwhile is found by a list."""
    Story(space.kubelet)
    proxy = Proxy(space.cluster)
    watches = 0

    def judge(call: Call) -> str:
        nonlocal watches
        watches += call.is_watch
        return "410" if call.is_watch and watches % 2 else ""

    proxy.judge = judge
    space.start_operator(server=proxy.server)
    for number in range(4):
        submit(space, f"j{number}")
        proxy.cut()
        check_end(space, f"j{number}")
    assert watches > 8
    proxy.stop()


def test_a_lease_that_cannot_be_had_is_told(space: Space) -> None:
    proxy = Proxy(space.cluster)
    refuses = True

    def judge(call: Call) -> str:
        return "503" if refuses and f"/{space.name}/leases" in call.target else ""

    proxy.judge = judge
    space.start_operator(server=proxy.server)
    said = f"waits: cannot have the lease {space.name}/muster-operator"
    wait_for(lambda: said in space.log(), space.log)
    refuses = False
    wait_for(lambda: "leads: it has" in space.log(), space.log)
    proxy.stop()


def test_a_renewed_token_is_used_at_once(space: Space) -> None:
    proxy = Proxy(space.cluster)
    tokens: list[str] = []

    def judge(call: Call) -> str:
        tokens.append(call.authorization.removeprefix("Bearer "))
        return "401" if tokens[-1] == OPERATOR and is_renewed else ""

    is_renewed = False
    proxy.judge = judge
    token = space.folder / "token"
    token.write_text(OPERATOR)
    token.chmod(0o600)
    space.start_operator(server=proxy.server, token_file=str(token))
    space.submit(tfjob("a", {"Worker": 1}))
    space.wait_condition("a", "Running")
    renewed = space.folder / "renewed"
    renewed.write_text(RENEWED)
    renewed.chmod(0o600)
    renewed.rename(token)
    is_renewed = True
    proxy.cut()
    space.submit(tfjob("b", {"Worker": 1}))
    space.wait_condition("b", "Running")
    assert set(tokens) == {OPERATOR, RENEWED}
    assert space.operators[0].poll() is None
    proxy.stop()


def test_a_namespace_that_is_deleted_takes_its_jobs_along(space: Space) -> None:
    lease = f"{space.name}-lease"
    space.cluster.namespace(lease)
    operator = space.start_operator(lease=lease)
    job = tfjob("j", {"Worker": 2}, "ExitCode")
    # The namespace's controller waits as long before it looks again.
    pod = job["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]
    pod["terminationGracePeriodSeconds"] = 1
    space.submit(job)
    space.wait_condition("j", "Running")
    space.api.delete(f"/api/v1/namespaces/{space.name}")
    wait_for(lambda: space.api.find(f"/api/v1/namespaces/{space.name}") is None, space.log)
    assert operator.poll() is None
    assert set(space.kubelet.incarnations("j-worker-0")) == {"1"}
    operator.send_signal(signal.SIGTERM)
    assert operator.wait(timeout=DEADLINE) == 0


@contextlib.contextmanager
def foreign_definition(space: Space) -> Iterator[None]:
    """As when somebody installs Kubeflow's own below a running operator, and mends it then."""
    ours = next(iter(yaml.safe_load_all((DEPLOY / "crd.yaml").read_text())))
    without = space.api.get(DEFINITION)
    del without["metadata"]["annotations"]["muster/definition"]
    for version in without["spec"]["versions"]:
        version["schema"]["openAPIV3Schema"]["properties"]["status"] = STATUS
    try:
        space.api.call("PUT", DEFINITION, without)
        yield
    finally:
        current = space.api.get(DEFINITION)["metadata"]["resourceVersion"]
        ours["metadata"]["resourceVersion"] = current
        space.api.call("PUT", DEFINITION, ours)
        wait_for(lambda: is_served(space.api))


def start_restarted_job(space: Space, name: str) -> None:
    """Two workers run, the second of them in incarnation 3."""
    space.start_operator()
    space.submit(tfjob(name, {"Worker": 2}, "ExitCode"))
    space.wait_condition(name, "Running")
    space.kubelet.end(f"{name}-worker-1", 137)
    wait_for(lambda: space.kubelet.incarnations(f"{name}-worker-1") == ["2", "3"], space.log)
    space.wait_condition(name, "Running")


def test_a_definition_that_drops_the_state_is_named_with_what_mends_it(space: Space) -> None:
    command = "kubectl apply -f deploy/kubernetes/crd.yaml"

    def told(job: str) -> list[str]:
        return [text for why, text in space.events(job) if why == "InvalidDefinition"]

    start_restarted_job(space, "before")
    with foreign_definition(space):
        wait_for(lambda: "muster" not in space.job("before")["status"])
        space.submit(tfjob("after", {"Worker": 1}))
        wait_for(lambda: command in space.log(), space.log)
        (said,) = wait_for(lambda: told("after"))
        assert "does not keep status.muster" in said and command in said
        assert not [pod for pod in space.pods() if pod.startswith("after-")]
        # What the operator has to write now would remove what is hidden, and is not written.
        space.kubelet.end("before-worker-1", 137)
        (said,) = wait_for(lambda: told("before"), space.log)
        assert command in said
    space.wait_condition("after", "Running")
    # What was hidden meanwhile is there again.
    wait_for(lambda: len(space.kubelet.incarnations("before-worker-1")) == 3, space.log)
    space.kubelet.end("before-worker-0", 0)
    space.wait_condition("before", "Succeeded")
    assert space.kubelet.incarnations("before-worker-0") == ["1"]
    tasks = space.job("before")["status"]["muster"]["state"]["tasks"]
    assert tasks["worker-1"]["restarts"] == 2
    assert "StateLost" not in [why for why, _ in space.events("before")]


def test_a_state_that_somebodys_change_removes_is_rebuilt_from_the_pods(space: Space) -> None:
    start_restarted_job(space, "j")
    with foreign_definition(space):
        wait_for(lambda: "muster" not in space.job("j")["status"])
        space.api.merge(f"{space.jobs}/j", {"metadata": {"labels": {"changed": "by-hand"}}})
    told = wait_for(lambda: [text for why, text in space.events("j") if why == "StateLost"], space.log)
    assert "continues with its pods" in told[0] and "restarts" in told[0]
    wait_for(lambda: "muster" in space.job("j")["status"], space.log)
    assert space.kubelet.incarnations("j-worker-0") == ["1"]
    assert space.kubelet.incarnations("j-worker-1") == ["2", "3"]
    space.kubelet.end("j-worker-1", 137)
    wait_for(lambda: space.kubelet.incarnations("j-worker-1") == ["2", "3", "4"], space.log)
    space.kubelet.end("j-worker-0", 0)
    space.wait_condition("j", "Succeeded")
    assert space.kubelet.incarnations("j-worker-0") == ["1"]


def test_a_job_that_kubeflows_operator_has_ended_is_left_alone(space: Space) -> None:
    name = space.submit(tfjob("old", {"Worker": 1}))
    condition = {"type": "Succeeded", "status": "True", "reason": "TFJobSucceeded"}
    status = {"status": {"conditions": [condition]}}
    space.api.call("PATCH", f"{space.jobs}/{name}/status", status, MERGE)
    space.start_operator()
    space.submit(tfjob("new", {"Worker": 1}))
    space.wait_condition("new", "Running")
    assert list(space.pods()) == ["new-worker-0"]
    assert "muster" not in space.job("old")["status"]
