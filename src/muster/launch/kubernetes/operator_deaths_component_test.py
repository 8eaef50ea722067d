"""An operator that is killed at any call or stopped before it, two operators that both lead, an API
server and an etcd that are restarted.

The end is that of an undisturbed run, and no pod is there twice in one incarnation.
"""

from __future__ import annotations

import os
import random
import signal
import threading

from testbed.kubernetes.api import ApiError
from testbed.kubernetes.operators import DEADLINE, Space, tfjob, wait_for
from testbed.kubernetes.proxy import Call, Proxy, second_lease
from testbed.kubernetes.story import Story, check_end, has_ended, submit


def test_an_operator_is_killed_at_each_call(space: Space) -> None:
    Story(space.kubelet)
    proxy = Proxy(space.cluster)

    def start() -> None:
        space.start_operator(server=proxy.server)

    def kill() -> None:
        """The next operator need not wait for the end of its lease."""
        space.operators[-1].send_signal(signal.SIGKILL)
        space.operators[-1].wait(timeout=DEADLINE)
        lease = f"/apis/coordination.k8s.io/v1/namespaces/{space.name}/leases/muster-operator"
        space.api.merge(lease, {"spec": {"holderIdentity": ""}})

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
        wait_for(lambda: is_dead() or has_ended(space, name), space.log)
        if not is_dead():
            kill()
        proxy.begin(0, kill)  # the next operator is not killed at a call
        start()
        check_end(space, name)
        kill()
    proxy.stop()


def test_two_operators_that_both_lead_decide_once(space: Space) -> None:
    Story(space.kubelet)
    proxy = second_lease(space.cluster, space.name)
    space.start_operator("--lease", "3600")
    space.start_operator("--lease", "3600", server=proxy.server)
    both_lead(space)
    names = [f"j{i}" for i in range(8)]
    for name in names:
        submit(space, name)
    for name in names:
        check_end(space, name)
    assert [operator.poll() for operator in space.operators] == [None, None]
    proxy.stop()


def both_lead(space: Space) -> None:
    for number in range(2):
        log = space.folder / f"operator-{number}.log"
        wait_for(lambda: "leads: it has the lease" in log.read_text(), log.read_text)


def test_a_leader_that_is_stopped_before_a_call_does_no_harm_when_it_goes_on(space: Space) -> None:
    """Two operators lead. In each round one of them is stopped when it has decided and before its
    call is done, until the other one has brought the job to its end.
    """
    rounds = 200 if os.environ.get("MUSTER_SOAK") else 40
    Story(space.kubelet)
    proxy = second_lease(space.cluster, space.name)
    slow = space.start_operator("--lease", "3600", server=proxy.server)
    space.start_operator("--lease", "3600")
    both_lead(space)
    chance = random.Random(1)
    stopped = threading.Event()
    goes_on = threading.Event()
    left = 0  # calls until the one that is held

    def judge(call: Call) -> str:
        nonlocal left
        # Events are of no interest, and the job of an earlier round may still be cleaned up.
        if call.is_change and "/events" not in call.target:
            left -= 1
            if left == 0:
                slow.send_signal(signal.SIGSTOP)
                stopped.set()
                assert goes_on.wait(DEADLINE)
        return ""

    proxy.judge = judge
    stops = 0
    for number in range(rounds):
        stopped.clear()
        goes_on.clear()
        left = chance.randint(1, 10)
        submit(space, f"j{number}")
        check_end(space, f"j{number}")
        left = 0
        stops += stopped.is_set()
        slow.send_signal(signal.SIGCONT)
        goes_on.set()
    assert stops > rounds / 4
    # What came late is gone, and did nothing.
    for number in range(rounds):
        check_end(space, f"j{number}")
    assert [operator.poll() for operator in space.operators] == [None, None]
    proxy.stop()


def test_the_api_server_and_etcd_are_restarted_in_the_middle(space: Space) -> None:
    space.start_operator()
    space.submit(tfjob("j", {"Worker": 2}, "ExitCode"))
    space.wait_condition("j", "Running")
    space.cluster.restart_server()
    space.kubelet.end("j-worker-1", 137)
    wait_for(lambda: space.kubelet.incarnations("j-worker-1") == ["2", "3"], space.log)
    space.wait_pods(j_worker_0="Running", j_worker_1="Running")
    space.cluster.restart_etcd()
    wait_for(lambda: ends(space, "j-worker-1", 143), space.log)
    wait_for(lambda: space.kubelet.incarnations("j-worker-1") == ["2", "3", "4"], space.log)
    space.wait_pods(j_worker_0="Running", j_worker_1="Running")
    space.kubelet.end("j-worker-0", 0)
    space.wait_condition("j", "Succeeded")


def ends(space: Space, pod: str, code: int) -> bool:
    """Whether the server takes it; it has just lost its connection to etcd."""
    try:
        space.kubelet.end(pod, code)
        return True
    except ApiError:
        return False
