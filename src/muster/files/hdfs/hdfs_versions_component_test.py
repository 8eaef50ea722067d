"""The same on another version of Hadoop, and by HttpFS."""

from __future__ import annotations

import os
import pathlib
import subprocess
from collections.abc import Iterator

import pytest

from testbed.daemons import run
from testbed.hadoop.cluster import Hdfs
from testbed.hadoop.httpfs import HttpFs
from testbed.muster import Muster

MODEL = """
inputs: {x: float, y: int}
label: y
columns: {x: {numeric: x}}
model: {type: dnn, dnn: {columns: [x], hidden_units: [4]}}
train: {batch_size: 4}
"""


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    yield from run(Hdfs(pathlib.Path(tmp_path_factory.mktemp("older")), version="3.3.6"))


@pytest.fixture(scope="module")
def httpfs(hdfs: Hdfs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpFs]:
    yield from run(HttpFs(pathlib.Path(tmp_path_factory.mktemp("httpfs")), hdfs))


@pytest.fixture(params=["3.3", "httpfs"])
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    system = request.getfixturevalue("older" if request.param == "3.3" else "httpfs")
    monkeypatch.setenv("HADOOP_USER_NAME", "tester")
    if isinstance(system, Hdfs):
        monkeypatch.setenv("HADOOP_CONF_DIR", system.environment["HADOOP_CONF_DIR"])
    return f"{system.url}/{request.node.originalname}"


def run_probe(name: str, place: str, muster: Muster) -> None:
    program = pathlib.Path(muster.binary).parent / f"muster-hdfs-{name}"
    environment = {**os.environ, "MUSTER_HDFS_FOLDER": place}
    done = subprocess.run([str(program)], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]


def test_the_file_system_conforms(place: str, muster: Muster) -> None:
    run_probe("conformance", place, muster)


@pytest.mark.parametrize("place", ["httpfs"], indirect=True)
def test_a_model_folder(place: str, muster: Muster) -> None:
    run_probe("model-folder", place, muster)


def test_a_training(place: str, muster: Muster, tmp_path: pathlib.Path) -> None:
    (tmp_path / "model.yaml").write_text(MODEL)
    (tmp_path / "rows.csv").write_text("x,y\n" + "1,1\n0,0\n" * 200_000)
    muster.run("fs", "mkdir", place)
    muster.run("fs", "put", tmp_path / "rows.csv", place)
    for model, data in ((f"{place}/model", f"{place}/rows.csv"), (tmp_path / "model", tmp_path / "rows.csv")):
        muster.run("train", tmp_path / "model.yaml", model, "--train", data, "--max-steps", 500)
    muster.run("fs", "get", f"{place}/model", tmp_path / "back")
    name = "model.ckpt-500.data-00000-of-00001"
    assert (tmp_path / "back" / name).read_bytes() == (tmp_path / "model" / name).read_bytes()
