"""`muster tensorboard` for a job of a cluster: a real TensorBoard in a pod, seen from here."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from typing import Any

import pytest

from testbed.jobs import Jobs
from testbed.kubernetes.native_jobs import MOUNT, NativeJobs, volume_job
from testbed.kubernetes.operators import tfjob, wait_for
from testbed.kubernetes.pod_files import Image
from testbed.kubernetes.process_space import ProcessSpace
from testbed.muster import Muster

ON = ("--on", "kubernetes")
IMAGE = "tensorflow/tensorflow:2.15.0"


@pytest.fixture
def job(process_space: ProcessSpace, muster: Muster) -> NativeJobs:
    """A job `j` that has trained into the folder of its name."""
    native = NativeJobs.make(muster.binary, process_space)
    tools = pathlib.Path(sys.executable).parent
    path = {"PATH": f"{tools}:{os.environ['PATH']}"}
    process_space.kubelet.images[IMAGE] = Image(environment=path)
    process_space.cluster.start_deployments()
    process_space.start_operator("--lease", "120")
    command = ["muster", "train", native.inside("spec.yaml"), f"{MOUNT}/j",
               "--train", native.inside("train.csv"), "--summary-steps", "10"]  # fmt: skip
    process_space.submit(volume_job("j", {"Worker": 1}, command))
    native.wait_success("j")
    return native


def objects(space: ProcessSpace) -> list[str]:
    """The names of what TensorBoards leave in a namespace."""
    apps = f"/apis/apps/v1/namespaces/{space.name}"
    kinds = [f"{apps}/deployments", f"{apps}/replicasets", f"{space.core}/services",
             f"{space.core}/pods"]  # fmt: skip
    return [item["metadata"]["name"] for kind in kinds for item in space.api.items(kind)
            if "tensorboard" in item["metadata"]["name"]]  # fmt: skip


def ask(url: str, body: bytes | None = None) -> Any:
    fields = {"Content-Type": "application/x-www-form-urlencoded"} if body else {}
    return urllib.request.urlopen(urllib.request.Request(url, body, fields), timeout=60)


def end(viewer: subprocess.Popen[str]) -> str:
    """What it has said on stderr until Ctrl-C has ended it."""
    viewer.send_signal(signal.SIGINT)
    said = viewer.communicate(timeout=60)[1]
    assert viewer.returncode == 0, said
    return said


def test_a_browser_sees_the_training_until_ctrl_c(
    job: NativeJobs, process_space: ProcessSpace, process_user: Jobs
) -> None:
    refused = process_user.call("tensorboard", "j", *ON, "--python", "venv/bin/python")
    assert refused.returncode == 2 and "give --image" in refused.stderr
    viewer = process_user.start("tensorboard", "j", *ON, "--port", 0)
    assert viewer.stdout and viewer.stderr
    address = viewer.stdout.readline().strip()
    assert address.startswith("http://127.0.0.1:"), viewer.communicate(timeout=60)
    page = ask(address).read().decode()
    assert "TensorBoard" in page
    assert json.load(ask(f"{address}data/runs")) == ["."]
    tags = json.load(ask(f"{address}data/plugin/scalars/tags"))["."]
    [loss] = [tag for tag in tags if tag.endswith("loss")]
    points = json.load(ask(f"{address}data/plugin/scalars/scalars?run=.&tag={loss}"))
    assert len(points) > 1
    several = json.load(ask(f"{address}data/plugin/scalars/scalars_multirun",
                            f"tag={loss}&runs=.".encode()))  # fmt: skip
    assert several["."] == points
    (deployment,) = process_space.api.items(
        f"/apis/apps/v1/namespaces/{process_space.name}/deployments"
    )
    assert deployment["metadata"]["name"].startswith("j-tensorboard-")
    assert deployment["metadata"]["ownerReferences"][0]["kind"] == "TFJob"
    # Nothing above the Service is reached by this port.
    for path in ("..", "%2e%2e/pods", "a/../../pods"):
        with pytest.raises(urllib.error.HTTPError, match="400"):
            ask(address + path)
    assert f"TensorBoard of {MOUNT}/j starts in the cluster" in end(viewer)
    wait_for(lambda: not objects(process_space), lambda: str(objects(process_space)))


def test_the_end_of_one_viewer_leaves_the_other(
    job: NativeJobs, process_space: ProcessSpace, process_user: Jobs
) -> None:
    first = process_user.start("tensorboard", "j", *ON, "--port", 0)
    second = process_user.start("tensorboard", "j", *ON, "--port", 0)
    assert first.stdout and first.stdout.readline() and second.stdout
    address = second.stdout.readline().strip()
    end(first)
    wait_for(lambda: len(objects(process_space)) == 4, lambda: str(objects(process_space)))
    assert json.load(ask(f"{address}data/runs")) == ["."]
    end(second)
    wait_for(lambda: not objects(process_space), lambda: str(objects(process_space)))


def test_it_goes_with_its_job(
    job: NativeJobs, process_space: ProcessSpace, process_user: Jobs
) -> None:
    """Also one that a viewer has left behind."""
    viewer = process_user.start("tensorboard", "j", *ON, "--port", 0)
    assert viewer.stdout and viewer.stdout.readline()
    viewer.kill()
    viewer.communicate(timeout=60)
    second = process_user.start("tensorboard", "j", *ON, "--port", 0, "--", "--window_title", "x")
    assert second.stdout and second.stdout.readline()
    process_user.ok("rm", "j", *ON)
    said = second.communicate(timeout=60)[1]
    assert second.returncode == 0 and "the job j was removed, and its TensorBoard with it" in said
    wait_for(lambda: not objects(process_space), lambda: str(objects(process_space)))


def test_what_keeps_it_from_starting_is_said(
    job: NativeJobs, process_space: ProcessSpace, process_user: Jobs
) -> None:
    viewer = process_user.start("tensorboard", "j", *ON, "--port", 0, "--image", "absent:1")
    assert viewer.stderr
    assert "starts in the cluster" in viewer.stderr.readline()
    line = viewer.stderr.readline()
    assert "TensorBoard does not start: ErrImagePull" in line and "check the image" in line
    end(viewer)
    wait_for(lambda: not objects(process_space), lambda: str(objects(process_space)))


def fail(user: Jobs, *arguments: object) -> str:
    result = user.call("tensorboard", *arguments, *ON)
    assert result.returncode == 1, (result.stdout, result.stderr)
    (line,) = result.stderr.splitlines()
    return line


def test_what_cannot_be_shown_is_one_line(
    process_space: ProcessSpace, process_user: Jobs
) -> None:
    process_space.submit(tfjob("nowhere", {"Worker": 1}))
    assert "no job j in the namespace" in fail(process_user, "j")
    assert "give the pods' path with --model-dir" in fail(process_user, "nowhere")
    assert "it has none" in fail(process_user, "nowhere", "--model-dir", "/a")
    process_space.submit(volume_job("there", {"Worker": 1}, ["x", "--model-dir", f"{MOUNT}/m"]))
    process_space.api.delete(
        f"/apis/rbac.authorization.k8s.io/v1/namespaces/{process_space.name}/rolebindings/user"
    )
    # The server may need a moment until the right is gone, and meanwhile a TensorBoard would start.
    wait_for(lambda: process_user.call("status", "there", *ON).returncode == 1)
    assert 'User "user" cannot get resource "tfjobs"' in fail(process_user, "there")
    assert process_user.call("tensorboard", *ON).returncode == 2
