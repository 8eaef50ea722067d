"""`muster run` on this machine: real processes, and what is left of them when one is killed."""

from __future__ import annotations

import json
import os
import pathlib
import signal
from typing import Any

import pytest

from testbed.jobs import DEADLINE, Jobs


def tf_configs(output: str) -> dict[str, dict[str, Any]]:
    configs = {}
    for line in output.splitlines():
        name, _, text = line.partition(" | ")
        if text.startswith("{"):
            configs[name.strip()] = json.loads(text)
    return configs


def test_each_task_gets_its_place_in_the_cluster(jobs: Jobs) -> None:
    output = jobs.ok(
        "run", "--chief", "--workers", 2, "--ps", 1, "--evaluator", "--",
        "sh", "-c", "echo $TF_CONFIG",
    )  # fmt: skip
    configs = tf_configs(output)
    assert set(configs) == {"chief-0", "worker-0", "worker-1", "ps-0", "evaluator-0"}
    cluster = configs["chief-0"]["cluster"]
    assert {k: len(v) for k, v in cluster.items()} == {"chief": 1, "worker": 2, "ps": 1}
    addresses = [a for hosts in cluster.values() for a in hosts]
    assert len(set(addresses)) == 4
    assert configs["worker-1"]["task"] == {"type": "worker", "index": 1}
    assert configs["ps-0"]["cluster"] == cluster
    assert configs["evaluator-0"]["cluster"].keys() == {*cluster, "evaluator"}
    jobs.wait_nothing_runs()


def test_a_task_alone_gets_no_tf_config(jobs: Jobs) -> None:
    jobs.environment["TF_CONFIG"] = "{}"
    assert jobs.ok("run", "--", "sh", "-c", "echo [$TF_CONFIG]") == "[]\n"


def test_programs_with_flags_get_hosts(jobs: Jobs) -> None:
    output = jobs.ok(
        "run", "--workers", 1, "--ps", 1, "--", "echo", "{ps_hosts}", "{worker_hosts:;}",
        "{type}", "{index}", "{port}", "{other}",
    )  # fmt: skip
    line = next(l for l in output.splitlines() if l.startswith("worker-0"))
    ps, worker, kind, index, port, other = line.partition(" | ")[2].split()
    assert ps.startswith("127.0.0.1:") and worker == f"127.0.0.1:{port}"
    assert (kind, index, other) == ("worker", "0", "{other}")


def test_a_failed_job_says_who_failed_first_how_and_with_which_words(jobs: Jobs) -> None:
    program = (
        'if [ "$MUSTER_TASK" = worker-1 ]; then echo the cause; exit 3; fi;'
        " while [ ! -e stop ]; do sleep 0.05; done; exit 1"
    )
    result = jobs.call(
        "run", "--name", "j", "--workers", 2, "--restart-policy", "Never", "--grace", 1, "--",
        "sh", "-c", program,
    )  # fmt: skip
    assert result.returncode == 1
    assert "first worker-1: exit code 3" in result.stderr
    assert "  | the cause" in result.stderr
    assert "muster: job j failed" in result.stderr
    status = jobs.status("j")
    assert status["phase"] == "failed"
    assert status["failures"][0]["task"] == "worker-1"
    jobs.wait_nothing_runs()


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
    assert jobs.processes() == []  # it has waited for coordinator and supervisor too


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
    stop = jobs.call("stop", job)
    assert stop.returncode == 1 and f"muster resume {job}" in stop.stderr
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


def test_ctrl_c_leaves_nothing(jobs: Jobs) -> None:
    # One ignores SIGTERM, as MultiWorkerMirrored programs do; one has a child of its own session.
    program = (
        'if [ "$MUSTER_TASK" = worker-0 ]; then trap "" TERM; fi;'
        " setsid sleep 1000 & echo ready; while true; do sleep 0.1; done"
    )
    run = jobs.start(
        "run", "--name", "j", "--workers", 2, "--grace", 1, "--", "sh", "-c", program
    )
    jobs.wait(lambda: (jobs.home / "jobs/j/journal").exists())
    for i in range(2):
        jobs.running("j", f"worker-{i}")
    run.send_signal(signal.SIGINT)
    _, errors = run.communicate(timeout=DEADLINE)
    assert run.returncode == 1, errors
    assert "stopped by Ctrl-C" in errors
    jobs.wait_nothing_runs()


def test_ps_and_evaluator_are_ended_after_success(jobs: Jobs) -> None:
    program = 'case "$MUSTER_TASK" in ps-*|evaluator-*) sleep 1000;; esac'
    jobs.ok(
        "run", "--name", "j", "--chief", "--ps", 1, "--evaluator", "--finish-timeout", "1s", "--",
        "sh", "-c", program,
    )  # fmt: skip
    status = jobs.status("j")
    assert status["phase"] == "succeeded"
    stopped = {t["task"]: t.get("stop_reason", "") for t in status["tasks"]}
    assert "still ran 1s after the job had succeeded" in stopped["evaluator-0"]
    assert stopped["ps-0"] == "the job has succeeded"
    jobs.wait_nothing_runs()


def test_workers_that_serve_for_ever_are_not_waited_for(jobs: Jobs) -> None:
    program = 'test "$MUSTER_TASK" = chief-0 || sleep 1000'
    jobs.ok(
        "run", "--name", "j", "--chief", "--workers", 1, "--ps", 1, "--expect", "psv2", "--",
        "sh", "-c", program,
    )  # fmt: skip
    stopped = {t["task"]: t.get("stop_reason", "") for t in jobs.status("j")["tasks"]}
    assert "still ran 0s after the job had succeeded" in stopped["worker-0"]
    jobs.wait_nothing_runs()


def test_a_tfjob_runs_here(jobs: Jobs) -> None:
    (jobs.folder / "job.yaml").write_text("""
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: mnist}
spec:
  tfReplicaSpecs:
    Worker:
      replicas: 2
      template:
        spec:
          containers:
          - name: tensorflow
            image: example/mnist:1
            command: [sh, -c, "echo $GREETING from $MUSTER_TASK"]
            env: [{name: GREETING, value: hello}]
""")
    result = jobs.call("run", "job.yaml")
    assert result.returncode == 0, result.stderr
    assert "worker-1 | hello from worker-1" in result.stdout
    assert "image" in result.stderr
    assert jobs.ok("logs", "mnist", "worker-0") == "hello from worker-0\n"
    assert "job mnist succeeded" in jobs.ok("list")


def test_a_variable_of_a_kubernetes_object_can_be_given(jobs: Jobs) -> None:
    (jobs.folder / "job.yaml").write_text("""
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: j}
spec:
  tfReplicaSpecs:
    Worker:
      template:
        spec:
          containers:
          - name: tensorflow
            command: [sh, -c, "echo $KEY $(KEY)"]
            env: [{name: KEY, valueFrom: {secretKeyRef: {name: s, key: k}}}]
""")
    result = jobs.call("run", "job.yaml")
    assert result.returncode == 1 and "--env KEY=VALUE" in result.stderr
    assert jobs.ok("run", "job.yaml", "--env", "KEY=a=b") == "a=b a=b\n"
    assert jobs.ok("run", "--env", "X=1", "--env", "X=2", "--", "sh", "-c", "echo $X") == "2\n"
    for bad in ("KEY", "=x"):
        result = jobs.call("run", "--env", bad, "--", "true")
        assert result.returncode == 2 and "NAME=VALUE" in result.stderr


def test_a_program_that_cannot_start_is_named(jobs: Jobs) -> None:
    program = jobs.folder / "program"
    program.write_text("#!/no/such/interpreter\n")
    program.chmod(0o755)
    result = jobs.call("run", "--name", "j", "--restarts", 0, "--", "./program")
    assert result.returncode == 1
    assert "cannot start" in result.stderr and "/no/such/interpreter" in result.stderr
    jobs.wait_nothing_runs()


def test_the_token_is_in_no_argument_environment_log_or_journal(jobs: Jobs) -> None:
    job = jobs.detach("--workers", 1, "--", "sh", "-c", "env; sleep 1000")
    task = jobs.running(job, "worker-0")
    folder = jobs.home / "jobs" / job
    token = (folder / "token").read_text().strip().encode()
    assert (folder / "token").stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700
    for pid in (task["pid"], task["agent_pid"]):
        for name in ("cmdline", "environ"):
            assert token not in pathlib.Path(f"/proc/{pid}/{name}").read_bytes()
    for path in folder.rglob("*"):
        if path.is_file() and path.name != "token":
            assert token not in path.read_bytes(), path
    jobs.ok("stop", job)


def test_spec_is_what_a_client_of_the_cluster_needs(jobs: Jobs) -> None:
    job = jobs.detach("--workers", 1, "--ps", 2, "--", "sleep", 1000)
    addresses = [jobs.running(job, name)["address"] for name in ("ps-0", "ps-1")]
    assert json.loads(jobs.ok("spec", job))["cluster"]["ps"] == addresses
    jobs.ok("stop", job)


@pytest.mark.parametrize(
    "arguments, code, message",
    [
        (["run"], 2, "there is nothing to run"),
        (["run", "--workers", "2", "--", "no-such-program"], 2, "no program 'no-such-program'"),
        (["run", "--", "./not-executable"], 2, "no program './not-executable'"),
        (["run", "--name", "a/b", "--", "true"], 2, "a/b"),
        (["run", "--restart-policy", "Sometimes", "--", "true"], 2, "Sometimes is none"),
        (["run", "missing.yaml"], 1, "missing.yaml"),
        (["run", "--workers", "2", "bad.yaml"], 2, "leave these flags out"),
        (["run", "bad.yaml", "--", "true"], 2, "both a job file"),
        (["run", "bad.yaml", "--progress-timeout", "soon"], 2, "soon"),
        (["run", "bad.yaml"], 1, "bad.yaml"),
        (["status", "nobody"], 1, "there is no job nobody"),
        (["status", "a/b"], 2, "can be no job's name"),
        (["logs", "nobody"], 1, "there is no job nobody"),
        (["stop"], 2, "job"),
    ],
)
def test_bad_use_has_its_message(jobs: Jobs, arguments: list[str], code: int, message: str) -> None:
    (jobs.folder / "not-executable").write_text("#!/bin/sh\n")
    (jobs.folder / "bad.yaml").write_text("kind: TFJob\n")
    result = jobs.call(*arguments)
    assert message in result.stderr, result.stderr
    assert result.returncode == code
    jobs.wait_nothing_runs()


def test_a_damaged_journal_is_named_by_its_line(jobs: Jobs) -> None:
    jobs.ok("run", "--name", "j", "--", "true")
    journal = jobs.home / "jobs/j/journal"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([lines[0], lines[1].replace(b"a", b"b", 1), *lines[2:]]))
    result = jobs.call("status", "j")
    assert result.returncode == 1
    assert "journal: line 2 does not fit its checksum" in result.stderr


def test_a_job_of_that_name_that_runs_is_in_the_way(jobs: Jobs) -> None:
    jobs.detach("--name", "j", "--", "sleep", 1000)
    result = jobs.call("run", "--name", "j", "--", "true")
    assert result.returncode == 1
    assert "a job j runs already" in result.stderr
    jobs.ok("stop", "j")
    jobs.ok("run", "--name", "j", "--", "true")
