"""Tasks, agents, coordinators and supervisors of jobs are killed."""

from __future__ import annotations

import os
import pathlib
import signal

from testbed.jobs import Jobs


def test_a_killed_task_starts_again_on_its_port(jobs: Jobs) -> None:
    job = jobs.detach("--workers", 1, "--ps", 1, "--", "sleep", 1000)
    before = jobs.running(job, "worker-0")
    ps = jobs.running(job, "ps-0")
    os.kill(before["pid"], signal.SIGKILL)
    after = jobs.running(job, "worker-0", before["incarnation"] + 1)
    assert after["address"] == before["address"]
    assert after["restarts"] == 1
    assert jobs.running(job, "ps-0")["pid"] == ps["pid"]
    jobs.ok("stop", job)
    jobs.wait_nothing_runs()


def test_without_ps_a_killed_task_starts_the_gang_again(jobs: Jobs) -> None:
    job = jobs.detach("--workers", 2, "--", "sleep", 1000)
    first = [jobs.running(job, f"worker-{i}") for i in range(2)]
    os.kill(first[1]["pid"], signal.SIGKILL)
    for task in first:
        after = jobs.running(job, task["task"], task["incarnation"] + 2)
        assert after["pid"] != task["pid"]
    jobs.ok("stop", job)
    jobs.wait_nothing_runs()


def test_what_succeeds_after_a_gang_restart_shows_no_old_reason(jobs: Jobs) -> None:
    program = (
        'test "$MUSTER_INCARNATION" -gt 2 || { test "$MUSTER_TASK" = worker-1 && exit 3; sleep 1000; }'
    )
    jobs.ok("run", "--name", "j", "--workers", 2, "--", "sh", "-c", program)
    status = jobs.status("j")
    assert status["phase"] == "succeeded"
    assert sorted(task["incarnation"] for task in status["tasks"]) == [3, 4]
    assert all("stop_reason" not in task for task in status["tasks"])


def test_a_killed_agent_takes_its_task_along_and_both_start_again(jobs: Jobs) -> None:
    job = jobs.detach("--workers", 1, "--ps", 1, "--", "sh", "-c", "setsid sleep 1000 & sleep 1000")
    before = jobs.running(job, "worker-0")
    os.kill(before["agent_pid"], signal.SIGKILL)
    after = jobs.running(job, "worker-0", before["incarnation"] + 1)
    assert before["pid"] not in jobs.processes()
    mark = f"{job}:worker-0.{before['incarnation']}\0".encode()
    for pid in jobs.processes():  # also the child that had left for a session of its own
        assert mark not in pathlib.Path(f"/proc/{pid}/environ").read_bytes()
    assert after["address"] == before["address"]
    jobs.ok("stop", job)
    jobs.wait_nothing_runs()


def test_an_agent_that_hangs_is_given_up_after_a_lease(jobs: Jobs) -> None:
    job = jobs.detach("--workers", 1, "--ps", 1, "--lease", 1, "--", "sleep", 1000)
    before = jobs.running(job, "worker-0")
    os.kill(before["agent_pid"], signal.SIGSTOP)
    jobs.running(job, "worker-0", before["incarnation"] + 1)
    assert before["pid"] not in jobs.processes()
    failure = jobs.status(job)["failures"][0]
    assert "its agent was silent for 1s" in failure["text"]
    jobs.ok("stop", job)
    jobs.wait_nothing_runs()


def test_a_job_that_is_stopped_while_it_starts_ends(jobs: Jobs) -> None:
    for _ in range(5):
        job = jobs.detach("--name", "j", "--workers", 3, "--", "sleep", 1000)
        jobs.ok("stop", job)
        jobs.wait_nothing_runs()


def test_a_killed_coordinator_is_started_again_and_its_tasks_go_on(jobs: Jobs) -> None:
    program = "while [ ! -e go ]; do sleep 0.05; done"
    job = jobs.detach("--workers", 2, "--", "sh", "-c", program)
    before = [jobs.running(job, f"worker-{i}") for i in range(2)]
    lock = jobs.home / "jobs" / job / "lock"
    for _ in range(2):
        killed = jobs.kill_coordinator(job)
        jobs.wait(lambda: lock.read_text().strip() not in ("", str(killed)))
        after = [jobs.running(job, f"worker-{i}") for i in range(2)]
        assert [t["pid"] for t in after] == [t["pid"] for t in before]
        assert [t["restarts"] for t in after] == [0, 0]
    (jobs.folder / "go").touch()
    jobs.wait_phase(job, "succeeded")
    jobs.wait_nothing_runs()


def test_a_job_can_be_stopped_while_its_coordinator_is_being_started_again(jobs: Jobs) -> None:
    job = jobs.detach("--workers", 1, "--", "sleep", 1000)
    jobs.running(job, "worker-0")
    jobs.kill_coordinator(job)
    jobs.ok("stop", job)
    assert jobs.status(job)["message"] == "stopped by muster stop"
    jobs.wait_nothing_runs()  # it has waited for coordinator and supervisor, which have yet to exit


def test_a_killed_supervisor_is_not_missed(jobs: Jobs) -> None:
    job = jobs.detach("--workers", 1, "--", "sh", "-c", "while [ ! -e go ]; do sleep 0.05; done")
    jobs.running(job, "worker-0")
    jobs.kill_supervisor(job)
    (jobs.folder / "go").touch()
    jobs.wait_phase(job, "succeeded")
    jobs.wait_nothing_runs()


def test_sigterm_for_the_supervisor_ends_the_job(jobs: Jobs) -> None:
    job = jobs.detach("--workers", 1, "--", "sleep", 1000)
    jobs.running(job, "worker-0")
    os.kill(jobs.supervisor(job), signal.SIGTERM)
    jobs.wait_phase(job, "failed")
    assert jobs.status(job)["message"] == "its coordinator was told to end"
    jobs.wait_nothing_runs()


def test_with_both_killed_a_job_is_resumed_by_hand(jobs: Jobs) -> None:
    job = jobs.detach("--workers", 2, "--lease", 30, "--", "sleep", 1000)
    before = [jobs.running(job, f"worker-{i}") for i in range(2)]
    jobs.kill_supervisor(job)
    jobs.kill_coordinator(job)
    jobs.wait(lambda: "muster resume" in jobs.status(job).get("coordinator", ""))
    suspend = jobs.call("suspend", job)
    assert suspend.returncode == 1 and f"muster resume {job}" in suspend.stderr
    jobs.ok("resume", job)
    assert "its coordinator is process" in jobs.call("resume", job).stderr
    after = [jobs.running(job, f"worker-{i}") for i in range(2)]
    assert [t["pid"] for t in after] == [t["pid"] for t in before]
    jobs.ok("stop", job)
    assert jobs.status(job)["message"] == "stopped by muster stop"
    jobs.wait_nothing_runs()


def test_what_ended_while_nobody_looked_is_known_to_the_next_coordinator(jobs: Jobs) -> None:
    program = "while [ ! -e go ]; do sleep 0.05; done; exit 0"
    job = jobs.detach("--workers", 2, "--lease", 2, "--", "sh", "-c", program)
    pids = [jobs.running(job, f"worker-{i}")["pid"] for i in range(2)]
    jobs.kill_supervisor(job)
    jobs.kill_coordinator(job)
    (jobs.folder / "go").touch()
    jobs.wait(lambda: not any(pathlib.Path(f"/proc/{pid}").exists() for pid in pids))
    jobs.wait_nothing_runs()
    jobs.ok("resume", job)
    jobs.wait_phase(job, "succeeded")


def test_with_both_killed_everything_ends_after_a_lease(jobs: Jobs) -> None:
    job = jobs.detach("--workers", 2, "--lease", 1, "--", "sleep", 1000)
    for i in range(2):
        jobs.running(job, f"worker-{i}")
    jobs.kill_supervisor(job)
    jobs.kill_coordinator(job)
    jobs.wait_nothing_runs()


def test_without_coordinator_everything_ends_after_a_lease(jobs: Jobs) -> None:
    run = jobs.start("run", "--name", "j", "--workers", 2, "--lease", 1, "--", "sleep", 1000)
    for i in range(2):
        jobs.wait(lambda: (jobs.home / "jobs/j/journal").exists())
        jobs.running("j", f"worker-{i}")
    run.kill()
    run.wait()
    jobs.wait_nothing_runs()
