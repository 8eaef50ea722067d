"""`muster run` on this machine: real processes."""

from __future__ import annotations

import json
import pathlib
import re
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


def test_tasks_know_how_long_the_rendezvous_waits(jobs: Jobs) -> None:
    show = ("--", "sh", "-c", "echo [$MUSTER_RENDEZVOUS_TIMEOUT]")
    output = jobs.ok("run", "--workers", 2, "--rendezvous-timeout", 7, *show)
    assert output.count(" | [7]\n") == 2
    assert jobs.ok("run", *show) == "[]\n"


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
    assert re.search("^worker-1 failed .* after the job's start$", result.stderr, re.MULTILINE)
    assert "  | the cause" in result.stderr
    assert re.search("^muster: job j failed in .*: worker-1: exit code 3 ", result.stderr, re.MULTILINE)
    status = jobs.status("j")
    assert status["phase"] == "failed"
    assert status["failures"][0]["task"] == "worker-1"
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


def test_ps_and_workers_are_ended_after_the_chiefs_success(jobs: Jobs) -> None:
    program = 'case "$MUSTER_TASK" in ps-*|worker-*) sleep 1000;; esac'
    jobs.ok(
        "run", "--name", "j", "--chief", "--workers", 1, "--ps", 1, "--finish-timeout", "1s", "--",
        "sh", "-c", program,
    )  # fmt: skip
    status = jobs.status("j")
    assert status["phase"] == "succeeded"
    stopped = {t["task"]: t.get("stop_reason", "") for t in status["tasks"]}
    assert stopped["worker-0"] == "still ran 1s after the job had succeeded"
    assert stopped["ps-0"] == "the job has succeeded"
    jobs.wait_nothing_runs()


# The evaluator has no end, and its output shows that it works.
WORKING_EVALUATOR = 'test "$MUSTER_TASK" = chief-0 || while true; do echo works; sleep 0.1; done'


def test_a_job_from_flags_whose_evaluator_is_cut_off_has_failed(jobs: Jobs) -> None:
    run = jobs.start(
        "run", "--name", "j", "--chief", "--evaluator", "--finish-timeout", "1s", "--",
        "sh", "-c", WORKING_EVALUATOR,
    )  # fmt: skip
    said = ""
    while "evaluator-0 continues and is waited for" not in said:
        said = run.stderr.readline()
        assert said, run.wait(timeout=DEADLINE)
    waits = "evaluator-0 to finish its evaluations"
    jobs.wait(lambda: jobs.status("j").get("waiting_for") == waits, "for the status to say so")
    run.send_signal(signal.SIGINT)
    _, errors = run.communicate(timeout=DEADLINE)
    assert run.returncode == 1, errors
    assert "although evaluator-0 was cut off" in errors
    assert "although evaluator-0 was cut off" in jobs.ok("status", "j")
    jobs.wait_nothing_runs()


# The second worker fails a while after the first has succeeded, each time with other last words.
FAILING_WORKER = """
if [ "$MUSTER_TASK" = worker-1 ]; then
  while [ ! -e done ]; do sleep 0.05; done; sleep 3; echo $MUSTER_INCARNATION; exit 3
fi
touch done
"""


def test_without_a_chief_a_job_from_flags_needs_all_its_workers(jobs: Jobs) -> None:
    result = jobs.call(
        "run", "--name", "j", "--workers", 2, "--restarts", 1, "--", "sh", "-c", FAILING_WORKER
    )
    assert result.returncode == 1, result.stderr
    assert "job j failed" in result.stderr and "worker-1: exit code 3" in result.stderr
    jobs.wait_nothing_runs()


def test_a_tfjobs_success_names_the_worker_that_failed(jobs: Jobs) -> None:
    (jobs.folder / "failing.sh").write_text(FAILING_WORKER)
    (jobs.folder / "job.yaml").write_text("""
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: j}
spec:
  tfReplicaSpecs:
    Worker:
      replicas: 2
      template: {spec: {containers: [{name: tensorflow, command: [sh, failing.sh]}]}}
""")
    result = jobs.call("run", "job.yaml")
    assert result.returncode == 0, result.stderr
    assert ", although worker-1 failed (exit code 3)" in result.stderr
    assert ", although worker-1 failed (exit code 3)" in jobs.ok("status", "j")
    jobs.wait_nothing_runs()


@pytest.mark.parametrize("ps", [0, 1])
def test_what_fails_as_before_is_not_started_a_third_time(jobs: Jobs, ps: int) -> None:
    program = 'case $MUSTER_TASK in ps-*) sleep 1000;; *) echo >&2 "NameError: x"; exit 1;; esac'
    result = jobs.call(
        "run", "--name", "j", "--workers", 1, "--ps", ps, "--grace", 1, "--", "sh", "-c", program
    )
    assert result.returncode == 1
    assert "exit code 1, as the time before, with 'NameError: x'" in result.stderr
    log = (jobs.home / "jobs/j/logs/worker-0.log").read_text()
    assert log == "NameError: x\n" * 2
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
    assert re.search(r"^mnist +succeeded ", jobs.ok("list"), re.MULTILINE)


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
    result = jobs.call("run", "--name", "k", "--workers", 2, "--", "./program")
    assert result.returncode == 1
    assert "exit code 127, as the time before: it is not started a third time" in result.stderr
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
        if path.is_file():
            assert path.stat().st_mode & 0o077 == 0, path
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
        (["run", "--restart-policy", "Sometimes", "--", "true"], 2, "Sometimes is unknown"),
        (["run", "missing.yaml"], 1, "missing.yaml"),
        (["run", "--workers", "2", "bad.yaml"], 2, "leave these flags out"),
        (["run", "bad.yaml", "--", "true"], 1, "bad.yaml"),
        (["run", "bad.yaml", "--path", "app=/x"], 1, "bad.yaml"),
        (["run", "bad.yaml", "--progress-timeout", "soon"], 2, "soon"),
        (["run", "bad.yaml"], 1, "bad.yaml"),
        (["status", "nobody"], 1, "there is no job nobody"),
        (["status", "a/b"], 2, "is not a valid job name"),
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
    assert re.search(r"journal: line 2 \(from byte \d+\) does not fit its checksum", result.stderr)


def test_a_job_of_that_name_that_runs_is_in_the_way(jobs: Jobs) -> None:
    jobs.detach("--name", "j", "--", "sleep", 1000)
    result = jobs.call("run", "--name", "j", "--", "true")
    assert result.returncode == 1
    assert "a job j runs already" in result.stderr
    jobs.ok("stop", "j")
    jobs.ok("run", "--name", "j", "--", "true")
