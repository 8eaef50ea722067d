"""TFJob files as people have them, run on this machine: images' entry points, paths and GPUs."""

from __future__ import annotations

import json

import pytest

from testbed.jobs import Jobs

# As Kubeflow's first example: the image knows what to run, and where.
IMAGE_ONLY = """
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: mnist, namespace: ads}
spec:
  tfReplicaSpecs:
    PS:
      replicas: 1
      restartPolicy: Never
      template: {spec: {containers: [{name: tensorflow, image: registry/mnist:1}]}}
    Worker:
      replicas: 2
      restartPolicy: Never
      template:
        spec:
          containers:
          - name: tensorflow
            image: registry/mnist:1
            args: [--log=/app/log]
            env:
            - {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
            - {name: TITLE, value: "$(POD) of 2"}
            resources: {limits: {nvidia.com/gpu: 4}}
"""
SCRIPT = 'echo "$TITLE as $TURN, $1"'


def test_a_manifest_without_a_command_runs_by_the_one_that_is_given(jobs: Jobs) -> None:
    (jobs.folder / "job.yaml").write_text(IMAGE_ONLY)
    (jobs.folder / "src").mkdir()
    jobs.ok(
        "run", "job.yaml", "--gpus", 0, "--path", "/app=src", "--env", "TURN={type}/{index}",
        "--", "sh", "-c", SCRIPT, "sh",
    )  # fmt: skip
    log = jobs.ok("logs", "mnist")
    for index in (0, 1):
        expected = f"mnist-worker-{index} of 2 as worker/{index}, --log={jobs.folder}/src/log"
        assert expected in log


def test_a_dry_run_shows_the_tasks_and_starts_nothing(jobs: Jobs) -> None:
    (jobs.folder / "job.yaml").write_text(IMAGE_ONLY)
    shown = jobs.ok("run", "job.yaml", "--gpus", 0, "--dry-run", "--", "echo", "a b")
    assert "limits of nvidia.com/gpu are not used" in shown
    assert "worker-1\n  command   echo 'a b' --log=/app/log\n" in shown
    assert "POD=mnist-worker-1" in shown
    configs = [line.split(None, 1)[1] for line in shown.splitlines() if "TF_CONFIG" in line]
    tasks = [json.loads(config)["task"] for config in configs]
    assert tasks == [
        {"type": "ps", "index": 0},
        {"type": "worker", "index": 0},
        {"type": "worker", "index": 1},
    ]
    assert not (jobs.home / "jobs/mnist").exists()


def test_what_has_no_effect_on_one_machine_is_said(jobs: Jobs) -> None:
    policy = "spec:\n  runPolicy: {cleanPodPolicy: All, schedulingPolicy: {queue: q}}\n"
    text = IMAGE_ONLY.replace("spec:\n", policy, 1)
    limits = "resources: {requests: {memory: 2Gi}, limits:"
    (jobs.folder / "job.yaml").write_text(text.replace("resources: {limits:", limits))
    shown = jobs.ok("run", "job.yaml", "--gpus", 0, "--dry-run", "--", "echo")
    unused = "cleanPodPolicy, image, schedulingPolicy, the request of memory"
    assert f"not used on this machine: {unused}" in shown


def test_all_that_a_manifest_lacks_is_said_at_once(jobs: Jobs) -> None:
    (jobs.folder / "job.yaml").write_text(IMAGE_ONLY)
    result = jobs.call("run", "job.yaml", "--gpus", 0, "--dry-run")
    assert result.returncode == 1
    assert "PS: template: the container has no 'command'" in result.stderr
    assert "Worker: template: the container has no 'command'" in result.stderr


def test_a_command_that_nothing_would_run_is_refused(jobs: Jobs) -> None:
    text = IMAGE_ONLY.replace("image: registry/mnist:1", "command: [echo]")
    (jobs.folder / "job.yaml").write_text(text)
    result = jobs.call("run", "job.yaml", "--gpus", 0, "--", "true")
    assert result.returncode == 1
    assert "every container of job.yaml has a command" in result.stderr


@pytest.mark.parametrize("shell", ['exec "$@" <job.yaml', 'cat job.yaml | "$@"'])
def test_a_manifest_comes_from_standard_input(jobs: Jobs, shell: str) -> None:
    (jobs.folder / "job.yaml").write_text(IMAGE_ONLY)
    wrapper = ("sh", "-c", shell, "sh")
    shown = jobs.ok("run", "-", "--gpus", 0, "--dry-run", "--", "echo", wrapper=wrapper)
    assert "job mnist, 3 tasks" in shown


@pytest.mark.parametrize(
    "flag", [("--restarts", 5), ("--restart-policy", "Never"), ("--restart-scope", "task")]
)
def test_restarts_of_a_manifest_are_not_said_by_flags(jobs: Jobs, flag: tuple[str, object]) -> None:
    (jobs.folder / "job.yaml").write_text(IMAGE_ONLY)
    result = jobs.call("run", "job.yaml", *flag, "--dry-run", "--", "echo")
    assert result.returncode == 2
    assert "leave --restarts, --restart-policy and --restart-scope out" in result.stderr
