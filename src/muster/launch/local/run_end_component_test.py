"""How a job of `muster run` ends when its terminal, reader or coordinator goes, and what is left."""

from __future__ import annotations

import os
import pathlib
import re
import signal
import subprocess
import time

import pytest

from testbed.hangups import hangups_are_heard
from testbed.jobs import DEADLINE, Jobs

__all__ = ["hangups_are_heard"]
WAITS = ("--", "sh", "-c", "echo ready; while [ ! -e go ]; do sleep 0.05; done; echo done")
pytestmark = pytest.mark.usefixtures("hangups_are_heard")


def running_in_foreground(jobs: Jobs, *flags: object) -> subprocess.Popen[str]:
    run = jobs.start("run", "--name", "j", "--lease", 2, *flags, *WAITS)
    jobs.wait(lambda: (jobs.home / "jobs/j/journal").exists(), "for the job")
    jobs.running("j", "worker-0")
    return run


@pytest.mark.parametrize(
    "sent, said", [(signal.SIGTERM, "SIGTERM"), (signal.SIGHUP, "SIGHUP (its terminal was closed)")]
)
def test_a_signal_ends_the_job_and_is_named(jobs: Jobs, sent: int, said: str) -> None:
    run = running_in_foreground(jobs)
    for _ in range(2):  # a terminal's end may come twice, and timeout(1) signals twice
        run.send_signal(sent)
    _, errors = run.communicate(timeout=DEADLINE)
    assert run.returncode == 143
    assert "job j failed in" in errors and f": stopped by {said}\n" in errors
    assert jobs.status("j")["phase"] == "failed"
    jobs.wait_nothing_runs()


def test_nohup_is_heeded(jobs: Jobs) -> None:
    run = subprocess.Popen(
        ["nohup", jobs.binary, "run", "--name", "j", *WAITS], env=jobs.environment,
        cwd=jobs.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    jobs.wait(lambda: (jobs.home / "jobs/j/journal").exists(), "for the job")
    jobs.running("j", "worker-0")
    run.send_signal(signal.SIGHUP)
    (jobs.folder / "go").touch()
    assert run.wait(timeout=DEADLINE) == 0, run.communicate()


def test_ctrl_z_pauses_the_job_and_loses_nothing(jobs: Jobs) -> None:
    run = running_in_foreground(jobs, "--workers", 2)
    pids = [jobs.running("j", f"worker-{i}")["pid"] for i in range(2)]

    def states() -> set[str]:
        stats = [pathlib.Path(f"/proc/{pid}/stat").read_text() for pid in (run.pid, *pids)]
        return {stat.rpartition(")")[2].split()[0] for stat in stats}

    run.send_signal(signal.SIGTSTP)
    jobs.wait(lambda: states() == {"T"}, "for all to stand still")
    time.sleep(5)  # more than two leases
    assert states() == {"T"}
    run.send_signal(signal.SIGCONT)
    (jobs.folder / "go").touch()
    _, errors = run.communicate(timeout=DEADLINE)
    assert run.returncode == 0, errors
    assert "failed" not in errors
    assert [task["restarts"] for task in jobs.status("j")["tasks"]] == [0, 0]


def test_a_reader_that_leaves_ends_no_job(jobs: Jobs) -> None:
    run = running_in_foreground(jobs)
    assert run.stdout.readline() == "ready\n"
    run.stdout.close()
    (jobs.folder / "go").touch()
    errors = run.stderr.read()
    assert run.wait(timeout=DEADLINE) == 0, errors
    assert "nobody reads the output any more; the job continues: muster logs -f j" in errors
    assert jobs.ok("logs", "j") == "ready\ndone\n"
    jobs.wait_nothing_runs()


def test_a_job_whose_coordinator_was_killed_is_lost_and_can_be_closed(jobs: Jobs) -> None:
    run = running_in_foreground(jobs)
    run.kill()
    run.communicate(timeout=DEADLINE)
    jobs.wait(lambda: jobs.status("j").get("lost"), "for the job to be lost")
    jobs.wait_nothing_runs()
    shown = jobs.ok("status", "j")
    assert "job j ended: coordinator lost; muster resume j continues with it" in shown
    assert re.search(r"worker-0 +lost", shown)
    assert re.search(r"^j +lost ", jobs.ok("list"), re.MULTILINE)
    jobs.ok("stop", "j")
    status = jobs.status("j")
    assert status["phase"] == "failed" and "lost" not in status
    assert status["message"] == "stopped by muster stop after its coordinator was lost"
    assert jobs.ok("rm", "j") == "j\n"
    assert not (jobs.home / "jobs/j").exists()


def test_a_forsaken_job_whose_tasks_still_run_is_stopped(jobs: Jobs) -> None:
    job = jobs.detach("--workers", 2, "--lease", 30, "--", "sleep", 1000)
    for i in range(2):
        jobs.running(job, f"worker-{i}")
    jobs.forsake(job)
    jobs.ok("stop", job)
    assert jobs.status(job)["phase"] == "failed"
    jobs.wait_nothing_runs()


def test_jobs_are_listed_with_their_ages_and_removed(jobs: Jobs) -> None:
    for name in ("a", "b", "b"):
        jobs.ok("run", "--name", name, "--workers", 2, "--", "true")
    running = jobs.detach("--name", "c", "--", "sleep", 1000)
    jobs.running(running, "worker-0")
    lines = jobs.ok("list").splitlines()
    assert re.fullmatch(r"JOB +STATE +TASKS +AGE +TOOK", lines[0])
    assert re.fullmatch(r"a +succeeded +2 +\S.*", lines[1])
    assert [line.split()[0] for line in lines[1:]] == ["a", "b", "c"]
    result = jobs.call("rm", "c")
    assert result.returncode == 1 and "muster stop c" in result.stderr
    assert jobs.ok("rm", "--older-than", "1d") == ""
    assert jobs.ok("rm", "b").split() == ["b", "b.previous"]
    assert jobs.ok("rm", "--older-than", "0s").split() == ["a"]
    assert os.listdir(jobs.home / "jobs") == ["c"]
    jobs.ok("stop", "c")
    for wrong in (("rm",), ("rm", "--older-than", "old"), ("rm", "c", "--older-than", "1d")):
        assert jobs.call(*wrong).returncode == 2


def test_removing_a_job_keeps_what_its_tasks_wrote_unless_told_to(jobs: Jobs) -> None:
    (jobs.folder / "data.txt").write_text("staged")
    for flags, stays in (((), True), (("--with-work",), False)):
        jobs.ok("run", "--name", "j", "--file", "data.txt", "--", "sh", "-c", "echo mine > own.txt")
        work = jobs.home / "jobs/j/work"
        result = jobs.call("rm", "j", *flags)
        assert result.returncode == 0, result.stderr
        assert (f"{work} holds files that were not staged and stays" in result.stderr) is stays
        assert (work / "worker-0/own.txt").exists() is stays
        assert not (work / "worker-0/data.txt").exists()
        assert not (jobs.home / "jobs/j/journal").exists()
        if stays:
            jobs.ok("rm", "j", "--with-work")
        assert not work.exists()


def test_a_time_to_live_of_nothing_leaves_nothing(jobs: Jobs) -> None:
    (jobs.folder / "job.yaml").write_text("""
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: j}
spec:
  runPolicy: {ttlSecondsAfterFinished: 0}
  tfReplicaSpecs:
    Worker:
      template: {spec: {containers: [{name: tensorflow, command: ["true"]}]}}
""")
    for detach in ((), ("--detach",)):
        jobs.ok("run", "job.yaml", *detach)
        jobs.wait(lambda: not (jobs.home / "jobs/j").exists(), "for it to be removed")


def test_logs_begin_with_what_was_rotated_away(jobs: Jobs) -> None:
    jobs.ok("run", "--name", "j", "--", "echo", "last")
    log = jobs.home / "jobs/j/logs/worker-0.log"
    for age, text in ((1, "third\n"), (2, "second\n"), (3, "first\n")):
        log.with_name(f"worker-0.log.{age}").write_text(text)
    assert jobs.ok("logs", "j") == "first\nsecond\nthird\nlast\n"
