"""A native job in pods: from `muster submit` to its first step."""

import json
import re
import time
from pathlib import Path

from bench.context import CannotRun
from testbed.jobs import Jobs
from testbed.kubernetes import node
from testbed.kubernetes.cluster import ADMINISTRATOR, Cluster
from testbed.kubernetes.native_jobs import NativeJobs
from testbed.kubernetes.process_kubelet import ProcessKubelet
from testbed.kubernetes.process_space import ProcessSpace

STEP = re.compile(rb"step \d+: loss")
TASKS = {"Chief": 1, "Worker": 2}
PATIENCE = 120.0


def first_step(native: NativeJobs, job: str) -> float:
    """When the chief said so, in seconds since the epoch."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        log = native.space.kubelet.find_log(native.space.name, f"{job}-chief-0", "tensorflow")
        for when, line in log.lines if log else []:
            if STEP.search(line):
                return when
        time.sleep(0.01)
    raise CannotRun(f"the job {job} did no step: {native.said()}")


def start_job(cluster: Cluster, name: str, folder: Path, binary: str) -> dict[str, float]:
    """Seconds from the command to the last pod's process, and from that to the chief's first step."""
    if why := node.available():
        raise CannotRun(why)
    folder.mkdir(parents=True)
    kubelet = ProcessKubelet(cluster, name, folder)
    space = ProcessSpace(cluster, name, folder, kubelet)
    try:
        native = NativeJobs.make(binary, space)
        space.start_operator("--lease", "120")
        # The operator has begun to work, and the files are in memory.
        native.submit("first", TASKS, "--max-steps", 2)
        native.wait_success("first")
        file = folder / "job.json"
        file.write_text(json.dumps(native.job("j", TASKS, "--max-steps", 50, "--log-steps", 1)))
        user = Jobs(binary, folder)
        user.environment["KUBECONFIG"] = str(
            cluster.kubeconfig(ADMINISTRATOR, f"user-{name}", namespace=name)
        )
        begin = time.time()
        user.ok("submit", file, "--on", "kubernetes")
        step = first_step(native, "j")
        logs = [kubelet.find_log(name, f"j-{task}", "tensorflow")
                for task in ("chief-0", "worker-0", "worker-1")]  # fmt: skip
        started = max(log.begun for log in logs if log)
        native.wait_success("j")
        return {"submit": started - begin, "step": step - started}
    finally:
        space.stop()
        cluster.api.delete(f"/api/v1/namespaces/{name}")
