"""The programs of articles on distributed TensorFlow, as they were printed, run by `muster run` on the
TensorFlow that they were written for.

They stand outside of this repository, in the folder that MUSTER_SEEDS names (../shared/seeds beside it
unless told), and are not edited. Tests without them, or without such an old Python, are skipped.
"""

from __future__ import annotations

import fcntl
import os
import pathlib
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator

import pytest

from testbed.tensorflow_jobs import TensorFlowJobs, ended_by_itself

REPOSITORY = pathlib.Path(__file__).parents[4]
SEEDS = pathlib.Path(os.environ.get("MUSTER_SEEDS") or REPOSITORY.parent / "shared/seeds")
HOSTS = (
    "--ps-hosts", "{ps_hosts:;}", "--worker-hosts", "{worker_hosts:;}",
    "--chief-hosts", "{chief_hosts:;}", "--worker-type", "{type}", "--worker-index", "{index}",
)  # fmt: skip


@pytest.fixture
def old() -> pathlib.Path:
    """An interpreter with TensorFlow 1.15."""
    python = os.environ.get("MUSTER_PYTHON_TENSORFLOW_1")
    if not python:
        pytest.skip("needs Python 3.7 (MUSTER_PYTHON_TENSORFLOW_1)")
    return pathlib.Path(python)


@pytest.fixture
def programs(tmp_path: pathlib.Path) -> Iterator[pathlib.Path]:
    """A copy of the Estimator article's programs, which write where they want: one user at a time."""
    if not (SEEDS / "estimator/model.py").is_file():
        pytest.skip("needs the articles' programs (MUSTER_SEEDS)")
    folder = tmp_path / "programs"
    shutil.copytree(SEEDS / "estimator", folder)
    with open(pathlib.Path(tempfile.gettempdir()) / "temp_model_dir.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(model_dir(), ignore_errors=True)
        yield folder
        shutil.rmtree(model_dir(), ignore_errors=True)


def model_dir() -> pathlib.Path:
    return pathlib.Path("/tmp/temp_model_dir")


def newest() -> int:
    state = (model_dir() / "checkpoint").read_text()
    found = re.search(r'^model_checkpoint_path: ".*model.ckpt-(\d+)"', state)
    assert found is not None, state
    return int(found.group(1))


def test_the_single_program(
    tensorflow_jobs: TensorFlowJobs, old: pathlib.Path, programs: pathlib.Path
) -> None:
    run = tensorflow_jobs
    job = run.start("--workers", 1, "--", old, programs / "main_single.py")
    run.wait_success(job)
    log = run.log(job, "worker-0")
    assert "Result dir: " in log and "mse" in log
    assert newest() == 10


def test_the_distributed_program_and_its_prediction(
    tensorflow_jobs: TensorFlowJobs, old: pathlib.Path, programs: pathlib.Path
) -> None:
    run = tensorflow_jobs
    roles = ("--chief", "--workers", 2, "--ps", 1)
    job = run.start(*roles, "--evaluator", "--", old, programs / "main.py", *HOSTS)
    tasks = run.wait_success(job)
    assert ended_by_itself(tasks["chief-0"])
    assert newest() >= 500
    job = run.start(*roles, "--", old, programs / "main_predict.py", *HOSTS)
    run.wait_success(job)
    # Each of the three has ten rows of its own.
    assert len(re.findall(r"^\[?\d\.\d+", run.log(job, "chief-0"), re.MULTILINE)) >= 10


def test_its_script_leaves_nothing_running(
    tensorflow_jobs: TensorFlowJobs, old: pathlib.Path, programs: pathlib.Path
) -> None:
    run = tensorflow_jobs
    path = f"{old.parent}:{os.environ['PATH']}"
    job = run.start(
        "--workers", 1, "--env", f"PATH={path}", "--",
        "bash", "-c", f"cd '{programs}' && bash run-dist.sh",
    )  # fmt: skip
    run.wait_success(job)
    assert newest() >= 500
    run.wait(lambda: not run.jobs.processes(), "for the parameter server that the script forgets")


def test_the_manifest_of_tfjob(
    tensorflow_jobs: TensorFlowJobs,
    old: pathlib.Path,
    real_data: Callable[[str], pathlib.Path],
    tmp_path: pathlib.Path,
) -> None:
    """v1alpha1, for GPUs, of an image: nothing in it is edited."""
    if not (SEEDS / "tfjob").is_dir():
        pytest.skip("needs the articles' programs (MUSTER_SEEDS)")
    run = tensorflow_jobs
    images = tmp_path / "images"
    images.mkdir()
    for kind in ("images-idx3", "labels-idx1"):
        given = real_data(f"mnist/t10k-{kind}-ubyte.gz")
        for name in ("t10k", "train"):  # the test images will do for a training too
            shutil.copy(given, images / f"{name}-{kind}-ubyte.gz")
    disk = tmp_path / "disk"
    disk.mkdir()
    run.jobs.environment["PATH"] = f"{old.parent}:{os.environ['PATH']}"
    job = run.start(
        SEEDS / "tfjob/mnist-simple-gpu-dist.yaml",
        "--volume", f"kubeflow-dist-nas-mnist={disk}", "--path", f"/app={SEEDS / 'tfjob'}",
        "--gpus", 0, "--env", f"DATA_DIR={images}", "--env", "MAX_STEPS=20",
    )  # fmt: skip
    tasks = run.wait_success(job)
    assert set(tasks) == {"master-0", "worker-0", "ps-0"}
    assert "Accuracy at step" in run.log(job, "master-0")
    state = (disk / "tensorflow/logs/checkpoint").read_text()
    found = re.search(r'^model_checkpoint_path: ".*model.ckpt-(\d+)"', state)
    assert found is not None and int(found.group(1)) >= 20


ROW = {"Pclass": [3], "Sex": ["male"], "Age": [22], "SibSp": [1], "Parch": [0], "Ticket": ["A"],
       "Fare": [7.25], "Embarked": ["S"], "Survived": [0]}  # fmt: skip


def write_passengers(folder: pathlib.Path) -> None:
    import tensorflow as tf

    def feature(values: list) -> tf.train.Feature:
        if isinstance(values[0], str):
            encoded = [value.encode() for value in values]
            return tf.train.Feature(bytes_list=tf.train.BytesList(value=encoded))
        if isinstance(values[0], float):
            return tf.train.Feature(float_list=tf.train.FloatList(value=values))
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))

    folder.mkdir()
    for part in range(2):
        with tf.io.TFRecordWriter(str(folder / f"part-{part}")) as file:
            for i in range(64):
                row = {**ROW, "Age": [i], "Fare": [float(i)], "Survived": [i % 2]}
                features = {name: feature(values) for name, values in row.items()}
                example = tf.train.Example(features=tf.train.Features(feature=features))
                file.write(example.SerializeToString())


def test_the_training_program_of_spark(
    tensorflow_jobs: TensorFlowJobs, tmp_path: pathlib.Path
) -> None:
    """Its training by MultiWorkerMirroredStrategy; `muster run` starts the tasks and not Spark."""
    python = os.environ.get("MUSTER_PYTHON_TENSORFLOW_2_4")
    if not python:
        pytest.skip("needs Python 3.8 (MUSTER_PYTHON_TENSORFLOW_2_4)")
    source = SEEDS / "wide_deep_spark/src"
    if not source.is_dir():
        pytest.skip("needs the articles' programs (MUSTER_SEEDS)")
    write_passengers(tmp_path / "train")
    run = tensorflow_jobs
    stubs = REPOSITORY / "testbed/article_stubs"
    job = run.start(
        "--chief", "--workers", 1, "--env", f"PYTHONPATH={stubs}", "--",
        python, source / "train.py", "--batch_size", 8, "--shuffle_size", 32, "--worker_size", 2,
        "--epochs", 2, "--train_dir", tmp_path / "train", "--model_dir", run.model,
        "--tensorboard_dir", tmp_path / "tensorboard",
    )  # fmt: skip
    # Chief and worker save into a folder that is named by the second. Where both do so in the same
    # one, one of them fails: the chief and the tasks are started again, or a worker, whose end does
    # not count when the chief has succeeded.
    tasks = run.wait_success(job)
    assert tasks["chief-0"]["last_end"]["exit_code"] == 0
    assert list(run.model.glob("*/saved_model.pb"))
