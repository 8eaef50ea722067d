"""What `muster run` says of bad input, with which exit code, and that nothing is left running."""

from __future__ import annotations

import os
import pathlib
import signal
import socket
from collections.abc import Iterator

import pytest

from testbed import small_disk
from testbed.jobs import Jobs

MEMORY_LIMIT = 64 << 20

JOB = """
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
            command: [sh, -c, "echo ran"]
"""
LAUGHS = "metadata:\n  name: j\n  labels:\n    a0: &a0 [x, x]\n" + "".join(
    f"    a{i}: &a{i} [*a{i - 1}, *a{i - 1}, *a{i - 1}, *a{i - 1}]\n" for i in range(1, 20)
)


def changed(old: str, new: str) -> str:
    assert old in JOB
    return JOB.replace(old, new)


@pytest.mark.parametrize(
    "manifest, words",
    [
        (JOB + "  bad: [1, 2\n", ["job.yaml:"]),
        (changed("metadata: {name: j}\n", LAUGHS), ["job.yaml", "aliases"]),
        (changed("{name: j}", "[" * 100_000 + "]" * 100_000), ["job.yaml", "deep"]),
        ("# " + "x" * (100 << 20) + JOB, ["job.yaml", "1048576"]),
        (b"\xff\xfe" + JOB.encode(), ["job.yaml", "UTF-8"]),
        ("", ["job.yaml"]),
        (changed("tfReplicaSpecs", "tfReplicaSpec"), ["job.yaml:6", "'tfReplicaSpecs'"]),
        (changed("Worker:", "Workers:"), ["job.yaml:8", "'Worker'"]),
        (changed("replicas: 2", "replica: 2"), ["job.yaml:8", "'replicas'"]),
        (changed("replicas: 2", "replicas: many"), ["job.yaml:8", "many"]),
        (changed("{name: j}", "{name: a/b}"), ["job.yaml", "a/b"]),
        (changed("[sh,", "[no-such-program,"), ["Worker", "'no-such-program'", "PATH"]),
        (changed("[sh,", "[./not-executable,"), ["Worker", "'./not-executable'", "may be run"]),
        (
            changed("command:", "workingDir: /no/such/folder\n            command:"),
            ["Worker", "/no/such/folder", "is not a folder"],
        ),
        (changed("command:", "args: [1]\n            command:"), ["args", "needs quotes"]),
    ],
    ids=[
        "malformed", "aliases", "depth", "100 MB", "not UTF-8", "empty", "unknown field",
        "unknown type of task", "field of a replica", "wrong type", "slash", "missing program",
        "not executable", "missing folder", "type of an argument",
    ],
)  # fmt: skip
def test_a_bad_job_file_starts_nothing(
    jobs: Jobs, manifest: str | bytes, words: list[str]
) -> None:
    (jobs.folder / "not-executable").write_text("#!/bin/sh\n")
    path = jobs.folder / "job.yaml"
    path.write_bytes(manifest.encode() if isinstance(manifest, str) else manifest)
    code, errors, memory = jobs.measured("run", "job.yaml")
    assert code == 1, errors
    assert errors.startswith("muster: ") and len(errors) < 2000, errors
    for word in words:
        assert word in errors, f"{word!r} is not in {errors!r}"
    assert memory < MEMORY_LIMIT, f"{memory >> 20} MB"
    assert not (jobs.home / "jobs/j").exists()
    jobs.wait_nothing_runs()


@pytest.mark.parametrize("verb", ["status", "logs", "stop", "spec", "resume"])
def test_a_job_that_is_not_there(jobs: Jobs, verb: str) -> None:
    jobs.ok("run", "--name", "known", "--", "true")
    result = jobs.call(verb, "knwon")
    assert result.returncode == 1
    assert "there is no job knwon" in result.stderr and "did you mean 'known'" in result.stderr
    for name in ("a/b", "..", ""):
        result = jobs.call(verb, name)
        assert result.returncode == 2, name
        assert f"'{name}' is not a valid job name" in result.stderr
    assert jobs.call("run", "--name", "a/b", "job.yaml").returncode == 2


def listen_at(address: str) -> socket.socket:
    """As a program does that starts while the task is down."""
    host, _, port = address.rpartition(":")
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((host, int(port)))
    listener.listen()
    return listener


def test_the_port_of_a_task_that_was_taken_meanwhile_is_named_with_its_holder(jobs: Jobs) -> None:
    job = jobs.detach("--workers", 1, "--ps", 1, "--restarts", 1, "--", "sleep", 1000)
    task = jobs.running(job, "worker-0")
    jobs.running(job, "ps-0")
    with listen_at(task["address"]):
        os.kill(task["pid"], signal.SIGKILL)
        jobs.wait_phase(job, "failed")
    failure = jobs.status(job)["failures"][-1]["text"]
    assert "cannot start" in failure and task["address"].rpartition(":")[2] in failure
    assert f"process {os.getpid()}" in failure
    jobs.wait_nothing_runs()


def test_a_coordinator_whose_port_was_taken_goes_on_at_another(jobs: Jobs) -> None:
    job = jobs.detach("--workers", 1, "--lease", 1, "--", "sleep", 1000)
    first = jobs.running(job, "worker-0")
    agent = pathlib.Path(f"/proc/{first['agent_pid']}/cmdline").read_bytes().decode().split("\0")
    url = agent[agent.index("--coordinator") + 1]
    jobs.forsake(job)
    with listen_at(url.removeprefix("http://")):
        jobs.ok("resume", job)
        jobs.running(job, "worker-0", first["incarnation"] + 1)
        jobs.ok("stop", job)
    jobs.wait_nothing_runs()


@pytest.mark.parametrize("damage", ["others may read it", "it is gone", "it is no token"])
def test_a_token_that_cannot_be_used_is_named(jobs: Jobs, damage: str) -> None:
    job = jobs.detach("--lease", 1, "--", "sleep", 1000)
    jobs.running(job, "worker-0")
    token = jobs.home / "jobs" / job / "token"
    secret = token.read_text()
    if damage == "others may read it":
        token.chmod(0o644)
    elif damage == "it is gone":
        token.unlink()
    else:
        token.write_text("x" * 64)
    result = jobs.call("stop", job)
    assert result.returncode == 1
    assert f"{job}/token" in result.stderr and secret.strip() not in result.stderr
    if damage == "others may read it":
        assert "chmod 600" in result.stderr
    assert str(token) in jobs.status(job)["coordinator"]
    jobs.forsake(job)
    result = jobs.call("resume", job)
    assert result.returncode == 1 and str(token) in result.stderr
    jobs.wait_nothing_runs()  # after the lease


@pytest.fixture
def disk(jobs: Jobs) -> Iterator[pathlib.Path]:
    """The home of the jobs on a file system of 4 MiB."""
    with small_disk.mounted(jobs.home, "4m") as home:
        yield home
        for pid in jobs.processes():
            os.kill(pid, signal.SIGKILL)
        jobs.wait_nothing_runs()


def fill(disk: pathlib.Path) -> pathlib.Path:
    path = disk / "other"
    with path.open("wb", buffering=0) as file:
        for size in (1 << 16, 1):
            try:
                while file.write(b"x" * size):
                    pass
            except OSError:
                pass
    return path


def test_output_that_would_fill_the_disk_leaves_room_for_the_journal(
    jobs: Jobs, disk: pathlib.Path
) -> None:
    program = "head -c 20000000 /dev/zero | tr '\\0' '\\n'; echo the end"
    jobs.ok("run", "--detach", "--name", "j", "--workers", 2, "--", "sh", "-c", program)
    jobs.wait_phase("j", "succeeded")
    jobs.wait_nothing_runs()
    agent_log = (disk / "jobs/j/agents/worker-0.log").read_text()
    assert "bytes of output are missing" in agent_log and "No space left" in agent_log
    jobs.ok("run", "--name", "k", "--", "true")  # there is room for another job's journal


def test_a_full_disk_starts_no_job(jobs: Jobs, disk: pathlib.Path) -> None:
    fill(disk)
    result = jobs.call("run", "--name", "j", "--", "true")
    assert result.returncode == 1
    assert "No space left" in result.stderr and str(disk) in result.stderr
    assert "set MUSTER_HOME to another folder" in result.stderr
    assert not (disk / "jobs/j").exists()
    jobs.wait_nothing_runs()


def test_a_job_stops_on_a_full_disk_and_says_so_once_there_is_room(
    jobs: Jobs, disk: pathlib.Path
) -> None:
    # So many that what is to be written down about them is longer than a page of the disk.
    job = jobs.detach("--workers", 16, "--", "sleep", 1000)
    pids = [jobs.running(job, f"worker-{i}")["pid"] for i in range(16)]
    other = fill(disk)
    jobs.ok("stop", job, "--no-wait")
    jobs.wait(lambda: not any(pathlib.Path(f"/proc/{pid}").exists() for pid in pids))
    other.unlink()
    jobs.wait_phase(job, "failed")
    assert jobs.status(job)["message"] == "stopped by muster stop"
    jobs.wait_nothing_runs()
