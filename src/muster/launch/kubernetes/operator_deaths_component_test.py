"""An operator that is killed at any call, two operators that both lead, a restarted API server.

The end is that of an undisturbed run, and no pod is there twice in one incarnation.
"""

from __future__ import annotations

import os
import signal
import threading

from testbed.kubernetes.api import Object
from testbed.kubernetes.kubelet import Kubelet, name_of
from testbed.kubernetes.operators import DEADLINE, Space, tfjob, wait_for
from testbed.kubernetes.proxy import Proxy


class Story:
    """Of a job: worker-1 is killed once, then worker-0 succeeds, and what runs is cleaned up."""

    def __init__(self, kubelet: Kubelet):
        self.kubelet = kubelet
        self.lock = threading.Lock()
        kubelet.decide = self.decide

    def decide(self, pod: Object) -> object:
        name = name_of(pod)
        if not name.endswith("-worker-1"):
            return "run"
        if len(self.kubelet.incarnations(name)) == 1:
            return 137
        self.kubelet.set_running(name)
        self.kubelet.end(name.replace("-worker-1", "-worker-0"), 0)
        return "wait"


def submit(space: Space, name: str) -> None:
    policy = {"cleanPodPolicy": "Running", "backoffLimit": 3}
    space.submit(tfjob(name, {"PS": 1, "Worker": 2}, "ExitCode", runPolicy=policy))


def check_end(space: Space, name: str) -> None:
    space.wait_condition(name, "Succeeded")
    left = f"{name}-worker-0"
    wait_for(
        lambda: [p for p in space.pods() if p.startswith(f"{name}-")] == [left],
        lambda: f"{space.pods()}\n{space.log()}",
    )
    wait_for(lambda: [s for s in space.services() if s.startswith(f"{name}-")] == [left])
    tasks = space.job(name)["status"]["muster"]["state"]["tasks"]
    counted = {task: (t["restarts"], t["disruptions"]) for task, t in tasks.items()}
    assert counted == {"ps-0": (0, 0), "worker-0": (0, 0), "worker-1": (1, 0)}, counted
    for task, starts in [("ps-0", 1), ("worker-0", 1), ("worker-1", 2)]:
        incarnations = space.kubelet.incarnations(f"{name}-{task}")
        assert len(incarnations) == starts == len(set(incarnations)), (task, incarnations)


def test_an_operator_is_killed_at_each_call(space: Space) -> None:
    Story(space.kubelet)
    proxy = Proxy(space.cluster)

    def start() -> None:
        """With a lease of its own, since that of a killed operator has yet to expire."""
        lease = f"{space.name}-{len(space.operators)}"
        space.cluster.namespace(lease)
        space.start_operator(server=proxy.server, lease=lease)

    def kill() -> None:
        space.operators[-1].send_signal(signal.SIGKILL)
        space.operators[-1].wait(timeout=DEADLINE)

    def is_dead() -> bool:
        return space.operators[-1].poll() is not None

    proxy.begin(0, kill)
    start()
    submit(space, "undisturbed")
    check_end(space, "undisturbed")
    kill()
    calls = proxy.calls
    assert len(calls) > 10
    soak = bool(os.environ.get("MUSTER_SOAK"))
    for number in range(1, len(calls) + 1, 1 if soak else 2):
        proxy.begin(number, kill)
        start()
        name = f"j{number}"
        submit(space, name)
        # A run may need a call less than another, when one pass sees two changes.
        wait_for(lambda: is_dead() or space.condition(name, "Succeeded"), space.log)
        if not is_dead():
            kill()
        start()
        check_end(space, name)
        kill()
    proxy.stop()


def test_two_operators_that_both_lead_decide_once(space: Space) -> None:
    Story(space.kubelet)
    other = f"{space.name}-other"
    space.cluster.namespace(other)
    space.start_operator()
    space.start_operator(lease=other)
    names = [f"j{i}" for i in range(8)]
    for name in names:
        submit(space, name)
    for name in names:
        check_end(space, name)
    assert [operator.poll() for operator in space.operators] == [None, None]


def test_the_api_server_is_restarted_in_the_middle(space: Space) -> None:
    space.start_operator()
    space.submit(tfjob("j", {"Worker": 2}, "ExitCode"))
    space.wait_condition("j", "Running")
    space.cluster.restart_server()
    space.kubelet.end("j-worker-1", 137)
    wait_for(lambda: space.kubelet.incarnations("j-worker-1") == ["2", "3"], space.log)
    space.wait_pods(j_worker_0="Running", j_worker_1="Running")
    space.kubelet.end("j-worker-0", 0)
    space.wait_condition("j", "Succeeded")
