"""Kubeflow's controller of TFJobs as a process, which peer/build.sh builds."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess

from testbed.kubernetes.api import Object
from testbed.kubernetes.cluster import HERE, KUBEFLOW, Cluster

# So that its own limit of calls, 20 a second by default, is not what a test waits for.
UNLIMITED = ("--kube-api-qps", "5000", "--kube-api-burst", "5000")


def build_peer() -> pathlib.Path:
    """The folder with `peer` and `tfjobs.yaml`, which are built where that was not done yet."""
    built = subprocess.run([str(HERE / "peer" / "build.sh")], capture_output=True, text=True)
    assert built.returncode == 0, built.stderr[-4000:]
    return pathlib.Path(built.stdout.strip())


def start_peer(
    cluster: Cluster, namespace: str, log: pathlib.Path, *flags: str
) -> subprocess.Popen[bytes]:
    """For the jobs of one namespace, or of all where that is ""."""
    config = cluster.kubeconfig(KUBEFLOW, f"peer-{namespace}")
    with open(log, "wb") as output:
        return subprocess.Popen(
            [str(build_peer() / "peer"), "--namespace", namespace, *flags],
            stdout=output, stderr=output, env={**os.environ, "KUBECONFIG": str(config)},
        )  # fmt: skip


def validate(jobs: list[Object]) -> list[str]:
    """Why Kubeflow's webhook refuses each of the jobs; "" for one that it takes."""
    lines = "".join(json.dumps(job) + "\n" for job in jobs)
    answer = subprocess.run(
        [str(build_peer() / "peer"), "validate"], input=lines, capture_output=True, text=True
    )
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.split("\n")[: len(jobs)]
