"""A native job has one Secret, also when two operators try to make it, and when it is deleted."""

from __future__ import annotations

import signal
import threading

from testbed.kubernetes.api import Object
from testbed.kubernetes.operators import DEADLINE, Space, tfjob, wait_for
from testbed.kubernetes.proxy import Call, second_lease


def native(name: str, policy: str = "ExitCode") -> Object:
    job = tfjob(name, {"Chief": 1, "Worker": 1}, policy)
    for replica in job["spec"]["tfReplicaSpecs"].values():
        replica["template"]["spec"]["containers"][0]["command"] = ["muster", "worker", "m.yaml"]
    return job


def secrets(space: Space) -> list[Object]:
    found: list[Object] = space.api.items(f"{space.core}/secrets")
    return found


def test_a_leader_that_is_stopped_before_it_makes_the_secret_makes_no_second_one(
    space: Space,
) -> None:
    """Another one leads meanwhile, and makes it for pods that run when the first one goes on."""
    proxy = second_lease(space.cluster, space.name)
    slow = space.start_operator("--lease", "3600", server=proxy.server)
    stopped, goes_on, done = threading.Event(), threading.Event(), threading.Event()

    def judge(call: Call) -> str:
        if call.method == "POST" and "/secrets" in call.target and not stopped.is_set():
            slow.send_signal(signal.SIGSTOP)
            stopped.set()
            assert goes_on.wait(DEADLINE)
            done.set()
        return ""

    proxy.judge = judge
    space.submit(native("j"))
    assert stopped.wait(DEADLINE), space.log()
    assert secrets(space) == []
    space.start_operator("--lease", "3600")
    space.wait_pods(j_chief_0="Running", j_worker_0="Running")
    [made] = secrets(space)
    slow.send_signal(signal.SIGCONT)
    goes_on.set()
    assert done.wait(DEADLINE)
    space.kubelet.end("j-worker-0", 137)  # a pod that is made by either of them
    wait_for(lambda: space.kubelet.incarnations("j-worker-0") == ["2", "3"], space.log)
    space.wait_pods(j_chief_0="Running", j_worker_0="Running")
    assert secrets(space) == [made]
    volumes = space.pod("j-worker-0")["spec"]["volumes"]
    assert made["metadata"]["name"] in [v.get("secret", {}).get("secretName") for v in volumes]
    assert not [event for event in space.events("j") if event[0] == "SecretLost"]
    proxy.stop()


def test_a_secret_that_is_lost_before_a_pod_of_the_policy_never_has_read_it(space: Space) -> None:
    """The kubelet looks for it in vain. No task may be started twice, so the job fails."""
    space.kubelet.decide = lambda pod: "wait"
    space.start_operator()
    space.submit(native("j", "Never"))
    space.wait_pods(j_chief_0="Pending", j_worker_0="Pending")
    [made] = secrets(space)
    name = made["metadata"]["name"]
    space.api.delete(f"{space.core}/secrets/{name}")
    pod = space.pod("j-worker-0")
    space.api.create(f"{space.core}/events", {
        "metadata": {"name": "mount", "namespace": space.name}, "type": "Warning",
        "reason": "FailedMount", "source": {"component": "kubelet"},
        "message": f'MountVolume.SetUp failed for volume "muster" : secret "{name}" not found',
        "involvedObject": {"kind": "Pod", "namespace": space.name, "name": "j-worker-0",
                           "uid": pod["metadata"]["uid"]},
    })  # fmt: skip
    said = space.wait_condition("j", "Failed")["message"]
    lost = (f"the Secret {name} was deleted while the job ran, and its tasks may not start again with"
            " a new one")  # fmt: skip
    assert f": its pod was deleted: {lost} (restart policy Never)" in said, said
    assert ("SecretLost", lost) in space.events("j")
    assert len(space.kubelet.started) == 2
