"""TFJobs as pods on a real API server, whose pods a kubelet only pretends to run."""

from __future__ import annotations

import json
import pathlib
import re
import signal
import urllib.error
import urllib.request

import pytest
import yaml

from testbed.kubernetes.api import ApiError, Object
from testbed.kubernetes.cluster import READER, STRANGER, Cluster
from testbed.kubernetes.operators import DEADLINE, Space, run_operator, tfjob, wait_for
from testbed.muster import Muster


def env_of(pod: Object) -> dict[str, str]:
    return {e["name"]: e.get("value", "") for e in pod["spec"]["containers"][0].get("env", [])}


def state(space: Space, job: str) -> Object:
    return space.job(job)["status"]["muster"]["state"]


def test_a_job_runs_and_succeeds(space: Space) -> None:
    space.start_operator()
    space.submit(tfjob("j", {"Chief": 1, "Worker": 2, "PS": 1}))
    space.wait_condition("j", "Running")
    space.wait_pods(
        j_chief_0="Running", j_ps_0="Running", j_worker_0="Running", j_worker_1="Running"
    )
    assert space.services() == ["j-chief-0", "j-ps-0", "j-worker-0", "j-worker-1"]
    worker = space.pod("j-worker-1")
    host = f"{space.name}.svc:2222"
    assert json.loads(env_of(worker)["TF_CONFIG"]) == {
        "cluster": {
            "chief": [f"j-chief-0.{host}"],
            "ps": [f"j-ps-0.{host}"],
            "worker": [f"j-worker-0.{host}", f"j-worker-1.{host}"],
        },
        "task": {"type": "worker", "index": 1},
        "environment": "cloud",
    }
    prefix = "training.kubeflow.org/"
    labels = worker["metadata"]["labels"]
    assert labels == {
        prefix + "operator-name": "tfjob-controller",
        prefix + "job-name": "j",
        prefix + "replica-type": "worker",
        prefix + "replica-index": "1",
        "muster/job-uid": space.job("j")["metadata"]["uid"],
    }
    assert space.pod("j-chief-0")["metadata"]["labels"][prefix + "job-role"] == "master"
    owner = worker["metadata"]["ownerReferences"][0]
    assert owner["uid"] == space.job("j")["metadata"]["uid"] and owner["controller"]
    assert worker["spec"]["restartPolicy"] == "Never"
    service = space.api.get(f"{space.core}/services/j-ps-0")["spec"]
    assert service["clusterIP"] == "None" and service["ports"][0]["port"] == 2222

    space.kubelet.end("j-chief-0", 0)
    succeeded = space.wait_condition("j", "Succeeded")
    assert succeeded["reason"] == "TFJobSucceeded"
    status = space.job("j")["status"]
    assert status["completionTime"] and not space.condition("j", "Running")
    assert status["replicaStatuses"]["Chief"]["succeeded"] == 1
    reasons = {reason for reason, _ in space.events("j")}
    assert {"TFJobCreated", "SuccessfulCreatePod", "SuccessfulCreateService", "TFJobRunning",
            "TFJobSucceeded"} <= reasons  # fmt: skip
    # cleanPodPolicy None keeps what runs.
    assert space.pods()["j-ps-0"] == "Running"


@pytest.mark.parametrize(
    "policy, left", [("Running", {"j-worker-0": "Succeeded"}), ("All", {})], ids=str
)
def test_clean_pod_policy(space: Space, policy: str, left: dict[str, str]) -> None:
    space.start_operator()
    space.submit(tfjob("j", {"Worker": 2, "PS": 1}, runPolicy={"cleanPodPolicy": policy}))
    space.wait_pods(j_ps_0="Running", j_worker_0="Running", j_worker_1="Running")
    space.kubelet.end("j-worker-0", 0)
    space.wait_condition("j", "Succeeded")
    wait_for(lambda: space.pods() == left, space.log)
    wait_for(lambda: space.services() == list(left), space.log)


def test_exit_codes_decide_and_the_root_cause_is_told(space: Space) -> None:
    space.start_operator()
    space.submit(tfjob("j", {"Worker": 2}, "ExitCode"))
    space.wait_pods(j_worker_0="Running", j_worker_1="Running")
    first = space.pod("j-worker-1")["metadata"]["uid"]
    space.kubelet.end("j-worker-1", 137, message="a\nKilled\n")
    wait_for(
        lambda: space.pods().get("j-worker-1") == "Running"
        and space.pod("j-worker-1")["metadata"]["uid"] != first,
        space.log,
    )
    assert space.kubelet.incarnations("j-worker-1") == ["2", "3"]
    assert state(space, "j")["tasks"]["worker-1"]["restarts"] == 1
    space.kubelet.end("j-worker-0", 3, message="line one\nValueError: bad shape")
    space.wait_condition("j", "Failed")
    status = space.job("j")["status"]
    assert "worker-0: exit code 3" in space.condition("j", "Failed")["message"]
    assert status["muster"]["rootCause"]["task"] == "worker-1"
    assert state(space, "j")["failures"][1]["end"]["last_line"] == "ValueError: bad shape"
    assert ("ExitedWithCode", f"Pod: {space.name}.j-worker-0 exited with code 3, with "
            "'ValueError: bad shape'") in space.events("j")  # fmt: skip


def test_the_kubelets_restarts_count_for_the_backoff_limit(space: Space) -> None:
    space.start_operator()
    space.submit(tfjob("j", {"Worker": 1}, "OnFailure", runPolicy={"backoffLimit": 3}))
    space.wait_pods(j_worker_0="Running")
    assert space.pod("j-worker-0")["spec"]["restartPolicy"] == "OnFailure"
    space.kubelet.set_running("j-worker-0", restarts=2)
    wait_for(lambda: state(space, "j")["tasks"]["worker-0"]["restarts_in_place"] == 2)
    assert not space.condition("j", "Failed")
    space.kubelet.set_running("j-worker-0", restarts=3)
    assert "backoff limit" in space.wait_condition("j", "Failed")["message"]
    wait_for(lambda: space.pods() == {})


def test_what_the_platform_ends_starts_again_and_costs_nothing(space: Space) -> None:
    space.start_operator()
    policy = {"backoffLimit": 1}
    space.submit(tfjob("j", {"Worker": 2}, "ExitCode", runPolicy=policy))
    space.wait_pods(j_worker_0="Running", j_worker_1="Running")
    space.kubelet.end("j-worker-1", 1, disruption="EvictionByEvictionAPI")
    wait_for(lambda: space.kubelet.incarnations("j-worker-1") == ["2", "3"], space.log)
    space.wait_pods(j_worker_0="Running", j_worker_1="Running")
    # A person, or the loss of a node, removes the pod.
    uid = space.pod("j-worker-0")["metadata"]["uid"]
    space.api.delete(f"{space.core}/pods/j-worker-0", grace=0, uid=uid)
    wait_for(lambda: space.kubelet.incarnations("j-worker-0") == ["1", "4"], space.log)
    space.wait_condition("j", "Running")
    tasks = state(space, "j")["tasks"]
    assert [tasks[t]["restarts"] for t in tasks] == [0, 0]
    assert [tasks[t]["disruptions"] for t in tasks] == [1, 1]


def test_deadline_and_time_to_live(space: Space) -> None:
    space.start_operator()
    policy = {"activeDeadlineSeconds": 1, "ttlSecondsAfterFinished": 1}
    space.submit(tfjob("j", {"Worker": 1}, runPolicy=policy))
    assert "specified deadline of 1s" in space.wait_condition("j", "Failed")["message"]
    wait_for(lambda: space.api.find(f"{space.jobs}/j") is None, space.log)
    wait_for(lambda: space.services() == [] and space.pods() == {})


def test_suspend_resume_and_scale(space: Space) -> None:
    space.start_operator()
    space.submit(tfjob("j", {"Worker": 2}, runPolicy={"suspend": True}))
    space.wait_condition("j", "Suspended")
    assert space.pods() == {}
    space.api.merge(f"{space.jobs}/j", {"spec": {"runPolicy": {"suspend": False}}})
    space.wait_pods(j_worker_0="Running", j_worker_1="Running")
    space.wait_condition("j", "Running")
    space.api.merge(f"{space.jobs}/j/scale", {"spec": {"replicas": 3}})
    space.wait_pods(j_worker_0="Running", j_worker_1="Running", j_worker_2="Running")
    space.api.merge(f"{space.jobs}/j/scale", {"spec": {"replicas": 1}})
    space.wait_pods(j_worker_0="Running")
    wait_for(lambda: space.services() == ["j-worker-0"])
    space.api.merge(f"{space.jobs}/j", {"spec": {"runPolicy": {"suspend": True}}})
    wait_for(lambda: space.pods() == {} and space.services() == [])
    space.wait_condition("j", "Suspended")


def test_a_pod_that_does_not_start_is_said_in_the_status(space: Space) -> None:
    space.kubelet.decide = lambda pod: "wait"
    space.start_operator()
    space.submit(tfjob("j", {"Worker": 1}))
    space.wait_pods(j_worker_0="Pending")
    space.kubelet.set_waiting("j-worker-0", "ErrImagePull", "no such image")

    def problem() -> str:
        return space.job("j")["status"]["muster"].get("problems", {}).get("worker-0", "")

    wait_for(lambda: problem() == "ErrImagePull: no such image")
    space.kubelet.set_running("j-worker-0")
    wait_for(lambda: problem() == "")


def test_an_exceeded_quota_and_a_taken_name_are_said_and_mended(space: Space) -> None:
    taken = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "j-worker-0"},
             "spec": {"containers": [{"name": "c", "image": "i"}]}}  # fmt: skip
    space.api.create(f"{space.core}/pods", taken)
    space.start_operator()
    space.submit(tfjob("j", {"Worker": 1}))

    def problem() -> str:
        status = space.job("j").get("status", {})
        return status.get("muster", {}).get("problems", {}).get("worker-0", "")

    assert "which is not of this job" in wait_for(problem, space.log)
    space.api.delete(f"{space.core}/pods/j-worker-0", grace=0)
    space.wait_condition("j", "Running")
    assert problem() == ""


def test_what_is_no_job_is_refused(space: Space) -> None:
    space.start_operator()
    both = tfjob("both", {"Chief": 1, "Master": 1})
    unknown = tfjob("unknown", {"Boss": 1})
    policy = tfjob("policy", {"Worker": 1}, "Sometimes")
    for job, why in [(both, "more than 1 Chief/Master"), (unknown, "a replica type must be"),
                     (policy, "Sometimes"), (tfjob("Capital", {"Worker": 1}), "lower")]:  # fmt: skip
        with pytest.raises(ApiError) as refused:
            space.submit(job)
        assert refused.value.code == 422 and why in str(refused.value)
    no_image = tfjob("no-image", {"Worker": 1})
    del no_image["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["image"]
    space.submit(no_image)
    failed = space.wait_condition("no-image", "Failed")
    assert "image is undefined in the container tensorflow" in failed["message"]
    times = space.job("no-image")["status"]
    assert times["startTime"] == times["completionTime"]
    assert space.pods() == {}


def test_an_unknown_annotation_is_an_event(space: Space) -> None:
    job = tfjob("j", {"Worker": 1})
    job["metadata"]["annotations"] = {"muster/restartBudgt": "x"}
    space.start_operator()
    space.submit(job)
    space.wait_condition("j", "Running")
    unknown = "metadata.annotations.muster/restartBudgt is not known and has no effect"
    wait_for(lambda: ("UnknownField", unknown) in space.events("j"))


def test_a_misspelt_field_of_a_pod_template_is_an_event(space: Space) -> None:
    job = tfjob("j", {"Worker": 2})
    template = job["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]
    template["containers"][0]["imagePulPolicy"] = "Always"
    space.start_operator()
    space.submit(job)
    space.wait_condition("j", "Running")
    unknown = (
        'spec.tfReplicaSpecs.Worker.template: unknown field "spec.containers[0].imagePulPolicy" '
        "has no effect: is it misspelt?"
    )
    wait_for(lambda: ("UnknownField", unknown) in space.events("j"), lambda: space.events("j"))
    assert space.events("j").count(("UnknownField", unknown)) == 1  # not one for each pod


def test_an_operator_that_may_change_nothing_is_not_healthy(space: Space) -> None:
    config = space.cluster.kubeconfig(READER, f"reader-{space.name}", namespace=space.name)
    group = "rbac.authorization.k8s.io"
    rules = [
        {"apiGroups": ["kubeflow.org", ""], "resources": ["tfjobs", "pods", "services"],
         "verbs": ["get", "list", "watch"]},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["*"]},
        {"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"],
         "verbs": ["get"]},
    ]  # fmt: skip
    name = f"reader-{space.name}"
    subject = {"kind": "User", "name": "reader", "apiGroup": group}
    for kind, body in {
        "ClusterRole": {"rules": rules},
        "ClusterRoleBinding": {"subjects": [subject],
                               "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name}},
    }.items():  # fmt: skip
        space.cluster.create({"apiVersion": f"{group}/v1", "kind": kind, **body,
                              "metadata": {"name": name}})  # fmt: skip
    log = space.folder / "reader.log"
    operator = run_operator(config, log, "--namespace", space.name, "--health-port", "0",
                            "--health-address", "127.0.0.1")  # fmt: skip
    space.operators.append(operator)
    port = wait_for(lambda: re.search(r"at port (\d+)", log.read_text()), log.read_text)[1]

    def health() -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    wait_for(lambda: health()[0] == 200, lambda: health()[1])
    space.submit(tfjob("j", {"Worker": 1}))

    def refusal() -> str:
        code, text = health()
        return text if code == 503 and "no change has been allowed for" in text else ""

    said = wait_for(refusal, log.read_text, 300)
    assert 'cannot update resource "tfjobs/status"' in said
    assert "kubectl apply -f deploy/kubernetes/rbac.yaml" in said


def test_another_manager_is_left_alone(space: Space) -> None:
    space.start_operator()
    other = {"managedBy": "kueue.x-k8s.io/multikueue"}
    space.submit(tfjob("other", {"Worker": 1}, runPolicy=other))
    space.submit(tfjob("j", {"Worker": 1}))
    space.wait_condition("j", "Running")
    assert "status" not in space.job("other")


def test_an_operator_without_rights_or_definition_says_so(
    installed: Cluster, space: Space, muster: Muster
) -> None:
    config = installed.kubeconfig(STRANGER, "stranger-operator")
    said = muster.fail("operator", "--kubeconfig", config, "--health-port", "-1")
    assert 'User "stranger" cannot get resource "customresourcedefinitions"' in said
    assert "kubectl apply -f deploy/kubernetes/rbac.yaml" in said


def test_a_leader_that_stops_is_replaced_and_waits(space: Space) -> None:
    first = space.start_operator("--lease", "2")
    space.submit(tfjob("a", {"Worker": 1}))
    space.wait_condition("a", "Running")
    second = space.start_operator("--lease", "2")
    wait_for(lambda: "Z waits: " in space.log(), space.log)
    first.send_signal(signal.SIGSTOP)
    space.submit(tfjob("b", {"Worker": 1}))
    space.wait_condition("b", "Running")
    first.send_signal(signal.SIGCONT)
    log = space.folder / "operator-0.log"
    # It may see the time that has passed before it sees the other operator.
    wait_for(lambda: "does not lead any more" in log.read_text(), log.read_text)
    second.send_signal(signal.SIGTERM)
    assert second.wait(timeout=DEADLINE) == 0
    space.submit(tfjob("c", {"Worker": 1}))
    space.wait_condition("c", "Running")
    assert first.poll() is None
    assert space.kubelet.incarnations("a-worker-0") == ["1"]


def test_the_examples_are_accepted_and_their_old_form_runs_as_printed(
    space: Space, repository: pathlib.Path
) -> None:
    examples = repository / "examples" / "kubernetes"
    for name in ["volume.yaml", "tensorboard.yaml", "mnist.yaml"]:
        for document in yaml.safe_load_all((examples / name).read_text()):
            document["metadata"]["namespace"] = space.name
            space.cluster.create(document)
    space.start_operator()
    space.wait_condition("mnist", "Running")
    names = ["mnist-master-0", "mnist-ps-0", "mnist-worker-0", "mnist-worker-1"]
    wait_for(lambda: sorted(space.pods()) == names)
    space.api.delete(f"{space.jobs}/mnist")
    wait_for(lambda: space.pods() == {} and space.services() == [], space.log)

    old = yaml.safe_load((examples / "mnist-v1alpha1.yaml").read_text())
    path = space.jobs.replace("/v1/", "/v1alpha1/")
    space.api.create(path, old)
    space.wait_condition("mnist", "Running")
    stored = space.api.get(f"{path}/mnist")
    assert stored["apiVersion"] == "kubeflow.org/v1alpha1"
    runtime = stored["spec"]["RuntimeId"]
    selector = f"runtime_id={runtime},job_type=MASTER"
    found = space.api.items(f"{space.core}/pods?labelSelector={selector}")
    assert [pod["metadata"]["name"] for pod in found] == ["mnist-master-0"]
    assert found[0]["spec"]["restartPolicy"] == "OnFailure"
    cluster = json.loads(env_of(found[0])["TF_CONFIG"])["cluster"]
    assert sorted(cluster) == ["master", "ps", "worker"] and len(cluster["worker"]) == 2
    limits = found[0]["spec"]["containers"][0]["resources"]["limits"]
    assert limits == {"nvidia.com/gpu": "1"}
    space.kubelet.end("mnist-master-0", 0)
    space.wait_condition("mnist", "Succeeded")
