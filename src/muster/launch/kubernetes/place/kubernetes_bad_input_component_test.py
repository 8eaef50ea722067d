"""What can be wrong between a person and a cluster: each is one line that says what to do."""

from __future__ import annotations

import json
import pathlib
import re
import signal
import time
from typing import Iterator

import pytest

from testbed.jobs import Jobs
from testbed.kubernetes.api import Object
from testbed.kubernetes.cluster import ADMINISTRATOR, STRANGER, Cluster
from testbed.kubernetes.logs import PodLogs
from testbed.kubernetes.operators import Space, tfjob, wait_for
from testbed.ports import free_port

ON = ("--on", "kubernetes")
GROUP = "rbac.authorization.k8s.io"


@pytest.fixture
def job(user: Jobs) -> pathlib.Path:
    path = user.folder / "job.json"
    path.write_text(json.dumps(tfjob("j", {"Worker": 1})))
    return path


def fail(user: Jobs, *arguments: object) -> str:
    """The one line that is said."""
    result = user.call(*arguments)
    assert result.returncode == 1, (result.returncode, result.stdout, result.stderr)
    (line,) = result.stderr.splitlines()
    return line


def problem(user: Jobs, task: str) -> str:
    return wait_for(lambda: user.task("j", task).get("problem", ""))


def test_no_kubeconfig(user: Jobs, job: pathlib.Path) -> None:
    del user.environment["KUBECONFIG"]
    user.environment["HOME"] = str(user.folder)
    line = fail(user, "submit", job, *ON)
    assert "no configuration of a Kubernetes cluster" in line and "give --kubeconfig FILE" in line
    line = fail(user, "status", "j", *ON, "--kubeconfig", "absent")
    assert "absent" in line


def test_a_server_that_does_not_answer(space: Space, user: Jobs, job: pathlib.Path) -> None:
    server = f"http://127.0.0.1:{free_port()}"
    config = space.cluster.kubeconfig("token", "silent", server=server, namespace=space.name)
    line = fail(user, "submit", job, *ON, "--kubeconfig", config)
    assert server in line and f"{config} (context t) says that the cluster is there" in line


def test_a_token_that_is_not_accepted(space: Space, user: Jobs, job: pathlib.Path) -> None:
    config = space.cluster.kubeconfig("unknown-token", "unknown")
    line = fail(user, "submit", job, *ON, "--kubeconfig", config)
    assert "does not accept the token" in line and "renew it" in line
    assert "unknown-token" not in line


def test_a_right_that_is_missing(space: Space, user: Jobs, job: pathlib.Path) -> None:
    user.ok("submit", job, *ON, "--name", "there")
    stranger = space.cluster.kubeconfig(STRANGER, "stranger", namespace=space.name)
    on = (*ON, "--kubeconfig", stranger)
    role = f"the ClusterRole muster-user (deploy/kubernetes/user.yaml) in the namespace {space.name}"
    for verb, arguments in {
        "create": ("submit", job), "get": ("status", "there"), "list": ("list",),
    }.items():  # fmt: skip
        line = fail(user, *arguments, *on)
        assert f'User "stranger" cannot {verb} resource "tfjobs"' in line and role in line


def test_logs_without_the_right(space: Space, user: Jobs, pod_logs: PodLogs) -> None:
    space.start_operator()
    space.submit(tfjob("j", {"Worker": 1}))
    space.wait_condition("j", "Running")
    for kind, rules in {
        "Role": {"rules": [
            {"apiGroups": ["kubeflow.org"], "resources": ["tfjobs"], "verbs": ["get"]},
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]},
        "RoleBinding": {"roleRef": {"apiGroup": GROUP, "kind": "Role", "name": "looks"},
                        "subjects": [{"kind": "User", "name": "stranger"}]},
    }.items():  # fmt: skip
        space.cluster.create({"apiVersion": f"{GROUP}/v1", "kind": kind, **rules,
                              "metadata": {"name": "looks", "namespace": space.name}})  # fmt: skip
    config = space.cluster.kubeconfig(STRANGER, "looks", namespace=space.name)
    on = (*ON, "--kubeconfig", config)
    assert "job j active" in user.ok("status", "j", *on)
    line = fail(user, "logs", "j", *on)
    assert 'cannot get resource "pods/log"' in line and "muster-user" in line
    assert fail(user, "logs", "-f", "j", *on) == line
    assert 'cannot patch resource "tfjobs"' in fail(user, "stop", "j", *on)


@pytest.fixture
def bare(tmp_path: pathlib.Path) -> Iterator[Cluster]:
    """A cluster without Muster's definitions."""
    folder = tmp_path / "bare"
    folder.mkdir()
    started = Cluster(folder)
    try:
        started.start_etcd()
        started.start_server()
        yield started
    finally:
        started.stop()


def test_a_cluster_without_the_kind(bare: Cluster, user: Jobs, job: pathlib.Path) -> None:
    on = (*ON, "--kubeconfig", bare.kubeconfig(ADMINISTRATOR, "bare"))
    for arguments in (("submit", job), ("status", "j"), ("list",)):
        line = fail(user, *arguments, *on)
        assert "does not know the kind TFJob" in line
        assert "kubectl apply -k deploy/kubernetes" in line


def test_a_namespace_that_is_not_there(space: Space, user: Jobs, job: pathlib.Path) -> None:
    config = space.cluster.kubeconfig(ADMINISTRATOR, "all")
    on = (*ON, "--kubeconfig", config, "--namespace", "nowhere")
    for arguments in (("submit", job), ("status", "j"), ("logs", "j")):
        line = fail(user, *arguments, *on)
        assert "there is no namespace nowhere" in line and "kubectl create namespace" in line


def test_a_job_that_is_not_there(user: Jobs, space: Space, job: pathlib.Path) -> None:
    assert f"no job j in the namespace {space.name}" in fail(user, "status", "j", *ON)
    user.ok("submit", job, *ON)
    assert "(did you mean 'j'?)" in fail(user, "logs", "jj", *ON)
    assert "has no task worker-7" in fail(user, "logs", "j", "worker-7")


def test_an_image_that_cannot_be_pulled(space: Space, user: Jobs, job: pathlib.Path) -> None:
    space.kubelet.decide = lambda pod: "wait"
    space.start_operator()
    user.ok("submit", job, *ON)
    space.wait_pods(j_worker_0="Pending")
    space.kubelet.set_waiting("j-worker-0", "ErrImagePull", 'pull of "imgae:1": not found')
    assert problem(user, "worker-0") == (
        'ErrImagePull: pull of "imgae:1": not found '
        "(check the image's name, and the template's imagePullSecrets)"
    )
    assert "ErrImagePull" in user.ok("status", "j")
    # It is said once it is known, and gone when it is over.
    space.kubelet.set_running("j-worker-0")
    wait_for(lambda: "problem" not in user.task("j", "worker-0"))


def test_a_claim_that_is_not_there(space: Space, user: Jobs, job: pathlib.Path) -> None:
    space.kubelet.decide = lambda pod: "wait"
    space.start_operator()
    user.ok("submit", job, *ON)
    pod = f"{space.core}/pods/j-worker-0"
    space.wait_pods(j_worker_0="Pending")
    wait_for(lambda: space.api.get(pod)["spec"].get("nodeName"))  # which also writes the condition
    space.api.patch_status(pod, {"conditions": [{
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
        "message": '0/1 nodes are available: persistentvolumeclaim "data" not found.',
    }]})  # fmt: skip
    assert 'persistentvolumeclaim "data" not found' in problem(user, "worker-0")
    assert "make that claim in the job's namespace" in problem(user, "worker-0")


def quota(space: Space, **hard: str) -> Object:
    """As the controller of quotas, which does not run here, would have it."""
    limits = {name.replace("_", "/"): value for name, value in hard.items()}
    made = space.cluster.create({
        "apiVersion": "v1", "kind": "ResourceQuota", "spec": {"hard": limits},
        "metadata": {"name": "small", "namespace": space.name},
    })  # fmt: skip
    space.api.patch_status(f"{space.core}/resourcequotas/small",
                           {"hard": limits, "used": dict.fromkeys(limits, "0")})  # fmt: skip
    return made


def test_a_quota_that_is_exceeded(space: Space, user: Jobs, job: pathlib.Path) -> None:
    quota(space, pods="0")
    space.start_operator()
    user.ok("submit", job, *ON)
    said = problem(user, "worker-0")
    assert "exceeded quota: small" in said and "kubectl describe quota" in said


def test_a_file_that_is_no_job(user: Jobs, space: Space, tmp_path: pathlib.Path) -> None:
    def submit(text: str) -> str:
        path = tmp_path / "bad.yaml"
        path.write_text(text)
        return fail(user, "submit", path, *ON)

    good = tfjob("j", {"Worker": 1})
    assert "holds no TFJob, but Pod" in submit("kind: Pod")
    assert "more than one TFJob" in submit(json.dumps(good) + "\n---\n" + json.dumps(good))
    unknown = tfjob("j", {"Worker": 1}, runPolicy={"nap": 1})
    assert "unknown key 'nap'" in submit(json.dumps(unknown))
    nameless = tfjob("j", {"Worker": 1})
    nameless["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["name"] = "x"
    assert "no container named tensorflow" in submit(json.dumps(nameless))
    elsewhere = tfjob("j", {"Worker": 1})
    elsewhere["metadata"]["namespace"] = "other"
    path = tmp_path / "other.json"
    path.write_text(json.dumps(elsewhere))
    line = fail(user, "submit", path, *ON, "--namespace", space.name)
    assert "give --namespace other" in line
    assert "absent.yaml" in fail(user, "submit", "absent.yaml", *ON)
    assert user.call("submit", path).returncode == 2
    assert user.call("submit", path, "--on", "moon").returncode == 2
    assert user.call("status", "j", "--namespace", "x").returncode == 2
    assert space.api.items(space.jobs) == []


MISTAKES = """\
apiVersion: kubeflow.org/v1
kind: TFJob
metadata:
  name: j
  annotations: {muster/stop: ""}
spec:
  runPolicy:
    backoffLimit: 3
  tfReplicaSpecs:
    Worker:
      replicas: 2
      template:
        spec:
          containers:
          - name: tensorflow
            image: image
            imagePullPolicy: Always
            env:
            - {name: A, value: "1"}
"""


def test_a_mistake_in_a_file_is_named_with_its_line(space: Space, user: Jobs) -> None:
    path = user.folder / "j.yaml"

    def check(right: str, wrong: str, line: int, said: str) -> None:
        assert MISTAKES.count(right) == 1
        path.write_text(MISTAKES.replace(right, wrong))
        told = fail(user, "submit", path, *ON)
        assert f"j.yaml:{line}: " in told and said in told, told

    check("backoffLimit: 3", "backofLimit: 3", 8, "(did you mean 'backoffLimit'?)")
    check("backoffLimit: 3", "backoffLimit: three", 8, "'three' is not a whole number")
    check("replicas: 2", "replica: 2", 11, "(did you mean 'replicas'?)")
    check("Worker:", "Wroker:", 11, "(did you mean 'Worker'?)")
    check("muster/stop", "muster/modelDri", 5, "(did you mean 'modelDir'?)")
    check("name: tensorflow", "name: main", 13, "there is no container named tensorflow")
    check("containers:", "container:", 13, "the key is 'containers', not 'container'")
    # What only the server knows, which has not kept anything.
    check("replicas: 2", 'replicas: "2"', 11, "the API server refuses it: spec.tfReplicaSpecs.Worker.replicas: ")
    policy = "imagePullPolicy: Always"
    check(policy, "imagePulPolicy: Always", 17, "(did you mean 'imagePullPolicy'?)")
    check(policy, "imagePullPolicy: Allways", 17, "would be refused: ")
    check('value: "1"', "value: 1", 19, "would be refused: ")
    assert space.api.items(space.jobs) == []
    assert space.api.items(f"{space.core}/podtemplates") == []
    path.write_text(MISTAKES)
    user.ok("submit", path, *ON)


def test_without_the_right_to_try_a_template_it_is_submitted(
    space: Space, user: Jobs, job: pathlib.Path
) -> None:
    for kind, rest in {
        "Role": {"rules": [{"apiGroups": ["kubeflow.org"], "resources": ["tfjobs"],
                            "verbs": ["create"]}]},
        "RoleBinding": {"roleRef": {"apiGroup": GROUP, "kind": "Role", "name": "creates"},
                        "subjects": [{"kind": "User", "name": "stranger"}]},
    }.items():  # fmt: skip
        space.cluster.create({"apiVersion": f"{GROUP}/v1", "kind": kind, **rest,
                              "metadata": {"name": "creates", "namespace": space.name}})  # fmt: skip
    config = space.cluster.kubeconfig(STRANGER, "creates", namespace=space.name)
    user.ok("submit", job, *ON, "--kubeconfig", config)
    assert space.job("j")


def test_ctrl_c_leaves_no_job_without_its_name(space: Space, user: Jobs) -> None:
    for trial in range(12):
        path = user.folder / f"t{trial}.json"
        path.write_text(json.dumps(tfjob(f"t{trial}", {"Worker": 1})))
        run = user.start("submit", path, *ON)
        time.sleep(0.01 * trial)
        run.send_signal(signal.SIGINT)
        _, errors = run.communicate(timeout=60)
        if run.returncode not in (0, -signal.SIGINT):
            assert f"the job t{trial} was made before Ctrl-C" in errors
    made = [json.loads(line)["name"] for line in user.ok("list", "--json", *ON).splitlines()]
    assert made  # of the later trials at least
    for name in made:
        assert user.status(name)["phase"] == "active"


def test_the_record_of_a_cluster_that_is_gone(space: Space, user: Jobs, job: pathlib.Path) -> None:
    server = f"http://127.0.0.1:{free_port()}"
    user.ok("submit", job, *ON)
    record = user.home / "jobs/j/place.json"
    config = space.cluster.kubeconfig("token", "gone", server=server, namespace=space.name)
    written = json.loads(record.read_text())
    record.write_text(json.dumps({**written, "url": server, "config": str(config)}))
    assert "that the cluster is there" in fail(user, "rm", "j")
    assert user.ok("rm", "j", "--forget") == "j\n"
    assert not record.exists()


def test_the_record_of_a_job_that_kubectl_removed(space: Space, user: Jobs, job: pathlib.Path) -> None:
    user.ok("submit", job, *ON)
    space.api.delete(f"{space.jobs}/j")
    listed = user.call("list")
    assert (listed.stdout, listed.stderr) == ("", "")
    assert user.ok("rm", "--older-than", "1d") == "j\n"
    assert not (user.home / "jobs/j").exists()


def test_a_job_that_is_refused_has_an_age(space: Space, user: Jobs) -> None:
    space.start_operator()
    wrong = tfjob("j", {"Worker": 1})
    wrong["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["name"] = "other"
    space.submit(wrong)
    space.wait_condition("j", "Failed")
    assert re.match(r"job j failed in \d+s", user.ok("status", "j", *ON))


def test_logs_say_that_no_operator_runs(space: Space, user: Jobs, job: pathlib.Path) -> None:
    user.ok("submit", job, *ON)
    run = user.start("logs", "-f", "j")
    line = run.stderr.readline()
    assert "no operator has looked at it: muster operator must run" in line
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=60)


def test_a_program_of_the_kubeconfig_gives_the_token(space: Space, user: Jobs, job: pathlib.Path) -> None:
    program = user.folder / "credentials"
    printed = {
        "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
        "status": {"token": ADMINISTRATOR},
    }  # fmt: skip
    program.write_text(f"#!/bin/sh\necho a warning >&2\necho '{json.dumps(printed)}'\n")
    program.chmod(0o700)
    config = json.loads(pathlib.Path(user.environment["KUBECONFIG"]).read_text())
    execution = {"apiVersion": printed["apiVersion"], "command": str(program)}
    config["users"][0]["user"] = {"exec": execution}
    path = space.cluster.folder / "exec.kubeconfig"
    path.write_text(json.dumps(config))
    user.ok("submit", job, *ON, "--kubeconfig", path)
    program.write_text("#!/bin/sh\nexit 4\n")
    line = user.call("status", "j").stderr.splitlines()[-1]
    assert f"{program}: exit code 4 instead of a credential" in line
