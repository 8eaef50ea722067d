"""Tasks that give no sign of life under `muster run --progress-timeout`, and those that do.

Each test runs its jobs side by side, since all of them wait for time to pass.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess

from testbed.jobs import DEADLINE, Jobs


def start(jobs: Jobs, name: str, *arguments: object) -> subprocess.Popen[str]:
    return jobs.start("run", "--name", name, "--restarts", 0, "--grace", 1, *arguments)


def start_hanging(jobs: Jobs, name: str, *command: object) -> subprocess.Popen[str]:
    return start(jobs, name, "--workers", 1, "--progress-timeout", "1s", "--", *command)


def errors_of_failed(run: subprocess.Popen[str]) -> str:
    _, errors = run.communicate(timeout=DEADLINE)
    assert run.returncode == 1, errors
    return errors


def test_what_a_hanging_task_did_is_shown(jobs: Jobs) -> None:
    programs = {
        "waits": ("echo hello; sleep 1000", "(sleep) waiting, "),
        "computes": ("echo hello; while :; do :; done", "(sh) running, "),
    }
    runs = {name: start_hanging(jobs, name, "sh", "-c", programs[name][0]) for name in programs}
    for name, (program, seen) in programs.items():
        errors = errors_of_failed(runs[name])
        assert "worker-0: no sign of life for" in errors
        assert "what it did then:" in errors
        diagnosis = jobs.ok("status", name).partition("what it did then:\n")[2]
        assert f"(sh -c {program})" in diagnosis
        assert seen in diagnosis
        assert "what it did before:]\n" in jobs.ok("logs", name, "worker-0")
    jobs.wait_nothing_runs()


def test_where_py_spy_is_installed_the_python_stack_is_shown(jobs: Jobs) -> None:
    py_spy = jobs.folder / "bin" / "py-spy"
    py_spy.parent.mkdir()
    py_spy.write_text('#!/bin/sh\necho "the stack, by $1 $2"\n')
    py_spy.chmod(0o755)
    python = pathlib.Path(shutil.which("python3") or "")
    beside = py_spy.parent / "python3"
    beside.symlink_to(python)
    hangs = ("-S", "-c", "import signal; signal.pause()")
    runs = [start_hanging(jobs, "beside-the-program", beside, *hangs)]
    jobs.environment["PATH"] = f"{py_spy.parent}{os.pathsep}{jobs.environment['PATH']}"
    runs.append(start_hanging(jobs, "in-the-path", python, *hangs))
    for run in runs:
        assert "  |   | the stack, by dump --nonblocking" in errors_of_failed(run)
    jobs.wait_nothing_runs()


def test_a_task_that_hung_and_starts_again_still_shows_what_it_did(jobs: Jobs) -> None:
    program = '[ "$MUSTER_INCARNATION" -gt 2 ] || [ "$MUSTER_TASK" = worker-1 ] || sleep 1000'
    job = jobs.detach(
        "--workers", 2, "--progress-timeout", "1s", "--grace", 1, "--", "sh", "-c", program
    )
    jobs.wait_phase(job, "succeeded")
    status = jobs.ok("status", job)
    assert "worker-0: no sign of life for" in status
    assert "sleep 1000" in status
    jobs.wait_nothing_runs()


def test_a_task_with_signs_of_life_goes_on(jobs: Jobs) -> None:
    signs = {
        "output": "echo alive",
        "step": "echo $i > $MUSTER_STEP_FILE",
        "model": "mkdir -p model/eval; echo $i >> model/eval/events",
        "ps": "[ $MUSTER_TASK = worker-0 ] && echo alive",  # its ps says nothing
    }
    runs = {}
    for name, sign in signs.items():
        roles = ("--ps", 1) if name == "ps" else ()
        folder = ("--model-dir", "model") if name == "model" else ()
        runs[name] = start(
            jobs, name, "--workers", 1, *roles, *folder, "--progress-timeout", "3s",
            "--", "sh", "-c", f"for i in $(seq 40); do {sign}; sleep 0.1; done",
        )  # fmt: skip
    for name, run in runs.items():
        _, errors = run.communicate(timeout=DEADLINE)
        assert run.returncode == 0, f"{name}: {errors}"
    jobs.wait_nothing_runs()


def test_a_reported_step_is_shown(jobs: Jobs) -> None:
    program = "echo 17 > $MUSTER_STEP_FILE; sleep 1000"
    job = jobs.detach("--workers", 1, "--", "sh", "-c", program)
    jobs.wait(lambda: jobs.task(job, "worker-0").get("step") == 17)
    table = jobs.ok("status", job).splitlines()
    assert "STEP" in table[1] and " 17 " in table[2]
    jobs.ok("stop", job)
