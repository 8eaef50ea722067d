"""Verbs of the command line for jobs of a cluster, whose pods a kubelet only pretends to run."""

from __future__ import annotations

import json
import pathlib
import signal
import threading

from testbed.jobs import Jobs
from testbed.kubernetes.api import Object
from testbed.kubernetes.logs import PodLogs
from testbed.kubernetes.operators import Space, tfjob, wait_for

ON = ("--on", "kubernetes")


def write(folder: pathlib.Path, job: Object) -> pathlib.Path:
    path = folder / "job.json"
    path.write_text(json.dumps(job))
    return path


def submit(user: Jobs, job: Object, *flags: str) -> str:
    return user.ok("submit", write(user.folder, job), *ON, *flags).strip()


def start(space: Space, user: Jobs, **replicas: int) -> None:
    """A job j that runs."""
    space.start_operator()
    assert submit(user, tfjob("j", replicas or {"Worker": 2})) == "j"
    space.wait_condition("j", "Running")


def task(user: Jobs, name: str, job: str = "j") -> Object:
    return user.task(job, name)


def test_a_job_is_submitted_and_found_by_its_name(space: Space, user: Jobs) -> None:
    space.start_operator()
    result = user.call("submit", write(user.folder, tfjob("j", {"Chief": 1, "Worker": 1})), *ON)
    assert result.stdout == "j\n", result.stderr
    assert f"job j in the namespace {space.name} of https://" in result.stderr
    space.wait_condition("j", "Running")
    wait_for(lambda: task(user, "worker-0")["phase"] == "running")
    described = user.status("j")
    assert described["phase"] == "active" and described["namespace"] == space.name
    chief = described["tasks"][0]
    assert chief["task"] == "chief-0" and chief["place"] == "node-1"
    assert chief["address"] == f"j-chief-0.{space.name}.svc:2222"
    table = user.ok("status", "j")
    assert table.startswith("job j active\n") and "chief-0" in table
    spec = json.loads(user.ok("spec", "j"))
    assert spec["cluster"]["worker"] == [f"j-worker-0.{space.name}.svc:2222"]
    assert [json.loads(line)["name"] for line in user.ok("list", "--json").splitlines()] == ["j"]
    space.kubelet.end("j-chief-0", 0)
    watched = user.ok("status", "j", "--watch")
    assert "job j succeeded" in watched


def test_from_another_machine_a_job_is_found_in_the_cluster(space: Space, user: Jobs) -> None:
    space.start_operator()
    space.submit(tfjob("j", {"Worker": 1}))
    space.wait_condition("j", "Running")
    assert user.call("status", "j").returncode == 1
    assert json.loads(user.ok("status", "j", "--json", *ON))["phase"] == "active"
    assert "j  " in user.ok("list", *ON) and "j  " in user.ok("status", *ON)
    explicit = ("--namespace", space.name, "--context", "t", "--kubeconfig",
                user.environment.pop("KUBECONFIG"))  # fmt: skip
    assert "job j active" in user.ok("status", "j", *ON, *explicit)
    user.ok("stop", "j", *ON, *explicit)
    user.ok("rm", "j", *ON, *explicit)
    assert space.api.find(f"{space.jobs}/j") is None


def test_a_stopped_job_can_be_looked_at_until_it_is_removed(
    space: Space, user: Jobs, pod_logs: PodLogs
) -> None:
    start(space, user, Worker=2, PS=1)
    pod_logs.write(space.name, "j-worker-1", "trained\n")
    space.kubelet.end("j-worker-1", 0)
    wait_for(lambda: task(user, "worker-1")["phase"] == "succeeded")
    refused = user.call("rm", "j")
    assert refused.returncode == 1 and "muster stop j" in refused.stderr
    user.ok("stop", "j")
    described = user.status("j")
    assert described["phase"] == "failed" and described["message"] == "stopped by muster stop"
    assert {t["task"]: t["phase"] for t in described["tasks"]} == {
        "ps-0": "stopped", "worker-0": "stopped", "worker-1": "succeeded"}  # fmt: skip
    # What had ended before stays, with its log; what ran was deleted, and says so.
    wait_for(lambda: space.pods() == {"j-worker-1": "Succeeded"})
    assert user.ok("logs", "j", "worker-1") == "trained\n"
    gone = user.call("logs", "j", "worker-0")
    assert gone.returncode == 1
    assert f"the pod {space.name}/j-worker-0 does not exist any more" in gone.stderr
    user.ok("stop", "j")
    assert user.ok("rm", "j") == "j\n"
    assert space.api.find(f"{space.jobs}/j") is None
    assert user.ok("list") == ""
    wait_for(lambda: space.pods() == {})


def test_the_stop_of_a_job_that_has_ended_deletes_what_it_has_left_running(space: Space, user: Jobs) -> None:
    start(space, user, Worker=1, PS=1)
    space.kubelet.end("j-worker-0", 0)
    wait_for(lambda: user.status("j")["phase"] == "succeeded")
    assert "the pods of ps-0 still run, since cleanPodPolicy is None: muster stop j" in user.ok("status", "j")
    user.ok("stop", "j")
    wait_for(lambda: space.pods() == {"j-worker-0": "Succeeded"})
    assert "still run" not in user.ok("status", "j") and user.status("j")["phase"] == "succeeded"


def test_rm_in_the_cluster_leaves_no_record_here(space: Space, user: Jobs) -> None:
    space.start_operator()
    submit(user, tfjob("j", {"Worker": 1}))
    record = user.home / "jobs/j/place.json"
    assert record.exists()
    user.ok("stop", "j", *ON)
    user.ok("rm", "j", *ON)
    assert not record.parent.exists() and user.ok("list") == ""


def test_a_job_is_suspended_and_resumed(space: Space, user: Jobs) -> None:
    start(space, user)
    assert user.call("resume", "j").returncode == 1
    user.ok("suspend", "j")
    wait_for(lambda: user.status("j")["phase"] == "suspended")
    wait_for(lambda: space.pods() == {})
    user.ok("resume", "j")
    space.wait_pods(j_worker_0="Running", j_worker_1="Running")
    wait_for(lambda: user.status("j")["phase"] == "active")
    space.kubelet.end("j-worker-0", 0)
    space.wait_condition("j", "Succeeded")
    refused = user.call("suspend", "j")
    assert refused.returncode == 1 and "has ended" in refused.stderr


def test_a_job_that_ends_at_once_when_it_is_resumed(space: Space, user: Jobs) -> None:
    space.start_operator()
    submit(user, tfjob("j", {"Worker": 1}, runPolicy={"suspend": True}))
    wait_for(lambda: user.status("j")["phase"] == "suspended")

    def end_at_once() -> None:
        space.wait_pods(j_worker_0="Running")
        space.kubelet.end("j-worker-0", 0)

    ending = threading.Thread(target=end_at_once)
    ending.start()
    resumed = user.call("resume", "j")
    ending.join()
    assert (resumed.returncode, resumed.stderr) == (0, "")
    space.wait_condition("j", "Succeeded")


def test_logs_of_all_tasks_are_one_stream(
    space: Space, user: Jobs, pod_logs: PodLogs
) -> None:
    start(space, user)
    pod_logs.write(space.name, "j-worker-0", "a\nb")
    shown = user.ok("logs", "j")
    assert shown == "worker-0 | a\nworker-0 | b\n"
    follower = user.start("logs", "-f", "j")
    assert follower.stdout and follower.stdout.readline() == "worker-0 | a\n"
    pod_logs.write(space.name, "j-worker-1", "x\n")
    assert follower.stdout.readline() == "worker-1 | x\n"
    pod_logs.write(space.name, "j-worker-0", "c\nlast")
    assert follower.stdout.readline() == "worker-0 | bc\n"
    for pod in ("j-worker-1", "j-worker-0"):
        pod_logs.end(space.name, pod)
        space.kubelet.end(pod, 0)
    output, errors = follower.communicate(timeout=60)
    assert output == "worker-0 | last\n" and follower.returncode == 0, errors
    assert user.ok("logs", "j", "worker-1") == "x\n"


def test_a_follower_goes_over_to_a_tasks_next_pod(
    space: Space, user: Jobs, pod_logs: PodLogs
) -> None:
    space.start_operator()
    submit(user, tfjob("j", {"Worker": 1}, "ExitCode"))
    space.wait_condition("j", "Running")
    pod_logs.write(space.name, "j-worker-0", "first\n")
    follower = user.start("logs", "-f", "j")
    assert follower.stdout and follower.stdout.readline() == "first\n"
    pod_logs.end(space.name, "j-worker-0")
    space.kubelet.end("j-worker-0", 137)
    wait_for(lambda: space.kubelet.incarnations("j-worker-0") == ["1", "2"])
    pod_logs.restart(space.name, "j-worker-0")
    pod_logs.write(space.name, "j-worker-0", "second\n")
    # Whether it has seen the end of the first log before the next pod was there depends on the machine's load.
    assert follower.stdout.readline() in (
        "[muster: a new run of worker-0 begins]\n", "[muster: output is missing here]\n",
    )  # fmt: skip
    assert follower.stdout.readline() == "second\n"
    follower.send_signal(signal.SIGINT)
    follower.communicate(timeout=60)


def test_an_operator_that_does_not_run_is_missed(space: Space, user: Jobs) -> None:
    submit(user, tfjob("j", {"Worker": 1}))
    assert user.status("j")["tasks"] == [
        {"task": "worker-0", "phase": "waiting", "incarnation": 0, "restarts": 0,
         "address": f"j-worker-0.{space.name}.svc:2222"}]  # fmt: skip
    user.ok("stop", "j", "--no-wait")
    assert "no operator has done that yet" in user.ok("status", "j")
    user.ok("rm", "j")


def test_names_are_taken_and_freed(space: Space, user: Jobs) -> None:
    space.start_operator()
    job = write(user.folder, tfjob("j", {"Worker": 1}))
    user.ok("submit", job, *ON)
    again = user.call("submit", job, *ON)
    assert again.returncode == 1 and "muster rm j" in again.stderr
    assert len(again.stderr.splitlines()) == 1
    taken = user.call("run", "--name", "j", "--", "true")
    assert taken.returncode == 1 and "'kubernetes'" in taken.stderr
    assert user.ok("submit", job, *ON, "--name", "j2") == "j2\n"
    # Somebody removes it: the record on this machine goes with the next submission.
    space.api.delete(f"{space.jobs}/j")
    wait_for(lambda: space.api.find(f"{space.jobs}/j") is None)
    gone = user.call("status", "j")
    assert gone.returncode == 1 and "there is no job j" in gone.stderr
    user.ok("submit", job, *ON)
    assert user.status("j")["phase"] == "active"
    user.home.joinpath("jobs/j/place.json").unlink()
    there = user.call("submit", job, *ON)
    assert there.returncode == 1
    assert f"there is a job j in the namespace {space.name}" in there.stderr
