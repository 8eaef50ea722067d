"""People change, stop and replace jobs while things happen: on a real API server, whose pods a
kubelet only pretends to run.
"""

from __future__ import annotations

import pathlib
import signal

from testbed.kubernetes.api import Object
from testbed.kubernetes.cluster import OPERATOR, Cluster
from testbed.kubernetes.operators import (
    DEADLINE,
    Space,
    run_operator,
    stop_process,
    tfjob,
    wait_for,
)
from testbed.kubernetes.proxy import Call, Proxy

STOP = {"metadata": {"annotations": {"muster/stop": "enough"}}}


def own(space: Space, job: str = "j") -> Object:
    return dict(space.job(job).get("status", {}).get("muster", {}))


def tasks(space: Space) -> Object:
    return dict(own(space)["state"]["tasks"])


def problem(space: Space, task: str) -> str:
    return str(own(space).get("problems", {}).get(task, ""))


def scale(space: Space, replicas: int) -> None:
    space.api.merge(f"{space.jobs}/j/scale", {"spec": {"replicas": replicas}})


def take_name(space: Space, name: str) -> None:
    """Somebody's pod."""
    container = {"name": "c", "image": "i"}
    space.api.create(f"{space.core}/pods", {"apiVersion": "v1", "kind": "Pod",
                     "metadata": {"name": name}, "spec": {"containers": [container]}})  # fmt: skip


def end_operator(space: Space) -> None:
    space.operators[-1].send_signal(signal.SIGTERM)
    assert space.operators[-1].wait(timeout=DEADLINE) == 0


def test_nothing_begins_after_the_job_has_succeeded(space: Space) -> None:
    take_name(space, "j-worker-1")
    space.start_operator()
    space.submit(tfjob("j", {"Chief": 1, "Worker": 2}))
    wait_for(lambda: "not of this job" in problem(space, "worker-1"), space.log)
    wait_for(lambda: space.pods().get("j-chief-0") == "Running", space.log)
    space.kubelet.end("j-chief-0", 0)
    space.wait_condition("j", "Succeeded")
    wait_for(lambda: tasks(space)["worker-1"]["phase"] == "stopped", lambda: tasks(space))
    space.api.delete(f"{space.core}/pods/j-worker-1", grace=0)
    space.api.merge(f"{space.jobs}/j", {"metadata": {"labels": {"touched": "yes"}}})
    space.submit(tfjob("later", {"Worker": 1}))
    space.wait_condition("later", "Running")
    assert "j-worker-1" not in space.pods()
    assert space.pods()["j-worker-0"] == "Running"  # cleanPodPolicy None keeps what runs


def test_a_worker_that_is_asked_for_again_while_its_pod_ends(space: Space) -> None:
    space.start_operator()
    space.submit(tfjob("j", {"Worker": 4}))
    space.wait_condition("j", "Running")
    space.kubelet.held.add("j-worker-1")
    scale(space, 1)
    space.wait_pods(j_worker_0="Running", j_worker_1="Deleting")
    scale(space, 2)
    wait_for(lambda: own(space)["state"]["tasks"]["worker-1"].get("restart_after"), space.log)
    space.kubelet.held.clear()
    space.api.delete(f"{space.core}/pods/j-worker-1", grace=0)
    space.wait_pods(j_worker_0="Running", j_worker_1="Running")
    assert space.kubelet.incarnations("j-worker-1") == ["2", "5"]


def test_a_state_that_was_changed_by_hand_is_named_with_its_remedy(space: Space) -> None:
    space.start_operator()
    space.submit(tfjob("j", {"Worker": 2}))
    space.wait_condition("j", "Running")
    path = f"{space.jobs}/j/status"
    space.api.merge(path, {"status": {"muster": {"state": {"phase": "nonsense"}}}})

    def told() -> str:
        return next((text for reason, text in space.events("j") if reason == "InvalidStatus"), "")

    said = wait_for(told, space.log)
    assert "'nonsense' is unknown" in said and f"kubectl patch tfjob j --namespace {space.name}" in said
    space.api.merge(path, {"status": None})
    space.wait_condition("j", "Running")
    space.wait_pods(j_worker_0="Running", j_worker_1="Running")
    assert space.kubelet.incarnations("j-worker-0") == ["1"]


def test_a_job_goes_on_as_it_was_before_an_edit_that_is_not_valid(space: Space) -> None:
    space.start_operator()
    space.submit(tfjob("j", {"Worker": 2}, "ExitCode"))
    space.wait_condition("j", "Running")
    scale(space, 0)
    said = wait_for(lambda: problem(space, "spec"), space.log)
    assert "the job has no tasks" in said and "goes on as it was before" in said
    wait_for(lambda: ("FailedValidation", said) in space.events("j"))
    space.kubelet.end("j-worker-1", 137)
    wait_for(lambda: space.kubelet.incarnations("j-worker-1") == ["2", "3"], space.log)
    end_operator(space)
    space.start_operator()  # it has not seen what was before
    space.wait_pods(j_worker_0="Running", j_worker_1="Running")
    space.kubelet.end("j-worker-1", 137)
    wait_for(lambda: space.kubelet.incarnations("j-worker-1") == ["2", "3", "4"], space.log)
    scale(space, 1)
    wait_for(lambda: problem(space, "spec") == "" and "lastSettings" not in own(space), space.log)
    space.wait_pods(j_worker_0="Running")
    pod = {"spec": {"containers": [{"name": "main", "image": "i"}]}}
    replica = {"Worker": {"template": pod}}
    space.api.merge(f"{space.jobs}/j", {"spec": {"tfReplicaSpecs": replica}})
    wait_for(lambda: "no container named tensorflow" in problem(space, "spec"), space.log)
    space.api.merge(f"{space.jobs}/j", {"spec": {"runPolicy": {"suspend": True}}})
    space.wait_condition("j", "Suspended")
    wait_for(lambda: space.pods() == {}, space.log)
    space.api.merge(f"{space.jobs}/j", {"spec": {"runPolicy": {"suspend": False}}})
    space.wait_pods(j_worker_0="Running")
    space.api.merge(f"{space.jobs}/j", STOP)
    assert space.wait_condition("j", "Failed")["message"] == "enough"
    wait_for(lambda: space.pods() == {}, space.log)


def test_a_job_of_which_no_valid_settings_are_known_is_stopped(space: Space) -> None:
    space.start_operator()
    space.submit(tfjob("j", {"Worker": 2}))
    space.wait_condition("j", "Running")
    end_operator(space)
    scale(space, 0)
    space.start_operator()
    said = wait_for(lambda: problem(space, "spec"), space.log)
    assert "the job has no tasks" in said and "until this is corrected" in said
    assert space.pods() == {"j-worker-0": "Running", "j-worker-1": "Running"}
    space.api.merge(f"{space.jobs}/j", STOP)
    space.wait_condition("j", "Failed")
    wait_for(lambda: space.pods() == {}, space.log)


def test_the_number_of_native_tasks_stays_where_it_may_not_change(space: Space) -> None:
    job = tfjob("j", {"Chief": 1, "Worker": 2})
    for replica in job["spec"]["tfReplicaSpecs"].values():
        replica["template"]["spec"]["containers"][0]["command"] = ["muster", "worker", "m.yaml"]
    space.start_operator()
    space.submit(job)
    space.wait_condition("j", "Running")
    running = {"j-chief-0": "Running", "j-worker-0": "Running", "j-worker-1": "Running"}
    for replicas in (3, 1):
        scale(space, replicas)
        said = f"the number of replicas of Worker stays 2, though {replicas} are asked for"
        wait_for(lambda: said in problem(space, "spec"), space.log)
        assert "muster/workers: MIN-MAX" in problem(space, "spec")
        wait_for(lambda: space.pods() == running, space.log)
    assert len(space.kubelet.started) == 3
    scale(space, 2)
    wait_for(lambda: problem(space, "spec") == "", space.log)
    space.kubelet.end("j-chief-0", 0)
    space.wait_condition("j", "Succeeded")


def test_a_new_job_waits_for_the_pods_of_an_earlier_one_of_its_name(space: Space) -> None:
    space.start_operator()
    space.submit(tfjob("j", {"Worker": 1, "PS": 2}))
    space.wait_condition("j", "Running")
    before = space.job("j")["metadata"]["uid"]
    space.wait_pods(j_worker_0="Running", j_ps_0="Running", j_ps_1="Running")
    space.kubelet.held.add("j-ps-1")
    space.api.delete(f"{space.jobs}/j")
    space.wait_pods(j_ps_1="Deleting")
    space.submit(tfjob("j", {"Worker": 1, "PS": 1}))
    wait_for(lambda: "waits until the pod j-ps-1 of an earlier job of this name has ended"
             in problem(space, "worker-0"), space.log)  # fmt: skip
    assert space.pods() == {"j-ps-1": "Deleting"}
    space.kubelet.held.clear()
    space.api.delete(f"{space.core}/pods/j-ps-1", grace=0)
    space.wait_pods(j_worker_0="Running", j_ps_0="Running")
    assert problem(space, "worker-0") == ""
    now = space.job("j")["metadata"]["uid"]
    selector = space.api.get(f"{space.core}/services/j-ps-0")["spec"]["selector"]
    assert selector["muster/job-uid"] == now != before
    assert selector.items() <= space.pod("j-ps-0")["metadata"]["labels"].items()


def test_a_stop_does_not_wait_for_the_next_attempt(space: Space) -> None:
    take_name(space, "j-worker-0")
    space.start_operator()
    space.submit(tfjob("j", {"Worker": 1}))
    wait_for(lambda: space.log().count("not of this job") >= 8)  # the next one is in 12.8 s
    space.api.merge(f"{space.jobs}/j", STOP)
    failed = wait_for(lambda: space.condition("j", "Failed"), space.log, seconds=9)
    assert failed["message"] == "enough"
    # What stays wrong is one event.
    assert [why for why, _ in space.events("j")].count("FailedCreatePod") == 1


def test_a_stop_of_a_job_that_has_failed_ends_what_it_left(space: Space) -> None:
    space.start_operator()
    space.submit(tfjob("j", {"Worker": 1, "PS": 1}))
    space.wait_condition("j", "Running")
    space.kubelet.end("j-worker-0", 1)
    space.wait_condition("j", "Failed")
    assert space.pods() == {"j-worker-0": "Failed", "j-ps-0": "Running"}
    space.api.merge(f"{space.jobs}/j", STOP)
    space.wait_pods(j_worker_0="Failed")
    assert "worker-0: exit code 1" in space.wait_condition("j", "Failed")["message"]


def test_a_lease_is_given_back_at_the_end(space: Space) -> None:
    space.start_operator("--lease", "600")
    wait_for(lambda: "Z leads: it has the lease" in space.log(), space.log)
    end_operator(space)
    path = f"/apis/coordination.k8s.io/v1/namespaces/{space.name}/leases/muster-operator"
    assert not space.api.get(path)["spec"].get("holderIdentity")
    space.start_operator("--lease", "600")
    wait_for(lambda: "Z leads: it has the lease" in space.log(), space.log)


def test_an_operator_outlives_an_api_server_that_is_away(space: Space) -> None:
    proxy = Proxy(space.cluster)
    is_away = False

    def judge(call: Call) -> str:
        return "cut" if is_away else ""

    proxy.judge = judge
    operator = space.start_operator("--lease", "3", server=proxy.server)
    space.submit(tfjob("j", {"Worker": 1}))
    space.wait_condition("j", "Running")
    is_away = True
    proxy.cut()
    wait_for(lambda: "does not lead any more" in space.log(), space.log)
    space.submit(tfjob("k", {"Worker": 1}))
    is_away = False
    space.wait_condition("k", "Running")
    assert operator.poll() is None
    assert space.log().count("Z leads: it has the lease") == 2
    proxy.stop()


def test_the_cause_of_restarts_in_place_is_said(space: Space) -> None:
    space.start_operator()
    space.submit(tfjob("j", {"Worker": 1}, "OnFailure", runPolicy={"backoffLimit": 3}))
    space.wait_pods(j_worker_0="Running")
    last = {"terminated": {"exitCode": 7, "reason": "Error", "message": "a\nKeyError: 'age'"}}
    for restarts in (2, 3):
        space.kubelet.set_running("j-worker-0", restarts, last)
        wait_for(lambda: tasks(space)["worker-0"]["restarts_in_place"] == restarts, space.log)
    failed = space.wait_condition("j", "Failed")["message"]
    assert "the last failure was worker-0: exit code 7, with 'KeyError: 'age''" in failed
    cause = own(space)["rootCause"]
    assert cause["exitCode"] == 7 and cause["lastLine"] == "KeyError: 'age'"
    wait_for(lambda: space.pods() == {}, space.log)
    wait_for(lambda: tasks(space)["worker-0"]["phase"] == "stopped")
    assert tasks(space)["worker-0"]["last_end"]["exit_code"] == 7


def test_an_init_container_that_fails_is_named(space: Space) -> None:
    space.kubelet.decide = lambda pod: "wait"
    job = tfjob("j", {"Worker": 1})
    template = job["spec"]["tfReplicaSpecs"]["Worker"]["template"]
    template["spec"]["initContainers"] = [{"name": "fetch", "image": "i"}]
    space.start_operator()
    space.submit(job)
    wait_for(lambda: len(space.kubelet.started) == 1, space.log)
    init = space.pod("j-worker-0")["spec"]["initContainers"][0]
    assert init["terminationMessagePolicy"] == "FallbackToLogsOnError"
    terminated = {"exitCode": 9, "reason": "Error", "message": "no such bucket\n"}
    status = {"name": "fetch", "image": "i", "imageID": "i", "ready": False, "restartCount": 0,
              "state": {"terminated": terminated}}  # fmt: skip
    waiting = space.kubelet.container("j-worker-0", {"waiting": {"reason": "PodInitializing"}})
    space.api.patch_status(
        f"{space.core}/pods/j-worker-0",
        {"phase": "Failed", "initContainerStatuses": [status], "containerStatuses": waiting},
    )
    said = space.wait_condition("j", "Failed")["message"]
    assert "worker-0: its init container fetch failed with exit code 9" in said
    assert own(space)["rootCause"]["lastLine"] == "no such bucket"


def test_a_job_of_too_many_tasks_is_refused(space: Space) -> None:
    space.start_operator()
    space.submit(tfjob("j", {"Worker": 8000}))
    said = space.wait_condition("j", "Failed")["message"]
    assert "8000 replicas are asked for" in said and "4000 at most" in said
    assert space.pods() == {}


def test_a_namespace_that_is_not_there_is_said(
    installed: Cluster, space: Space, tmp_path: pathlib.Path
) -> None:
    config = installed.kubeconfig(OPERATOR, "no-namespace", namespace=space.name)
    log = tmp_path / "log"
    operator = run_operator(config, log, "--namespace", "nosuch", "--lease-namespace", space.name)
    try:
        wait_for(lambda: "there is no namespace nosuch" in log.read_text(), log.read_text)
    finally:
        stop_process(operator)
