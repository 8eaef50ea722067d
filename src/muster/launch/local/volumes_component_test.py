"""A TFJob whose pods mount volumes, on a machine that mounts nothing."""

from __future__ import annotations

import pytest

from testbed.jobs import Jobs

JOB = """
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
            command: [/mnt-of-pod/code/main.sh]
            args: ["--data=/mnt-of-pod/data/train", $(OUT)]
            workingDir: /mnt-of-pod/code
            env: [{name: OUT, value: /mnt-of-pod/out/1}]
            volumeMounts:
            - {name: data, mountPath: /mnt-of-pod/data, readOnly: true}
            - {name: disk, mountPath: /mnt-of-pod/code, subPath: code}
            - {name: host, mountPath: /mnt-of-pod/out}
            - {name: scratch, mountPath: /mnt-of-pod/scratch}
          volumes:
          - {name: data, persistentVolumeClaim: {claimName: training-data}}
          - {name: disk, persistentVolumeClaim: {claimName: code}}
          - {name: host, hostPath: {path: HOST}}
          - {name: scratch, emptyDir: {}}
"""
ALL = ["--volume", "training-data=data", "--volume", "disk=disk"]


@pytest.fixture
def volumes(jobs: Jobs) -> Jobs:
    for name in ("data", "disk/code", "host"):
        (jobs.folder / name).mkdir(parents=True)
    (jobs.folder / "data/train").write_text("rows")
    program = jobs.folder / "disk/code/main.sh"
    program.write_text('#!/bin/sh\necho "$PWD $OUT"; cat "${1#--data=}" > "$2"\n')
    program.chmod(0o755)
    (jobs.folder / "job.yaml").write_text(JOB.replace("HOST", str(jobs.folder / "host")))
    return jobs


def test_paths_of_volumes_become_those_of_this_machine(volumes: Jobs) -> None:
    result = volumes.call("run", "job.yaml", *ALL)
    assert result.returncode == 0, result.stderr
    assert result.stdout == f"{volumes.folder}/disk/code {volumes.folder}/host/1\n"
    assert (volumes.folder / "host/1").read_text() == "rows"
    assert f"volume 'data': /mnt-of-pod/data is {volumes.folder}/data" in result.stderr
    assert "volume 'scratch' (emptyDir)" in result.stderr
    volumes.wait_nothing_runs()


@pytest.mark.parametrize(
    "arguments, code, words",
    [
        ([], 1, ["Worker", "'data'", "/mnt-of-pod/data", "--volume data=PATH"]),
        (ALL[:2], 1, ["'disk'", "--volume disk=PATH"]),
        ([*ALL, "--volume", "scrtch=data"], 2, ["'scrtch'", "did you mean 'scratch'"]),
        ([*ALL, "--volume", "scratch=nowhere"], 2, ["--volume", "nowhere"]),
        ([*ALL, "--volume", "scratch"], 2, ["'scratch'", "NAME=PATH"]),
        (["--volume", "data=data", "--volume", "disk=data"], 1, ["data/code"]),
    ],
)
def test_a_volume_that_is_nowhere_starts_nothing(
    volumes: Jobs, arguments: list[str], code: int, words: list[str]
) -> None:
    result = volumes.call("run", "job.yaml", *arguments)
    assert result.returncode == code, result.stderr
    for word in words:
        assert word in result.stderr, result.stderr
    assert not (volumes.home / "jobs/j").exists()
    volumes.wait_nothing_runs()


def test_a_command_has_no_volumes(jobs: Jobs) -> None:
    result = jobs.call("run", "--volume", f"data={jobs.folder}", "--", "true")
    assert result.returncode == 2 and "no container mounts a volume 'data'" in result.stderr
