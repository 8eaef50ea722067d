"""What no watch brings of pods: tasks that have fallen silent, and volumes that cannot be mounted."""

from __future__ import annotations

import json

from testbed.jobs import Jobs
from testbed.kubernetes.kubelet import now
from testbed.kubernetes.logs import PodLogs
from testbed.kubernetes.operators import Space, tfjob, wait_for

SILENT = "no sign of life for"


def test_a_task_that_writes_nothing_is_started_again(space: Space, pod_logs: PodLogs) -> None:
    space.start_operator()
    job = tfjob("j", {"Worker": 2, "PS": 1}, "ExitCode")
    job["metadata"]["annotations"] = {"muster/progressTimeout": "8s"}
    space.submit(job)
    space.wait_condition("j", "Running")

    def writes_and_is_found() -> bool:
        pod_logs.write(space.name, "j-worker-0", "step\n")
        return len(space.kubelet.incarnations("j-worker-1")) == 2

    wait_for(writes_and_is_found, lambda: f"{space.kubelet.started}\n{space.log()}")
    status = space.job("j")["status"]
    assert SILENT in status["muster"]["rootCause"]["how"]
    assert status["muster"]["rootCause"]["task"] == "worker-1"
    # The one that wrote runs on, and so does the parameter server, which waits for others.
    assert len(space.kubelet.incarnations("j-worker-0")) == 1
    assert len(space.kubelet.incarnations("j-ps-0")) == 1


def test_a_volume_that_cannot_be_mounted_is_in_the_status(space: Space, user: Jobs) -> None:
    space.kubelet.decide = lambda pod: "wait"
    space.start_operator()
    path = user.folder / "job.json"
    path.write_text(json.dumps(tfjob("j", {"Worker": 1})))
    user.ok("submit", path, "--on", "kubernetes")
    space.wait_pods(j_worker_0="Pending")
    pod = space.pod("j-worker-0")
    message = 'MountVolume.SetUp failed for volume "key" : secret "absent" not found'
    space.api.create(f"{space.core}/events", {
        "metadata": {"name": "j-worker-0.1", "namespace": space.name},
        "involvedObject": {"kind": "Pod", "name": "j-worker-0", "namespace": space.name,
                           "uid": pod["metadata"]["uid"]},
        "type": "Warning", "reason": "FailedMount", "message": message, "count": 1,
        "firstTimestamp": now(), "lastTimestamp": now(), "source": {"component": "kubelet"},
    })  # fmt: skip
    said = wait_for(lambda: user.task("j", "worker-0").get("problem", ""))
    assert said.startswith(f"FailedMount: {message} (make the Secret, ConfigMap or disk")
    wait_for(lambda: ("FailedMount", f"Error pod j-worker-0: {message}") in space.events("j"))
    space.kubelet.set_running("j-worker-0")
    wait_for(lambda: "problem" not in user.task("j", "worker-0"))
    wait_for(lambda: "problems" not in space.job("j")["status"]["muster"])
