"""kill -9 of a task of a real TensorFlow program, or of what of Muster's takes care of it, in a step
of its training that the test holds."""

from __future__ import annotations

import os
import re
import signal

from testbed.tensorflow_jobs import DEADLINE, TensorFlowJobs, ended_by_itself


def test_a_killed_mirrored_worker_restarts_the_gang(tensorflow_jobs: TensorFlowJobs) -> None:
    run = tensorflow_jobs
    job = run.start(
        "--workers", 2, "--expect", "mwms",
        *run.command(
            run.current, "mirrored_loop.py", "--model-dir", run.model, *run.gate_flags(step=12)
        ),
    )  # fmt: skip
    run.wait_at_gate(job, "worker-1")
    run.kill(job, "worker-1")
    run.open_gate()
    tasks = run.wait_success(job)
    assert tasks["worker-1"]["restarts"] == 1  # that of the gang counts once
    for index in range(2):
        log = run.log(job, f"worker-{index}")
        assert re.findall(r"begins at step (\d+)", log) == ["0", "10"]  # saved in each fifth
        assert f"worker {index} is done at step 30" in log


def test_a_killed_estimator_worker_and_ps_restart_alone(tensorflow_jobs: TensorFlowJobs) -> None:
    run = tensorflow_jobs
    job = run.start(
        "--chief", "--workers", 1, "--ps", 1, "--finish-timeout", "1s",
        *run.command(
            run.old, "wide_deep.py", "--model-dir", run.model, "--max-steps", 60,
            *run.gate_flags(step=20),
        ),
    )  # fmt: skip
    run.wait_at_gate(job, "chief-0", "worker-0")
    before = run.kill(job, "worker-0")
    run.wait_at_gate(job, "worker-0", count=2)  # it has joined the others again
    assert run.jobs.task(job, "worker-0")["address"] == before["address"]
    run.kill(job, "ps-0")
    run.jobs.running(job, "ps-0", 2)
    run.open_gate()
    tasks = run.wait_success(job)
    assert ended_by_itself(tasks["chief-0"])
    assert tasks["worker-0"]["restarts"] == 1
    assert tasks["ps-0"]["restarts"] == 1
    assert "Restoring parameters from" in run.log(job, "chief-0")  # into the new ps
    assert "model.ckpt-6" in (run.model / "checkpoint").read_text()


def test_with_agent_and_coordinator_killed_mirrored_workers_go_on(
    tensorflow_jobs: TensorFlowJobs,
) -> None:
    run = tensorflow_jobs
    job = run.start(
        "--workers", 2, "--expect", "mwms",
        *run.command(
            run.current, "mirrored_loop.py", "--model-dir", run.model, *run.gate_flags(step=12)
        ),
    )  # fmt: skip
    names = [f"worker-{index}" for index in range(2)]
    run.wait_at_gate(job, "worker-1")  # the other one may be waiting for it in its step
    os.kill(run.jobs.running(job, "worker-1")["agent_pid"], signal.SIGKILL)
    first = run.jobs.kill_coordinator(job)  # before it has done much about that
    run.wait_at_gate(job, "worker-1", count=2)
    before = [run.jobs.running(job, name)["pid"] for name in names]
    second = run.jobs.kill_coordinator(job)
    run.wait(lambda: run.jobs.coordinator(job) not in (first, second), "for a third coordinator")
    assert [run.jobs.running(job, name)["pid"] for name in names] == before
    run.open_gate()
    tasks = run.wait_success(job)
    assert tasks["worker-1"]["restarts"] == 1
    for index, name in enumerate(names):
        log = run.log(job, name)
        assert re.findall(r"begins at step (\d+)", log) == ["0", "10"]
        assert f"worker {index} is done at step 30" in log


def test_a_killed_chief_that_may_not_restart_fails_the_job(tensorflow_jobs: TensorFlowJobs) -> None:
    run = tensorflow_jobs
    process = run.jobs.start(
        "run", "--name", "j", "--chief", "--workers", 1, "--ps", 1, "--restart-policy", "Never",
        "--grace", 1,
        *run.command(
            run.old, "wide_deep.py", "--model-dir", run.model, *run.gate_flags(step=20)
        ),
    )  # fmt: skip
    run.wait_at_gate("j", "chief-0", "worker-0")
    run.kill("j", "chief-0")
    _, errors = process.communicate(timeout=DEADLINE)
    assert process.returncode == 1
    assert re.search("^muster: job j failed in .*: chief-0: killed by SIGKILL", errors, re.MULTILINE)
    status = run.wait_end("j")
    assert status["phase"] == "failed"
    assert status["failures"][0]["task"] == "chief-0"
    stopped = {task["task"]: task.get("stop_reason") for task in status["tasks"]}
    assert stopped["worker-0"] == stopped["ps-0"] == "the job has failed"
