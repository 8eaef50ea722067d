"""The verbs that show a job: `muster status --watch`, `muster tensorboard`."""

from __future__ import annotations

import json
import os
import pathlib
import pty
import re
import signal
import subprocess
import sys

import pytest

from testbed.jobs import DEADLINE, Jobs

WAITS = ("--", "sh", "-c", "while [ ! -e go ]; do sleep 0.05; done")


def test_watch_prints_changes_until_the_job_has_ended(jobs: Jobs) -> None:
    job = jobs.detach("--workers", 1, "--ps", 1, *WAITS)
    worker = jobs.running(job, "worker-0")
    jobs.running(job, "ps-0")
    watch = jobs.start("status", job, "--watch")
    seen = [watch.stdout.readline() for _ in range(3)]
    assert seen[0].startswith(f"job {job} active")
    assert {seen[1], seen[2]} == {"ps-0.1 running\n", "worker-0.2 running\n"}
    os.kill(worker["pid"], signal.SIGKILL)
    jobs.running(job, "worker-0", 3)
    (jobs.folder / "go").touch()
    rest, _ = watch.communicate(timeout=DEADLINE)
    assert watch.returncode == 0
    assert "\033" not in rest
    assert f"job {job} succeeded" in rest
    assert "worker-0.3 succeeded" in rest
    jobs.wait_nothing_runs()


def test_status_needs_no_name_where_there_is_one_job(jobs: Jobs) -> None:
    assert "there is no job on this machine; muster run" in jobs.call("status").stderr
    first = jobs.detach("--workers", 1, *WAITS)
    task = jobs.running(first, "worker-0")
    shown = jobs.ok("status")
    assert shown.startswith(f"job {first} active")
    assert re.search(rf"^worker-0 +running +{task['pid']} ", shown, re.MULTILINE), shown
    assert " PID " in shown
    assert json.loads(jobs.ok("status", "--json"))["name"] == first
    second = jobs.detach("--workers", 1, *WAITS)
    jobs.running(second, "worker-0")
    shown = jobs.ok("status")
    assert re.match(rf"JOB .*\n{first} +active .*\n{second} +active ", shown), shown
    assert shown.endswith("\nmuster status JOB shows the tasks of one of them.\n")
    assert "--watch: give the name of one job: " in jobs.call("status", "--watch").stderr
    (jobs.folder / "go").touch()
    for job in (first, second):
        jobs.wait_phase(job, "succeeded")
    assert " PID " not in jobs.ok("status", first)
    jobs.wait_nothing_runs()


def test_watch_on_a_terminal_draws_the_table_anew(jobs: Jobs) -> None:
    job = jobs.detach("--workers", 1, *WAITS)
    jobs.running(job, "worker-0")
    terminal, end = pty.openpty()
    watch = subprocess.Popen(
        [jobs.binary, "status", job, "--watch"], env=jobs.environment, stdout=end
    )
    os.close(end)
    drawn = b""
    while drawn.count(b"\033[H\033[2Jjob ") < 2:  # the second time after a second
        drawn += os.read(terminal, 4096)
    assert b"worker-0  running" in drawn
    (jobs.folder / "go").touch()
    try:
        while chunk := os.read(terminal, 4096):
            drawn += chunk
    except OSError:  # how a terminal says that nobody is left
        pass
    assert watch.wait(timeout=DEADLINE) == 0
    assert b"worker-0  succeeded" in drawn
    os.close(terminal)


def test_watch_ends_when_nobody_runs_the_job(jobs: Jobs) -> None:
    job = jobs.detach("--workers", 1, "--lease", 1, "--", "sleep", 1000)
    jobs.running(job, "worker-0")
    watch = jobs.start("status", job, "--watch")
    assert watch.stdout.readline().startswith(f"job {job} active")
    jobs.kill_supervisor(job)
    jobs.kill_coordinator(job)
    rest, _ = watch.communicate(timeout=DEADLINE)
    assert watch.returncode == 0
    assert f"muster resume {job} continues with it" in rest
    jobs.wait_nothing_runs()


def test_a_job_is_suspended_and_resumed(jobs: Jobs) -> None:
    job = jobs.detach("--workers", 1, "--ps", 1, *WAITS)
    before = jobs.running(job, "worker-0")
    jobs.running(job, "ps-0")
    jobs.ok("suspend", job)
    jobs.wait(lambda: jobs.status(job)["waiting_for"] == "being resumed")
    assert not pathlib.Path(f"/proc/{before['pid']}").exists()
    killed = jobs.kill_coordinator(job)  # who comes after it knows
    jobs.wait(lambda: jobs.coordinator(job) != killed)
    jobs.wait(lambda: jobs.status(job).get("waiting_for") == "being resumed")
    assert jobs.status(job)["phase"] == "suspended"
    jobs.ok("resume", job)
    after = jobs.running(job, "worker-0", before["incarnation"] + 1)
    assert after["restarts"] == 0
    (jobs.folder / "go").touch()
    jobs.wait_phase(job, "succeeded")
    jobs.wait_nothing_runs()
    for verb in ("suspend", "resume"):
        result = jobs.call(verb, job)
        assert result.returncode == 1, result.stderr
        assert f"the job {job} has ended (succeeded)" in result.stderr


def test_a_tfjob_may_begin_suspended(jobs: Jobs) -> None:
    (jobs.folder / "job.yaml").write_text("""
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: j}
spec:
  runPolicy: {suspend: true}
  tfReplicaSpecs:
    Worker:
      template: {spec: {containers: [{name: tensorflow, command: ["true"]}]}}
""")
    job = jobs.detach("job.yaml")
    jobs.wait(lambda: jobs.status(job)["phase"] == "suspended")
    jobs.ok("resume", job)
    jobs.wait_phase(job, "succeeded")


def fake_python(jobs: Jobs, has_tensorboard: bool) -> pathlib.Path:
    python = jobs.folder / "python-of-job"
    python.write_text(
        "#!/bin/sh\n"
        f'case "$1" in -c) exit {0 if has_tensorboard else 3};; -m) echo "started: $*";; esac\n'
    )
    python.chmod(0o755)
    return python


def test_tensorboard_starts_with_the_jobs_python_on_its_model_folder(jobs: Jobs) -> None:
    python = fake_python(jobs, has_tensorboard=True)
    jobs.ok("run", "--name", "j", "--model-dir", "m", "--", f"./{python.name}", "train.py")
    started = jobs.ok("tensorboard", "j", "--", "--port", 7007)
    model = jobs.folder / "m"
    assert started == f"started: -m tensorboard.main --logdir {model} --port 7007\n"


def test_the_model_folder_of_a_templates_tf_config_is_known(jobs: Jobs) -> None:
    (jobs.folder / "job.yaml").write_text("""
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: j}
spec:
  tfReplicaSpecs:
    Worker:
      replicas: 2
      template:
        spec:
          containers:
          - name: tensorflow
            command: [sh, -c, "echo $TF_CONFIG"]
            env: [{name: TF_CONFIG, value: '{"model_dir": "/models/a"}'}]
""")
    assert '"model_dir":"/models/a"' in jobs.ok("run", "job.yaml")
    assert jobs.status("j")["model_dir"] == "/models/a"


def test_a_missing_tensorboard_is_said_with_what_to_install(jobs: Jobs) -> None:
    python = fake_python(jobs, has_tensorboard=False)
    jobs.ok("run", "--name", "j", "--model-dir", "m", "--", python, "train.py")
    result = jobs.call("tensorboard", "j")
    assert result.returncode == 1
    assert f"{python} -m pip install tensorboard" in result.stderr
    result = jobs.call("tensorboard", "j", "--python", "no-such-python")
    assert result.returncode == 1 and "no-such-python" in result.stderr


def test_a_job_without_a_model_folder_has_nothing_to_show(jobs: Jobs) -> None:
    jobs.ok("run", "--name", "j", "--", "true")
    result = jobs.call("tensorboard", "j")
    assert result.returncode == 1 and "--model-dir" in result.stderr


def test_the_real_tensorboard_takes_what_it_is_given(jobs: Jobs) -> None:
    jobs.ok("run", "--name", "j", "--", "true")
    (jobs.folder / "m").mkdir()
    shown = jobs.ok(
        "tensorboard", "j", "--model-dir", "m", "--python", sys.executable, "--", "--inspect"
    )
    assert "No event files found within logdir m" in shown
