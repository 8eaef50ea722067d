"""`muster run --hosts` and `muster train --hosts` over a real sshd on two hosts."""

from __future__ import annotations

import json
import os
import pathlib
import re
import signal

from testbed.hosts_jobs import HostsJobs, runs
from testbed.trainings import Trainings

LEASE = ("--lease", "8")

SHOW = """
import hashlib, json, os, sys
config = json.loads(os.environ["TF_CONFIG"])
print("cluster", json.dumps(config["cluster"]), "task", config["task"]["index"])
key = os.environ["MUSTER_KEY_FILE"]
modes = [oct(os.stat(path).st_mode & 0o777) for path in (key, os.path.dirname(key))]
print("mode", modes[0], "folder", modes[1])
print("certificates", sorted(os.listdir(os.environ["MUSTER_CERTS"])))
with open(os.path.join(os.environ["MUSTER_CERTS"], "server.pem"), "rb") as file:
    print("of", hashlib.sha256(file.read()).hexdigest())
"""
TFJOB = """
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: show}
spec:
  tfReplicaSpecs:
    Chief: {template: &pod {spec: {containers: [
      {name: tensorflow, image: example, command: [python3, /app/show.py]}]}}}
    Worker: {replicas: 1, template: *pod}
"""
# It runs until a file says that it may end.
WAIT = """
import os, pathlib, time
print("begins on", os.environ["TMPDIR"][-1], flush=True)
while not pathlib.Path("end").exists():
    time.sleep(0.05)
print("ends", flush=True)
"""


def test_a_programs_tf_config_has_the_hosts_addresses_and_its_output_comes_back(
    hosts: HostsJobs,
) -> None:
    (hosts.jobs.folder / "show.py").write_text(SHOW)
    said = hosts.ok("run", "--workers", 3, "--name", "show", "--", "python3", "show.py")
    clusters = [line for line in said.splitlines() if "cluster" in line]
    assert len(clusters) == 3
    for line in clusters:
        cluster = json.loads(line.split("cluster ")[1].split(" task")[0])
        addresses = [address.split(":")[0] for address in cluster["worker"]]
        assert addresses == ["10.77.0.1", "10.77.0.2", "10.77.0.1"]
    assert said.count("mode 0o600 folder 0o700") == 3
    assert said.count("server-key.pem") == 3 and "ca-key.pem" not in said
    certificates = re.findall(r"\| of ([0-9a-f]{64})$", said, re.MULTILINE)
    assert len(certificates) == 3 and len(set(certificates)) == 2  # two hosts, three tasks
    hosts.wait_nothing_is_left()
    assert "cluster" in hosts.here("logs", "show")
    assert json.loads(hosts.here("status", "show", "--json"))["phase"] == "succeeded"
    key = (hosts.jobs.home / "jobs/show/token").read_text().strip()
    assert key not in hosts.jobs.logs()


def test_a_tfjob_file_runs_on_the_hosts(hosts: HostsJobs) -> None:
    (hosts.jobs.folder / "show.py").write_text(SHOW)
    (hosts.jobs.folder / "job.yaml").write_text(TFJOB)
    said = hosts.ok("run", "job.yaml", "--path", f"/app={hosts.jobs.folder}")
    for address, task in (("10.77.0.1", "chief"), ("10.77.0.2", "worker")):
        assert any(f'"{task}": ["{address}:' in line for line in said.splitlines()), said
    hosts.wait_nothing_is_left()
    assert json.loads(hosts.here("status", "show", "--json"))["phase"] == "succeeded"


def test_a_training_gives_the_same_bytes_as_on_one_machine(hosts: HostsJobs) -> None:
    trainings = Trainings(hosts.jobs)
    flags = ("--epochs", 2, "--save-secs", 0)
    trainings.ok("here", "--workers", 2, *flags)
    command = trainings.flags("there", "--workers", 2, "--job", "there", *flags)
    hosts.ok("train", *command[1:])
    assert trainings.weights("there") == trainings.weights("here")
    hosts.wait_nothing_is_left()


def test_staged_files_lie_in_each_tasks_own_folder(hosts: HostsJobs, tmp_path: pathlib.Path) -> None:
    (tmp_path / "words.txt").write_text("some words")
    program = "print(open('words.txt').read(), __import__('os').getcwd())"
    said = hosts.ok("run", "--workers", 2, "--file", "words.txt", "--", "python3", "-c", program)
    assert said.count("some words") == 2
    assert "/work/worker-0" in said and "/work/worker-1" in said
    hosts.wait_nothing_is_left()


def test_a_stop_leaves_nothing_on_the_hosts(hosts: HostsJobs) -> None:
    (hosts.jobs.folder / "wait.py").write_text(WAIT)
    name = hosts.ok("run", "--detach", "--workers", 2, "--", "python3", "wait.py").strip()
    for task in ("worker-0", "worker-1"):
        hosts.running(name, task)
    assert hosts.servers.agents("b") and hosts.servers.left()
    hosts.jobs.wait(lambda: "begins on b" in hosts.here("logs", name), "for its output")
    hosts.here("stop", name)
    hosts.wait_nothing_is_left()
    hosts.jobs.wait_nothing_runs()


def test_a_killed_agent_takes_its_task_along_and_both_start_again(hosts: HostsJobs) -> None:
    (hosts.jobs.folder / "wait.py").write_text(WAIT)
    job = hosts.start("run", "--workers", 2, "--name", "j", "--", "python3", "wait.py")
    task = hosts.running("j", "worker-1")
    hosts.running("j", "worker-0")
    os.kill(task["agent_pid"], signal.SIGKILL)
    again = hosts.running("j", "worker-1", task["incarnation"] + 1)
    assert not runs(task["pid"])
    assert again["restarts"] == 1 and "host b" in again["last_end"]["text"]
    (hosts.jobs.folder / "end").touch()
    out, err = job.communicate(timeout=120)
    assert job.returncode == 0, err
    assert "worker-1 failed: its agent on host b ended first" in err
    hosts.wait_nothing_is_left()


def test_a_host_whose_cable_is_cut_is_named_and_its_task_goes_elsewhere(hosts: HostsJobs) -> None:
    (hosts.jobs.folder / "wait.py").write_text(WAIT)
    job = hosts.start("run", "--workers", 2, "--name", "j", *LEASE, "--", "python3", "wait.py")
    task = hosts.running("j", "worker-1")
    hosts.running("j", "worker-0")
    assert task["place"] == "host b"
    hosts.cable.lose(100)
    again = hosts.running("j", "worker-1", task["incarnation"] + 1)
    # Nobody runs twice: what was there has ended before.
    assert not runs(task["pid"])
    assert again["place"] == "host a"
    assert again["restarts"] == 0 and again["disruptions"] == 1
    (hosts.jobs.folder / "end").touch()
    out, err = job.communicate(timeout=120)
    assert job.returncode == 0, err
    named = "worker-1: its agent on host b was silent for 8s; it ends there by itself"
    assert named in err, err
    # Before it is certain that the task has ended.
    failed = "worker-1 failed: its agent on host b was silent for 8s"
    assert err.index(named) < err.index(failed)
    hosts.cable.heal()
    hosts.wait_nothing_is_left()


def test_a_host_that_cannot_be_reached_again_ends_a_job_that_has_no_other(hosts: HostsJobs) -> None:
    (hosts.jobs.folder / "wait.py").write_text(WAIT)
    flags = ("--workers", 1, "--name", "j", *LEASE, "--restarts", 1)
    job = hosts.start("run", *flags, "--", "python3", "wait.py", hosts="b")
    task = hosts.running("j", "worker-0")
    hosts.servers.stop("b")
    hosts.cable.lose(100, "a")
    hosts.jobs.wait(
        lambda: not runs(task["pid"]), "for its lease to end"
    )
    hosts.cable.heal()  # but there is no sshd any more
    out, err = job.communicate(timeout=120)
    assert job.returncode == 1
    assert "cannot reach host b" in err and "Connection refused" in err
    hosts.wait_nothing_is_left()


def test_tasks_outlive_a_killed_coordinator_which_finds_them_again(hosts: HostsJobs) -> None:
    (hosts.jobs.folder / "wait.py").write_text(WAIT)
    name = hosts.ok("run", "--detach", "--workers", 2, "--", "python3", "wait.py").strip()
    tasks = {task: hosts.running(name, task) for task in ("worker-0", "worker-1")}
    killed = hosts.jobs.kill_coordinator(name)
    hosts.jobs.wait(lambda: hosts.jobs.coordinator(name) != killed, "for another coordinator")
    for task, before in tasks.items():
        assert hosts.running(name, task)["pid"] == before["pid"]
    (hosts.jobs.folder / "end").touch()
    hosts.jobs.wait(
        lambda: json.loads(hosts.here("status", name, "--json"))["phase"] == "succeeded",
        "for its end",
    )
    hosts.jobs.wait_nothing_runs()  # the last output comes by another way than the end
    assert hosts.here("logs", name).count("ends") == 2
    hosts.wait_nothing_is_left()


def test_what_is_wrong_with_a_host_is_said_in_one_line_before_anything_starts(
    hosts: HostsJobs,
) -> None:
    cases = [
        ("nowhere.invalid", "python3", ("host nowhere.invalid: ssh: ", "Could not resolve")),
        ("stranger", "python3", ("host stranger: ", "Permission denied", "ssh-copy-id stranger")),
        ("a,b", "nosuchprogram", ("host a: there is no program 'nosuchprogram'", "host b: there")),
    ]
    for names, program, words in cases:
        result = hosts.call("run", "--workers", 1, "--name", "j", "--", program, hosts=names)
        assert result.returncode == 1
        for word in words:
            assert word in result.stderr, result.stderr
        assert len(result.stderr.strip().splitlines()) == len(names.split(",")), result.stderr
        assert not (hosts.jobs.home / "jobs/j").exists()
    for names in ("a,a", "-x"):
        assert hosts.call("run", "--", "true", hosts=names).returncode == 2
    hosts.wait_nothing_is_left()
