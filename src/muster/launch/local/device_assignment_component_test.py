"""Cores, GPUs and memory of tasks, as their programs see them."""

from __future__ import annotations

import json
import os
import pathlib
import signal
from typing import Any

import pytest

from testbed.jobs import Jobs

CORES = "import os, subprocess, sys; print(sorted(os.sched_getaffinity(0)))"
GPUS = "import os; print(os.environ.get('CUDA_VISIBLE_DEVICES'))"


def replica(
    program: str, count: int = 1, policy: str = "Never", **limits: str
) -> dict[str, Any]:
    container = {
        "name": "tensorflow",
        "command": ["python3", "-c", program],
        "resources": {"limits": {k.replace("gpu", "nvidia.com/gpu"): v for k, v in limits.items()}},
    }
    return {"replicas": count, "restartPolicy": policy,
            "template": {"spec": {"containers": [container]}}}  # fmt: skip


def write_job(jobs: Jobs, **replicas: dict[str, Any]) -> str:
    """A TFJob file with these replicas; JSON is YAML. Returns the file's name."""
    manifest = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": {"name": "j"},
        "spec": {"tfReplicaSpecs": replicas, "successPolicy": "AllWorkers"},
    }
    (jobs.folder / "job.yaml").write_text(json.dumps(manifest))
    return "job.yaml"


def said(jobs: Jobs) -> dict[str, list[str]]:
    """What each task wrote, by its name."""
    folder = jobs.home / "jobs/j/logs"
    return {path.stem: path.read_text().splitlines() for path in folder.glob("*.log")}


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core cannot be dealt out")
def test_tasks_with_a_limit_have_cores_of_their_own_also_after_a_restart(jobs: Jobs) -> None:
    # What a task starts stays on its cores; the first incarnation of worker-1 fails.
    child = f"subprocess.run([sys.executable, '-c', {CORES!r}])"
    failing = "sys.exit(os.environ['MUSTER_TASK'] == 'worker-1' and not os.path.exists('x')"
    program = f"{CORES}; sys.stdout.flush(); {child}; {failing} and open('x', 'w') is not None)"
    name = write_job(jobs, Worker=replica(program, 2, "OnFailure", cpu="1"))
    jobs.ok("run", name)
    cores = said(jobs)
    assert len(set(cores["worker-0"])) == 1 and len(cores["worker-0"]) == 2
    assert len(set(cores["worker-1"])) == 1 and len(cores["worker-1"]) == 4
    first, second = json.loads(cores["worker-0"][0]), json.loads(cores["worker-1"][0])
    assert len(first) == len(second) == 1 and first != second
    assert {*first, *second} <= os.sched_getaffinity(0)


def test_tasks_stay_on_the_cores_that_muster_was_given(jobs: Jobs) -> None:
    core = max(os.sched_getaffinity(0))
    name = write_job(jobs, Worker=replica(CORES, 2, cpu="1"), Evaluator=replica(CORES))
    result = jobs.call("run", name, wrapper=["taskset", "--cpu-list", str(core)])
    assert result.returncode == 0, result.stderr
    assert {line for lines in said(jobs).values() for line in lines} == {f"[{core}]"}


def own_gpus(count: int) -> list[str]:
    """Names that no other test has at the same time: GPUs are claimed on the whole machine."""
    return [f"GPU-{os.getpid()}-{i}" for i in range(count)]


def test_gpus_are_dealt_out_and_others_see_none(jobs: Jobs) -> None:
    names = own_gpus(3)
    jobs.environment["CUDA_VISIBLE_DEVICES"] = ",".join(names)
    name = write_job(
        jobs, Worker=replica(GPUS, 2, gpu="1"), Chief=replica(GPUS, gpu="1"),
        Evaluator=replica(GPUS),
    )  # fmt: skip
    jobs.ok("run", name)
    gpus = said(jobs)
    assert gpus.pop("evaluator-0") == [""]
    assert sorted(line for lines in gpus.values() for line in lines) == names


def test_without_a_wish_the_gpus_of_the_environment_stay(jobs: Jobs) -> None:
    jobs.environment["CUDA_VISIBLE_DEVICES"] = "1,2"
    jobs.ok("run", write_job(jobs, Worker=replica(GPUS, 2)))
    assert said(jobs) == {"worker-0": ["1,2"], "worker-1": ["1,2"]}


@pytest.mark.parametrize(
    ("flags", "seen"), [((), ""), (("--env", "CUDA_VISIBLE_DEVICES=1"), "1")], ids=["none", "said"]
)
def test_a_job_that_is_told_to_use_no_gpu_sees_none(
    jobs: Jobs, flags: tuple[str, ...], seen: str
) -> None:
    jobs.environment["CUDA_VISIBLE_DEVICES"] = "1,2"
    jobs.ok("run", write_job(jobs, Worker=replica(GPUS, 2, gpu="4")), "--gpus", 0, *flags)
    assert said(jobs) == {"worker-0": [seen], "worker-1": [seen]}


def test_too_few_gpus_start_nothing(jobs: Jobs) -> None:
    jobs.environment["CUDA_VISIBLE_DEVICES"] = "0,1"
    result = jobs.call("run", write_job(jobs, Worker=replica(GPUS, 3, gpu="1")))
    assert result.returncode == 1
    assert "3" in result.stderr and "GPU" in result.stderr, result.stderr
    assert not (jobs.home / "jobs/j").exists()
    jobs.wait_nothing_runs()


def test_no_two_jobs_are_dealt_the_same_gpu(jobs: Jobs) -> None:
    names = own_gpus(2)
    jobs.environment["CUDA_VISIBLE_DEVICES"] = ",".join(names)
    program = f"{GPUS}; import sys, time; sys.stdout.flush(); time.sleep(1000)"
    name = write_job(jobs, Worker=replica(program, gpu="1"))
    for job in ("first", "second"):
        jobs.detach(name, "--name", job)
        jobs.running(job, "worker-0")
    logs = [jobs.home / f"jobs/{job}/logs/worker-0.log" for job in ("first", "second")]
    jobs.wait(lambda: all(log.exists() and log.read_text().endswith("\n") for log in logs))
    assert [log.read_text() for log in logs] == [f"{name}\n" for name in names]
    third = jobs.call("run", name, "--name", "third")
    assert third.returncode == 1
    assert f"{names[0]} is used by {jobs.home}/jobs/first" in third.stderr, third.stderr
    assert f"{names[1]} is used by {jobs.home}/jobs/second" in third.stderr
    assert not (jobs.home / "jobs/third").exists()
    # Its tasks keep theirs while nobody leads them, and the next coordinator has them again.
    jobs.forsake("first")
    assert jobs.call("run", name, "--name", "third").returncode == 1
    jobs.ok("resume", "first")
    jobs.running("first", "worker-0")
    assert jobs.call("run", name, "--name", "third").returncode == 1
    jobs.detach(name, "--name", "sharing", "--share-gpus")
    jobs.running("sharing", "worker-0")
    jobs.ok("stop", "second")
    jobs.detach(name, "--name", "third")
    jobs.running("third", "worker-0")
    assert (jobs.home / "jobs/third/logs/worker-0.log").read_text() in ("", f"{names[1]}\n")
    for job in ("first", "sharing", "third"):
        jobs.ok("stop", job)
    jobs.wait_nothing_runs()


def test_want_of_memory_is_told_apart(jobs: Jobs) -> None:
    program = "x = bytearray(400 << 20); print('had it')"
    name = write_job(jobs, Worker=replica(program, memory="64Mi"))
    result = jobs.call("run", name)
    agent_log = (jobs.home / "jobs/j/agents/worker-0.log").read_text()
    jobs.wait_nothing_runs()
    if "memory limits are not enforced here" in agent_log:
        assert said(jobs) == {"worker-0": ["had it"]}
        pytest.skip("this machine's cgroups allow no memory limit; the agent's log says so")
    assert result.returncode == 1
    assert "worker-0: killed by SIGKILL (out of memory)" in result.stderr
    assert "had it" not in "".join(said(jobs)["worker-0"])


def memory_group(pid: int) -> pathlib.Path | None:
    """The folder of the memory limit that muster made for the process."""
    for line in pathlib.Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if "/muster-" in path:
            kind = "memory" if controllers else ""
            return pathlib.Path("/sys/fs/cgroup", kind, path.lstrip("/"))
    return None


def test_no_memory_limit_stays_behind(jobs: Jobs) -> None:
    program = "import time; time.sleep(1000)"
    job = jobs.detach(write_job(jobs, Worker=replica(program, 2, "OnFailure", memory="256Mi")))
    tasks = [jobs.running(job, f"worker-{i}") for i in range(2)]
    groups = [memory_group(task["pid"]) for task in tasks]
    if not all(groups):
        jobs.ok("stop", job)
        pytest.skip("this machine's cgroups allow no memory limit")
    os.kill(tasks[0]["agent_pid"], signal.SIGKILL)  # whose limit is left to the coordinator
    jobs.running(job, "worker-0", tasks[0]["incarnation"] + 1)
    assert not groups[0].exists() and groups[1].exists()
    jobs.ok("stop", job)
    assert not any(group.exists() for group in groups)
    jobs.wait_nothing_runs()
