"""Tasks that give no sign of life under `muster run --progress-timeout`, and those that do."""

from __future__ import annotations

import shutil

import pytest

from testbed.jobs import Jobs

HANG = ("--progress-timeout", "1s", "--restarts", 0, "--grace", 1)


@pytest.mark.parametrize(
    "program, seen",
    [("echo hello; sleep 1000", "waiting"), ("echo hello; while :; do :; done", "running")],
    ids=["waits", "computes"],
)
def test_what_a_hanging_task_did_is_shown(jobs: Jobs, program: str, seen: str) -> None:
    result = jobs.call("run", "--name", "j", "--workers", 1, *HANG, "--", "sh", "-c", program)
    assert result.returncode == 1
    assert "first worker-0: no sign of life for" in result.stderr
    assert "what it did then:" in result.stderr
    status = jobs.ok("status", "j")
    diagnosis = status.partition("what it did then:\n")[2]
    assert f"(sh -c {program})" in diagnosis
    assert f"(sh) {seen}, " in diagnosis or f"(sleep) {seen}, " in diagnosis
    assert "what it did before:]\n" in jobs.ok("logs", "j", "worker-0")
    jobs.wait_nothing_runs()


@pytest.mark.parametrize("place", ["in the PATH", "beside the program"])
def test_where_py_spy_is_installed_the_python_stack_is_shown(jobs: Jobs, place: str) -> None:
    py_spy = jobs.folder / "bin" / "py-spy"
    py_spy.parent.mkdir()
    python = py_spy.parent / "python3"
    python.symlink_to(shutil.which("python3"))
    py_spy.write_text('#!/bin/sh\necho "the stack, by $1 $2"\n')
    py_spy.chmod(0o755)
    if place == "in the PATH":
        jobs.environment["PATH"] = f"{py_spy.parent}:{jobs.environment['PATH']}"
        python = "python3"
    program = "import signal; signal.pause()"
    result = jobs.call(
        "run", "--name", "j", "--workers", 1, *HANG, "--", python, "-S", "-c", program
    )
    assert result.returncode == 1
    assert "  |   | the stack, by dump --nonblocking" in result.stderr
    jobs.wait_nothing_runs()


def test_a_task_that_hung_and_starts_again_still_shows_what_it_did(jobs: Jobs) -> None:
    program = '[ "$MUSTER_INCARNATION" -gt 2 ] || [ "$MUSTER_TASK" = worker-1 ] || sleep 1000'
    job = jobs.detach(
        "--workers", 2, "--progress-timeout", "1s", "--grace", 1, "--", "sh", "-c", program
    )  # fmt: skip
    jobs.wait_phase(job, "succeeded")
    status = jobs.ok("status", job)
    assert "worker-0: no sign of life for" in status
    assert "sleep 1000" in status
    jobs.wait_nothing_runs()


@pytest.mark.parametrize(
    "sign",
    [
        # A change in the model folder is a sign of the whole job: it has a run of its own.
        "case $MUSTER_TASK in worker-0) echo $i;; *) echo $i > $MUSTER_STEP_FILE;; esac",
        "mkdir -p model/eval; echo $i >> model/eval/events",
    ],
    ids=["output and step", "model folder"],
)
def test_signs_of_life(jobs: Jobs, sign: str) -> None:
    program = f"for i in $(seq 40); do {sign}; sleep 0.1; done"
    result = jobs.call(
        "run", "--name", "j", "--workers", 2, "--progress-timeout", "3s", "--restarts", 0,
        "--model-dir", "model", "--", "sh", "-c", program,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr


def test_parameter_servers_may_be_silent(jobs: Jobs) -> None:
    program = '[ "$MUSTER_TASK" = ps-0 ] && sleep 1000; seq 30 | while read i; do echo $i; sleep 0.1; done'
    result = jobs.call(
        "run", "--name", "j", "--workers", 1, "--ps", 1, "--progress-timeout", "1s",
        "--restarts", 0, "--grace", 1, "--", "sh", "-c", program,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    jobs.wait_nothing_runs()


def test_a_reported_step_is_shown(jobs: Jobs) -> None:
    program = "echo 17 > $MUSTER_STEP_FILE; sleep 1000"
    job = jobs.detach("--workers", 1, "--", "sh", "-c", program)
    jobs.wait(lambda: jobs.task(job, "worker-0").get("step") == 17)
    table = jobs.ok("status", job).splitlines()
    assert "STEP" in table[1] and " 17 " in table[2]
    jobs.ok("stop", job)
