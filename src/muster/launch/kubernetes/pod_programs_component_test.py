"""TensorFlow's own programs in pods of TFJobs: they find each other by TF_CONFIG."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
from collections.abc import Callable

import pytest
import yaml

from testbed.jobs import Jobs
from testbed.kubernetes.native_jobs import MOUNT, NativeJobs, make_claim, volume_job
from testbed.kubernetes.pod_files import Image
from testbed.kubernetes.process_space import ProcessSpace
from testbed.muster import Muster
from testbed.tensorflow_jobs import ENVIRONMENT, PROGRAMS, TensorFlowJobs

REPOSITORY = pathlib.Path(__file__).parents[4]
SEEDS = pathlib.Path(os.environ.get("MUSTER_SEEDS") or REPOSITORY.parent / "shared/seeds") / "tfjob"
ARTICLES_IMAGE = "registry.aliyuncs.com/tensorflow-samples/tf-mnist-distributed"


@pytest.fixture
def run(process_space: ProcessSpace, muster: Muster) -> TensorFlowJobs:
    process_space.start_operator("--lease", "120")
    process_space.kubelet.images["image"].environment.update(ENVIRONMENT)
    return TensorFlowJobs(Jobs(muster.binary, make_claim(process_space)))


def wait_success(space: ProcessSpace, job: str) -> None:
    NativeJobs(space, None).wait_success(job)  # type: ignore[arg-type]


def test_the_articles_master_workers_and_server(
    process_space: ProcessSpace, run: TensorFlowJobs
) -> None:
    """A smaller program of the shape of the article's MNIST."""
    space = process_space
    command = [run.old, str(PROGRAMS / "mnist.py"), f"--log_dir={MOUNT}/logs", "--max_steps=60"]
    space.submit(volume_job("mnist", {"Master": 1, "Worker": 2, "PS": 1}, command,
                            runPolicy={"cleanPodPolicy": "Running"}))  # fmt: skip
    wait_success(space, "mnist")
    assert "master 0 is done after" in space.kubelet.log("mnist-master-0")
    assert (run.jobs.folder / "logs" / "checkpoint").exists()


def test_the_articles_own_manifest_and_program(
    process_space: ProcessSpace, real_data: Callable[[str], pathlib.Path]
) -> None:
    """v1alpha1, for GPUs, with its claim: nothing is edited, and the image is what the article says."""
    python = os.environ.get("MUSTER_PYTHON_TENSORFLOW_1")
    if not python:
        pytest.skip("needs Python 3.7 (MUSTER_PYTHON_TENSORFLOW_1)")
    if not (SEEDS / "main.py").is_file():
        pytest.skip("needs the articles' programs (MUSTER_SEEDS)")
    space = process_space
    space.start_operator("--lease", "120")
    path = f"{pathlib.Path(python).parent}:{os.environ['PATH']}"
    variables = {**ENVIRONMENT, "PATH": path, "MAX_STEPS": "20"}
    for tag in ("gpu", "cpu"):
        space.kubelet.images[f"{ARTICLES_IMAGE}:{tag}"] = Image({"/app": str(SEEDS)}, variables)
    for name in ("nas-dist-pvc.yaml", "mnist-simple-gpu-dist.yaml"):
        for document in yaml.safe_load_all((SEEDS / name).read_text()):
            document["metadata"]["namespace"] = space.name
            space.cluster.create(document)
    disk = space.kubelet.claims / "kubeflow-dist-nas-mnist"
    images = disk / "tensorflow/input_data"
    images.mkdir(parents=True)
    for kind in ("images-idx3", "labels-idx1"):
        given = real_data(f"mnist/t10k-{kind}-ubyte.gz")
        for prefix in ("t10k", "train"):  # the test images will do for a training too
            shutil.copy(given, images / f"{prefix}-{kind}-ubyte.gz")
    wait_success(space, "mnist-simple-gpu-dist")
    assert "Accuracy at step" in space.kubelet.log("mnist-simple-gpu-dist-master-0")
    state = (disk / "tensorflow/logs/checkpoint").read_text()
    found = re.search(r'^model_checkpoint_path: ".*model.ckpt-(\d+)"', state)
    assert found is not None and int(found[1]) >= 20


def test_multi_worker_mirrored_goes_on_after_a_kill(
    process_space: ProcessSpace, run: TensorFlowJobs
) -> None:
    space = process_space
    command = [run.old, str(PROGRAMS / "mirrored_loop.py"), "--model-dir", f"{MOUNT}/model",
               "--gate", f"{MOUNT}/gate", "--gate-step", "12"]  # fmt: skip
    job = volume_job("m", {"Worker": 2}, command, 1, successPolicy="AllWorkers")
    job["metadata"]["annotations"] = {"muster/restartScope": "gang"}
    space.submit(job)
    native = NativeJobs(space, None)  # type: ignore[arg-type]
    native.wait_log("m-worker-1", "at the gate")
    native.harm("kill", "m-worker-0")
    (run.jobs.folder / "gate").touch()
    native.wait_success("m")
    for worker in ["m-worker-0", "m-worker-1"]:
        log = space.kubelet.log(worker)
        assert "begins at step 10 of 30" in log and "is done at step 30" in log
