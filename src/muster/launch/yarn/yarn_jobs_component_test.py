"""Jobs on a real YARN: programs that read TF_CONFIG, and what the verbs say of them."""

from __future__ import annotations

import json
import os
import re
import signal
import urllib.error

import pytest

from testbed.hadoop.yarn_jobs import YarnJobs

JOB = """
apiVersion: kubeflow.org/v1
kind: TFJob
metadata:
  name: NAME
spec:
  tfReplicaSpecs:
    PS:
      replicas: 1
      template: &template
        spec:
          containers:
          - name: tensorflow
            image: example/any
            command: [sh, -c, 'echo "config $TF_CONFIG"; sleep 2; [ $MUSTER_TASK != ps-0 ] || sleep 1000']
            resources: {limits: {memory: 128Mi, cpu: 1}}
    Worker:
      replicas: 2
      template: *template
"""


def test_a_tfjob_is_submitted_runs_and_is_removed(jobs: YarnJobs) -> None:
    (jobs.folder / "job.yaml").write_text(JOB.replace("NAME", "submitted"))
    assert jobs.ok("submit", "job.yaml", "--on", "yarn").strip() == "submitted"
    log = jobs.ok("logs", "-f", "submitted")
    found = re.findall(r"^(\S+) +\| config (.*)$", log, re.MULTILINE)
    configs = {task: json.loads(text) for task, text in found}
    assert sorted(configs) == ["ps-0", "worker-0", "worker-1"]
    clusters = [config["cluster"] for config in configs.values()]
    assert clusters[0] == clusters[1] == clusters[2]
    assert [len(clusters[0][t]) for t in ("ps", "worker")] == [1, 2]
    for task, config in configs.items():
        assert f"{config['task']['type']}-{config['task']['index']}" == task
    assert jobs.status("submitted")["phase"] == "succeeded"
    jobs.wait(lambda: jobs.app("submitted")["finalStatus"] == "SUCCEEDED")
    jobs.wait_until_nothing_runs("submitted")
    staging, application = jobs.staging("submitted"), jobs.application("submitted")
    for listed in (jobs.ok("list", "--on", "yarn"), jobs.ok("list")):
        assert re.search(rf"^submitted +succeeded .* {application}$", listed, re.MULTILINE), listed
    for flags in (["list", "--on", "yarn"], ["list"], ["status", "submitted"]):
        described = [json.loads(line) for line in jobs.ok(*flags, "--json").splitlines()]
        assert application in [each.get("application") for each in described], flags
    assert jobs.ok("rm", "submitted") == "submitted\n"
    with pytest.raises(urllib.error.HTTPError):
        jobs.yarn.hdfs.call("GET", staging, "GETFILESTATUS", user="tester")
    assert application in jobs.call("rm", application, "--on", "yarn").stderr


def test_a_command_runs_with_its_files_and_archives(jobs: YarnJobs) -> None:
    (jobs.folder / "own.txt").write_text("a file\n")
    (jobs.folder / "packed").mkdir()
    (jobs.folder / "packed" / "inner.txt").write_text("of an archive\n")
    jobs.pack("packed.tar.gz", "packed")
    result = jobs.call(
        "run", "--on", "yarn", "--memory", "128Mi", "--name", "files", "--file", "own.txt#given.txt",
        "--archive", "packed.tar.gz#env", "--env", "GREETING=hello you",
        "--", "sh", "-c", "cat given.txt env/packed/inner.txt; echo $GREETING; exit 0",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr + jobs.logs()
    assert result.stdout == "a file\nof an archive\nhello you\n"


def test_a_program_finds_the_modules_beside_it(jobs: YarnJobs) -> None:
    (jobs.folder / "words.py").write_text("GREETING = 'hello you'\n")
    (jobs.folder / "main.py").write_text("import words\nprint(words.GREETING)\n")
    result = jobs.call(
        "run", "--on", "yarn", "--memory", "128Mi", "--name", "modules", "--file", "main.py",
        "--file", "words.py", "--", "python3", "main.py",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr + jobs.logs()
    assert result.stdout == "hello you\n"


def test_a_program_that_fails_is_started_again_and_then_fails_the_job(jobs: YarnJobs) -> None:
    result = jobs.call(
        "run", "--on", "yarn", "--memory", "128Mi", "--name", "fails", "--restarts", "1",
        "--", "sh", "-c", "echo attempt $MUSTER_INCARNATION; exit 3",
    )  # fmt: skip
    assert result.returncode == 1, result.stderr
    said = [line for line in result.stderr.splitlines() if "exit code 3" in line]
    assert said[-1].startswith("muster: job fails failed in ") and "worker-0: exit code 3" in said[-1]
    assert len(said) <= 2, "the first failure, and the one that ended the job"
    assert sum("ApplicationMaster" in line for line in result.stderr.splitlines()) <= 1, result.stderr
    assert "attempt 2\n" in result.stdout
    jobs.wait(lambda: jobs.app("fails")["finalStatus"] == "FAILED")
    assert "worker-0" in jobs.app("fails")["diagnostics"]
    jobs.wait_until_nothing_runs("fails")


def test_the_output_of_a_container_that_was_never_seen_is_shown_in_the_end(jobs: YarnJobs) -> None:
    program = f"echo attempt $MUSTER_INCARNATION; while [ ! -e {jobs.folder}/go ]; do sleep 0.1; done; exit 3"
    command = jobs.start(
        "run", "--on", "yarn", "--memory", "128Mi", "--name", "unseen", "--restarts", "1", "--", "sh", "-c", program
    )  # fmt: skip
    assert command.stdout is not None
    assert command.stdout.readline() == "attempt 1\n"
    os.killpg(command.pid, signal.SIGSTOP)  # it sees nothing of the second incarnation
    (jobs.folder / "go").touch()
    jobs.wait_phase("unseen", "failed")
    jobs.wait_until_nothing_runs("unseen")
    os.killpg(command.pid, signal.SIGCONT)
    output, said = command.communicate(timeout=jobs.call_seconds)
    assert command.returncode == 1 and output == "attempt 2\n", said + jobs.logs()


def test_stop_leaves_nothing_running(jobs: YarnJobs) -> None:
    job = jobs.run_on_yarn("--workers", 2, "--name", "stopped", "--", "sh", "-c", "sleep 1000 & wait")
    for name in ("worker-0", "worker-1"):
        jobs.running(job, name)
    jobs.ok("stop", job)
    assert jobs.status(job)["phase"] == "failed"
    jobs.wait_until_nothing_runs(job)


def test_an_application_that_is_killed_leaves_nothing_running(jobs: YarnJobs) -> None:
    job = jobs.run_on_yarn("--workers", 2, "--name", "killed", "--", "sh", "-c", "sleep 1000 & wait")
    for name in ("worker-0", "worker-1"):
        jobs.running(job, name)
    jobs.yarn.kill_app(jobs.application(job))
    jobs.wait_until_nothing_runs(job)
    status = jobs.status(job)
    assert status["phase"] == "failed"
    assert "was ended by YARN (KILLED" in status["message"]


def test_a_job_of_another_user_says_whose_it_is(jobs: YarnJobs) -> None:
    name = jobs.run_on_yarn("--", "sleep", "1000")
    jobs.running(name, "worker-0")
    jobs.environment["HADOOP_USER_NAME"] = "other"
    for verb in ("status", "logs"):
        result = jobs.call(verb, name)
        (line,) = result.stderr.splitlines()
        assert result.returncode == 1, result.stdout
        assert f"the job of {jobs.application(name)} is that of tester, and other may not read its files" in line
        assert "ask as tester (HADOOP_USER_NAME" in line and "RemoteException" not in line, line
    jobs.environment["HADOOP_USER_NAME"] = "tester"
    jobs.ok("stop", name)
    jobs.wait_until_nothing_runs(name)
