"""What the verbs say beside a job's state: that no operator runs, why output is gone, what settings
do not do, and names that are no good.
"""

from __future__ import annotations

import datetime
import json
import pathlib
import time

import yaml

from testbed.jobs import Jobs
from testbed.kubernetes.api import Object
from testbed.kubernetes.operators import Space, stop_process, tfjob, wait_for
from testbed.kubernetes.proxy import Call, Proxy
from testbed.ports import free_port

ON = ("--on", "kubernetes")


def write(folder: pathlib.Path, job: Object, name: str = "job.json") -> pathlib.Path:
    path = folder / name
    path.write_text(json.dumps(job))
    return path


def submit(user: Jobs, job: Object) -> None:
    user.ok("submit", write(user.folder, job), *ON)


def lease(space: Space) -> str:
    return f"/apis/coordination.k8s.io/v1/namespaces/{space.name}/leases/muster-operator"


def make_lease_old(space: Space) -> None:
    """As it is some time after its operator was killed."""
    before = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(hours=1)
    renewed = before.strftime("%Y-%m-%dT%H:%M:%S.000000Z")
    space.api.merge(lease(space), {"spec": {"renewTime": renewed}})


def test_orders_that_no_operator_hears_are_told(space: Space, user: Jobs) -> None:
    operator = space.start_operator()
    submit(user, tfjob("j", {"Worker": 1}))
    space.wait_condition("j", "Running")
    assert user.call("suspend", "j").stderr == ""
    assert user.call("resume", "j").stderr == ""
    wait_for(lambda: "job j active\n" in user.ok("status", "j"))
    assert space.job("j")["status"]["muster"]["lease"] == f"{space.name}/muster-operator"
    stop_process(operator)
    (line,) = user.call("suspend", "j").stderr.splitlines()
    assert line == ("muster: it was told to suspend, and no operator has done that yet: muster "
                    f"operator must run, and see the namespace {space.name}")  # fmt: skip
    assert "(it was told to suspend, and no operator" in user.ok("status", "j")
    make_lease_old(space)
    absent = f"no operator runs: its lease {space.name}/muster-operator was renewed last at "
    assert absent in user.ok("status", "j")
    assert absent in user.ok("status", "j", *ON)
    assert "no operator runs" in user.ok("list") and "no operator runs" in user.ok("list", *ON)
    (line,) = user.call("stop", "j", "--no-wait").stderr.splitlines()
    assert absent in line and f"(kubectl get pods --namespace {space.name})" in line
    space.api.delete(lease(space))
    assert f"its lease {space.name}/muster-operator does not exist" in user.ok("status", "j")
    space.start_operator()
    space.wait_condition("j", "Failed")
    assert "no operator runs" not in user.ok("status", "j")


def test_without_an_operator_a_pod_that_is_gone_is_told(space: Space, user: Jobs) -> None:
    operator = space.start_operator()
    submit(user, tfjob("j", {"Worker": 2}))
    space.wait_condition("j", "Running")
    wait_for(lambda: user.task("j", "worker-1")["phase"] == "running")
    stop_process(operator)
    make_lease_old(space)
    assert "problem" not in user.task("j", "worker-0")
    space.api.delete(f"{space.core}/pods/j-worker-0")
    space.kubelet.end("j-worker-1", 3)
    gone = "its pod is gone, and no operator makes another one"
    wait_for(lambda: user.task("j", "worker-0").get("problem") == gone)
    ended = "its pod has ended (exit code 3), and no operator has seen that"
    wait_for(lambda: user.task("j", "worker-1").get("problem") == ended)
    status = user.ok("status", "j")
    assert gone in status and ended in status and "no operator runs" in status
    (listed,) = [json.loads(line) for line in user.ok("list", "--json").splitlines()]
    assert listed == user.status("j")


def count_calls(space: Space, user: Jobs) -> list[str]:
    """The calls to the API server that the user's verbs make from now on."""
    calls: list[str] = []
    proxy = Proxy(space.cluster)

    def judge(call: Call) -> str:
        calls.append(f"{call.method} {call.target}")
        return ""

    proxy.judge = judge
    config = json.loads(pathlib.Path(user.environment["KUBECONFIG"]).read_text())
    config["clusters"][0]["cluster"] = {"server": proxy.server}
    user.environment["KUBECONFIG"] = str(user.folder / "counted.kubeconfig")
    pathlib.Path(user.environment["KUBECONFIG"]).write_text(json.dumps(config))
    return calls


def test_a_list_says_of_each_job_what_its_status_says(space: Space, user: Jobs) -> None:
    calls = count_calls(space, user)
    space.start_operator()
    names = [f"j{i}" for i in range(12)]
    for name in (*names, "gone"):
        submit(user, tfjob(name, {"Worker": 1}))
    for name in names:
        space.wait_condition(name, "Running")
        wait_for(lambda: user.task(name, "worker-0")["phase"] == "running")
    space.api.delete(f"{space.jobs}/gone")
    wait_for(lambda: space.api.find(f"{space.jobs}/gone") is None)
    space.submit(tfjob("gone", {"Worker": 1}))  # of the same name, but not the one that was submitted
    calls.clear()
    listed = [json.loads(line) for line in user.ok("list", "--json").splitlines()]
    # For the jobs, for their pods, and for the lease of their operator.
    assert len(calls) == 3, calls
    assert sorted(job["name"] for job in listed) == sorted(names)
    assert {job["tasks"][0]["place"] for job in listed} == {"node-1"}
    for job in listed:
        assert job == user.status(job["name"])


def test_logs_say_that_a_limit_has_deleted_the_pod(space: Space, user: Jobs) -> None:
    space.start_operator()
    submit(user, tfjob("j", {"Worker": 1}, "OnFailure", runPolicy={"backoffLimit": 1}))
    space.wait_condition("j", "Running")
    last = {"terminated": {"exitCode": 3, "reason": "Error", "message": "a\nValueError: bad\n"}}
    space.kubelet.set_running("j-worker-0", restarts=1, last=last)
    space.wait_condition("j", "Failed")
    wait_for(lambda: space.pods() == {})
    wait_for(lambda: user.task("j", "worker-0")["phase"] == "stopped")
    (line,) = user.call("logs", "j").stderr.splitlines()
    assert f"the pod {space.name}/j-worker-0 does not exist any more" in line
    assert "it was deleted when it still ran: the job has failed: TFJob j has failed" in line
    assert "reached the specified backoff limit" in line and "cleanPodPolicy" not in line
    assert line.endswith("keeps the last line of a run that failed: 'ValueError: bad'")


def test_a_suspended_job_has_no_output(space: Space, user: Jobs) -> None:
    space.start_operator()
    submit(user, tfjob("j", {"Worker": 1}))
    space.wait_condition("j", "Running")
    user.ok("suspend", "j")
    wait_for(lambda: space.pods() == {})
    wait_for(lambda: user.task("j", "worker-0")["phase"] == "waiting")
    assert "the job is suspended, which deletes its pods" in user.call("logs", "j").stderr
    created = user.status("j")["created"]
    user.ok("resume", "j")
    wait_for(lambda: user.status("j")["start_time"] > created)
    assert user.status("j")["created"] == created
    # What it took goes from there to its suspension, not to the time at which it is stopped.
    user.ok("suspend", "j")
    took = wait_for(lambda: user.status("j").get("took"))
    time.sleep(2)
    user.ok("stop", "j")
    stopped = user.status("j")
    assert stopped["took"] == took < stopped["completion_time"] - stopped["start_time"] - 1


def native(name: str, workers: int, allowed: str = "") -> Object:
    job = tfjob(name, {"Chief": 1, "Worker": workers}, "ExitCode")
    for replica in job["spec"]["tfReplicaSpecs"].values():
        replica["template"]["spec"]["containers"][0]["command"] = ["muster", "worker", "m.yaml"]
    if allowed:
        job["metadata"]["annotations"] = {"muster/workers": allowed}
    return job


def scale(space: Space, job: str, workers: int) -> None:
    space.api.merge(f"{space.jobs}/{job}/scale", {"spec": {"replicas": workers}})


def test_a_number_of_workers_that_cannot_be_is_told(space: Space, user: Jobs) -> None:
    space.start_operator()
    submit(user, native("e", 2, "2-3"))
    submit(user, native("f", 2))
    for job in ("e", "f"):
        space.wait_condition(job, "Running")
        assert "note:" not in user.ok("status", job)
        scale(space, job, 1)
    wait_for(lambda: "note: the number of replicas of Worker stays 2, though 1 are asked for"
             in user.ok("status", "f"))  # fmt: skip
    below = "note: 1 workers are asked for, but muster/workers allows no fewer than 2: that many run"
    assert f"{below}\n" in user.ok("status", "e")
    scale(space, "e", 5)
    assert "5 workers are asked for, but muster/workers allows 3" in user.ok("status", "e")
    scale(space, "f", 2)
    wait_for(lambda: "note:" not in user.ok("status", "f"))


CLAIM = """\
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: NAME}
spec:
  tfReplicaSpecs:
    Worker:
      template:
        spec:
          containers:
          - {name: tensorflow, image: i, volumeMounts: [{name: v, mountPath: /v}]}
          volumes:
          - name: v
            persistentVolumeClaim: {claimName: lost}
"""


def test_a_claim_that_is_not_there_is_named_before(space: Space, user: Jobs) -> None:
    path = user.folder / "job.yaml"
    path.write_text(CLAIM.replace("NAME", "j"))
    refused = user.call("submit", path, *ON)
    (line,) = refused.stderr.splitlines()
    assert refused.returncode == 1 and "job.yaml:13: " in line
    assert f"there is no claim lost in the namespace {space.name}: make it first" in line
    assert space.api.items(space.jobs) == [] and user.ok("list") == ""
    space.make_claim("lost")
    user.ok("submit", path, *ON)


def test_a_claim_that_is_not_there_is_named_after(space: Space, user: Jobs) -> None:
    """Of a job that kubectl made, where no scheduler and no event says it."""
    space.kubelet.decide = lambda pod: "wait"
    space.start_operator()
    for name in ("j", "k"):
        space.submit(yaml.safe_load(CLAIM.replace("NAME", name)))
    missing = f"there is no claim lost in the namespace {space.name}: make it first, or name another"
    wait_for(lambda: missing in user.ok("status", "j", *ON), space.log)
    # A list asks once for each claim.
    calls = count_calls(space, user)
    listed = [json.loads(line) for line in user.ok("list", "--json", *ON).splitlines()]
    assert [job["tasks"][0]["problem"][: len(missing)] for job in listed] == [missing, missing]
    assert len([call for call in calls if "persistentvolumeclaims" in call]) == 1, calls
    space.make_claim("lost")
    assert "no claim" not in user.ok("status", "j", *ON)


def test_names_that_kubernetes_does_not_have(space: Space, user: Jobs) -> None:
    path = user.folder / "job.yaml"
    text = CLAIM[: CLAIM.index("          volumes")].replace(", volumeMounts: [{name: v, mountPath: /v}]", "")
    for name in ("my_job", "My_job"):
        path.write_text(text.replace("NAME", name))
        (line,) = user.call("submit", path, *ON).stderr.splitlines()
        assert "job.yaml:" in line and line.endswith("'my-job' would do"), line
        given = user.call("submit", path, *ON, "--name", name)
        assert given.returncode == 2 and "'my-job' would do" in given.stderr
        assert "of a-z, 0-9 and '-' that" in given.stderr
    path.write_text(text.replace("NAME", "my_job"))
    assert user.ok("submit", path, *ON, "--name", "my-job") == "my-job\n"
    assert user.ok("submit", path, *ON, "--job", "other") == "other\n"


def test_namespaces_that_kubernetes_does_not_have(space: Space, user: Jobs) -> None:
    calls = count_calls(space, user)
    job = tfjob("j", {"Worker": 1})
    for arguments in (("submit", write(user.folder, job)), ("status", "j"), ("list",)):
        refused = user.call(*arguments, *ON, "--namespace", "My_Team")
        assert refused.returncode == 2 and "'my-team' would do" in refused.stderr, refused.stderr
    job["metadata"]["namespace"] = "My_Team"
    (line,) = user.call("submit", write(user.folder, job), *ON).stderr.splitlines()
    assert "job.json:1: " in line and line.endswith("'my-team' would do"), line
    config = space.cluster.kubeconfig("token", f"team-{space.name}", namespace="My_Team")
    (line,) = user.call("list", *ON, "--kubeconfig", config).stderr.splitlines()
    assert str(config) in line and line.endswith("'my-team' would do"), line
    refused = user.call("operator", "--namespace", "Team")
    assert refused.returncode == 2 and "'team' would do" in refused.stderr
    refused = user.call("operator", "--lease-namespace", "Team")
    assert refused.returncode == 2 and "'team' would do" in refused.stderr
    assert calls == []


def test_a_job_that_this_machine_does_not_know(space: Space, user: Jobs) -> None:
    space.submit(tfjob("j", {"Worker": 1}))
    (line,) = user.call("status", "j").stderr.splitlines()
    config = user.environment["KUBECONFIG"]
    assert line.endswith(f"; --on kubernetes looks for it in the cluster of {config}")
    del user.environment["KUBECONFIG"]
    user.environment["HOME"] = str(user.folder)
    assert "--on kubernetes" not in user.call("status", "j").stderr


def test_a_cluster_that_is_away_is_one_line_of_a_list(space: Space, user: Jobs) -> None:
    server = f"http://127.0.0.1:{free_port()}"
    config = space.cluster.kubeconfig("token", f"away-{space.name}", server=server,
                                      namespace=space.name)  # fmt: skip
    for name in ("a", "b", "c"):
        submit(user, tfjob(name, {"Worker": 1}))
        record = user.home / f"jobs/{name}/place.json"
        if name != "c":
            written = json.loads(record.read_text())
            record.write_text(json.dumps({**written, "url": server, "config": str(config)}))
    listed = user.call("list")
    (line,) = listed.stderr.splitlines()
    assert server in line and line.endswith("that the cluster is there; not shown: a, b")
    assert listed.stdout.splitlines()[1].startswith("c ")


def test_several_jobs_are_stopped(space: Space, user: Jobs) -> None:
    space.start_operator()
    for name in ("a", "b"):
        submit(user, tfjob(name, {"Worker": 1}))
    result = user.call("stop", "a", "none", "b")
    assert result.returncode == 1 and "there is no job none" in result.stderr
    assert user.status("a")["phase"] == user.status("b")["phase"] == "failed"


def test_a_kubeconfig_by_a_link_names_files_of_its_own_folder(space: Space, user: Jobs) -> None:
    """As kubectl finds them: relative to the link, not to what it leads to."""
    folder, hidden = user.folder / "config", user.folder / "hidden"
    folder.mkdir()
    hidden.mkdir()
    config = json.loads(pathlib.Path(user.environment["KUBECONFIG"]).read_text())
    cluster = config["clusters"][0]["cluster"]
    authority = pathlib.Path(space.cluster.folder / "ca.crt").read_bytes()
    (folder / "ca.crt").write_bytes(authority)
    cluster.pop("certificate-authority-data", None)
    cluster["certificate-authority"] = "ca.crt"
    (hidden / "real").write_text(json.dumps(config))
    (folder / "link").symlink_to(hidden / "real")
    job = write(user.folder, tfjob("j", {"Worker": 1}))
    user.ok("submit", job, *ON, "--kubeconfig", "config/link")
    del user.environment["KUBECONFIG"]
    assert "job j active" in user.ok("status", "j")
