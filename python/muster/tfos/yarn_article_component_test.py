"""The two programs of the TensorFlowOnSpark article, as they were printed, by spark-submit on a standalone cluster and
on a real YARN: a table to TFRecord files, then MultiWorkerMirrored training of a wide & deep Keras model, with
TensorFlow 2.4 in a Python 3.8 that travels as an archive.

They stand outside of this repository (MUSTER_SEEDS, ../shared/seeds beside it unless told) and are not edited.
"""

from __future__ import annotations

import json
import os
import pathlib
import shutil
from typing import Callable, Iterator

import pytest

from testbed import daemons
from testbed.hadoop.cluster import java_home
from testbed.hadoop.fixtures import hdfs, yarn
from testbed.hadoop.yarn import Yarn
from testbed.muster import Muster
from testbed.spark import jar, sessions, submits
from testbed.spark.cluster import SparkCluster
from testbed.spark.submits import Submits

__all__ = ["hdfs", "yarn"]
ROWS, FILES, WORKERS = 60, 5, 2
ALIAS = sessions.ROOT / "python/muster/tfos/tensorflowonspark.py"  # what `python -m muster.tfos` prints
UPLOADED = "/tf2-onspark"


def seeds() -> pathlib.Path:
    return pathlib.Path(os.environ.get("MUSTER_SEEDS") or sessions.ROOT.parent / "shared/seeds") / "wide_deep_spark"


@pytest.fixture
def folder(
    tmp_path: pathlib.Path, real_data: Callable[[str], pathlib.Path]
) -> pathlib.Path:
    """What the article's scripts find beside them: src, src.zip, data, data.zip, and the Python with its archive."""
    python = os.environ.get("MUSTER_PYTHON_TENSORFLOW_2_4")
    if not python:
        pytest.skip("needs Python 3.8 (MUSTER_PYTHON_TENSORFLOW_2_4)")
    if not seeds().is_dir():
        pytest.skip("needs the articles' programs (MUSTER_SEEDS)")
    shutil.copytree(seeds() / "src", tmp_path / "src")
    (tmp_path / "data").mkdir()
    for name in ("train", "test"):
        lines = real_data(f"titanic/{name}.csv").read_text().splitlines(keepends=True)
        (tmp_path / f"data/{name}.csv").write_text("".join(lines[: ROWS + 1]))
    for name in ("src", "data"):
        shutil.make_archive(str(tmp_path / name), "zip", tmp_path / name)
    submits.make_python(tmp_path, python)
    return tmp_path


@pytest.fixture
def standalone(folder: pathlib.Path) -> Iterator[SparkCluster]:
    (folder / "spark").mkdir()
    yield from daemons.run(SparkCluster(folder / "spark", workers=WORKERS, cores=2))


def generate(out: str) -> list[object]:
    """The article's first program, with its arguments."""
    return [
        "src/gen_tfrecords.py", "--train_csv", "./data/train.csv", "--test_csv", "./data/test.csv",
        "--train_num_partitions", FILES, "--test_num_partitions", FILES,
        "--train_output", f"{out}/train", "--test_output", f"{out}/test",
    ]  # fmt: skip


def train(out: str) -> list[object]:
    """The second one; what it needs of Spark."""
    return [
        "--executor-cores", 2, "--conf", "spark.task.cpus=2", "--conf", "spark.dynamicAllocation.enabled=false",
        "src/train.py", "--batch_size", 8, "--shuffle_size", 32, "--worker_size", WORKERS, "--epochs", 2,
        "--train_dir", f"{out}/train", "--model_dir", f"{out}/model", "--tensorboard_dir", f"{out}/tensorboard",
    ]  # fmt: skip


def check(muster: Muster, out: str) -> None:
    """What both have left. The chief alone writes model and events there."""
    found = muster.run("fs", "ls", "--json", "-r", out).splitlines()
    paths = [json.loads(line)["path"].rpartition(f"{out}/")[2] for line in found]
    for name in ("train", "test"):
        assert sum(path.startswith(f"{name}/part-r-") for path in paths) == FILES
        verified = muster.run("records", "verify", "--json", f"{out}/{name}/part*").splitlines()
        assert sum(json.loads(file)["records"] for file in verified) == ROWS
    assert [path for path in paths if path.startswith("model/") and path.endswith("/saved_model.pb")]
    assert [path for path in paths if path.startswith("tensorboard/") and "events.out.tfevents" in path]


def test_on_a_standalone_cluster(folder: pathlib.Path, standalone: SparkCluster, muster: Muster) -> None:
    made = Submits(folder, {"spark.executor.memory": "512m"}, {})
    common: list[object] = [
        "--master", standalone.master, "--archives", "Python.tar.gz#Python",
        "--conf", "spark.pyspark.python=./Python/bin/python3",
    ]  # fmt: skip
    out = folder / "out"
    made.submit(*common, "--py-files", "src.zip", "--jars", jar.built(), *generate(f"file://{out}"))
    said = made.submit(*common, "--py-files", f"src.zip,{ALIAS}", *train(str(out)))
    assert "model version=" in said
    check(muster, str(out))


@pytest.fixture
def on_yarn(folder: pathlib.Path, yarn: Yarn, monkeypatch: pytest.MonkeyPatch) -> Submits:
    for name, value in yarn.hdfs.environment.items():
        monkeypatch.setenv(name, value)
    settings = {
        "spark.yarn.jars": f"local:{submits.HOME}/jars/*",
        "spark.executor.memory": "512m",
        "spark.yarn.maxAppAttempts": 1,
    }
    return Submits(folder, settings, {"JAVA_HOME": java_home()})


def test_on_yarn(folder: pathlib.Path, yarn: Yarn, on_yarn: Submits, muster: Muster) -> None:
    """The first program has its driver here, the second one has it in the ApplicationMaster."""
    made = on_yarn
    (folder / "uploaded").mkdir()
    shutil.copy(folder / "Python.tar.gz", folder / "uploaded")
    yarn.hdfs.put(folder / "uploaded", f"{yarn.hdfs.url}{UPLOADED}")
    common: list[object] = [
        "--master", "yarn", "--archives", f"hdfs://{UPLOADED}/Python.tar.gz#Python,data.zip#data",
        "--conf", "spark.pyspark.python=./Python/bin/python3",
    ]  # fmt: skip
    try:
        made.submit(*common, "--deploy-mode", "client", "--num-executors", 1, "--py-files", "./src.zip",
                    "--jars", jar.built(), *generate(UPLOADED))  # fmt: skip
        made.submit(*common, "--deploy-mode", "cluster", "--num-executors", WORKERS,
                    "--py-files", f"./src.zip,{ALIAS}", *train(f"hdfs://{UPLOADED}"))  # fmt: skip
        check(muster, f"{yarn.hdfs.url}{UPLOADED}")
    except AssertionError as error:
        raise AssertionError(f"{error}\n{yarn.logs()}") from None


# What a small machine has less of. The first script runs as it is.
CHANGES = {
    "--executor-memory 8G": "--executor-memory 512m",
    "--num-executors 5": f"--num-executors {WORKERS}",
    "--worker_size 5": f"--worker_size {WORKERS}",
    "--epochs 1000": "--epochs 2",
}


def test_the_articles_own_scripts(
    folder: pathlib.Path, yarn: Yarn, on_yarn: Submits, muster: Muster
) -> None:
    """submit_gen.sh and submit_train.sh, which upload and replace what they say. On HDFS lie, where they look for it,
    a Python.zip in which `tensorflowonspark` is Muster's, and Muster's jar in place of tensorflow-hadoop's."""
    (own,) = (folder / "Python/lib").glob("python*/site-packages")
    shutil.copy(ALIAS, own)
    (folder / "uploaded").mkdir()
    shutil.make_archive(str(folder / "uploaded/Python"), "zip", folder / "Python")
    shutil.copy(jar.built(), folder / "uploaded/tensorflow-hadoop-1.10.0.jar")
    yarn.hdfs.put(folder / "uploaded", f"{yarn.hdfs.url}{UPLOADED}")
    (folder / "src.zip").unlink()
    (folder / "data.zip").unlink()
    try:
        for name, changes in (("submit_gen.sh", {}), ("submit_train.sh", CHANGES)):
            text = (seeds() / name).read_text(encoding="utf-8")
            for before, after in changes.items():
                assert before in text
                text = text.replace(before, after)
            (folder / name).write_text(text, encoding="utf-8")
            on_yarn.run_script(name, yarn.hdfs)
        check(muster, f"{yarn.hdfs.url}{UPLOADED}")
    except AssertionError as error:
        raise AssertionError(f"{error}\n{yarn.logs()}") from None
