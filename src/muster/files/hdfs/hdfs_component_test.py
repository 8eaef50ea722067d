"""Muster's verbs on a real HDFS: the same bytes as on a local disk, also where its servers fail."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import time
import urllib.error
from typing import Iterator

import pytest

from testbed.click_training import MODEL
from testbed.hadoop.cluster import Hdfs
from testbed.muster import Muster

STEPS, DATA = 4000, "data-00000-of-00001"
DEADLINE = 300  # of a training that waits for servers


@pytest.fixture(scope="module")
def local(muster: Muster, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A folder with the model file, the data, and what a training from a local disk ends with."""
    folder = pathlib.Path(tmp_path_factory.mktemp("local"))
    (folder / "model.yaml").write_text(MODEL)
    muster.run("sample", "clicks", "--rows", 40_000, "--out", folder / "train.csv")
    muster.run("records", "from-csv", folder / "train.csv", "--spec", folder / "model.yaml",
               "--out", folder / "train", "--shards", 4)  # fmt: skip
    muster.run(*training(folder, f"{folder}/train/*", str(folder / "model")))
    return folder


def training(local: pathlib.Path, data: str, model: str) -> list[object]:
    return ["train", local / "model.yaml", "--train", data, "--model-dir", model, "--epochs", 5,
            "--max-steps", STEPS, "--save-steps", 500]  # fmt: skip


def read(hdfs: Hdfs, url: str) -> bytes:
    return hdfs.call("GET", url.removeprefix(hdfs.url), "OPEN", user="tester")


def assert_same_weights(hdfs: Hdfs, local: pathlib.Path, model: str) -> None:
    name = f"model.ckpt-{STEPS}"
    for suffix in (DATA, "index"):
        ours = read(hdfs, f"{model}/{name}.{suffix}")
        assert ours == (local / "model" / f"{name}.{suffix}").read_bytes(), suffix


@pytest.fixture
def records(hdfs: Hdfs, folder: str, local: pathlib.Path, muster: Muster) -> str:
    """The pattern of the data on HDFS."""
    muster.run("records", "from-csv", local / "train.csv", "--spec", local / "model.yaml",
               "--out", f"{folder}/train", "--shards", 4)  # fmt: skip
    return f"{folder}/train/*"


@pytest.fixture
def running(
    hdfs: Hdfs, folder: str, records: str, local: pathlib.Path, muster: Muster
) -> Iterator[subprocess.Popen[str]]:
    """A training from and to HDFS, after its first checkpoint but the one of step 0."""
    started = subprocess.Popen(
        [muster.binary, *map(str, training(local, records, f"{folder}/model"))],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    end = time.monotonic() + 60
    while time.monotonic() < end and started.poll() is None:
        try:
            if b"ckpt-0" not in read(hdfs, f"{folder}/model/checkpoint").split(b"\n")[0]:
                break
        except urllib.error.HTTPError:
            pass
        time.sleep(0.02)
    assert started.poll() is None, started.stdout and started.stdout.read()
    yield started
    if started.poll() is None:
        started.kill()
    started.wait()


@pytest.mark.parametrize("name", ["conformance", "model-folder"])
def test_the_file_system_and_a_model_folder(name: str, folder: str, muster: Muster) -> None:
    program = pathlib.Path(muster.binary).parent / f"muster-hdfs-{name}"
    done = subprocess.run([str(program)], env={**os.environ, "MUSTER_HDFS_FOLDER": folder},
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]


def test_everything_from_and_to_hdfs(hdfs, folder, records, local, muster) -> None:
    model = f"{folder}/model"
    for name in (b"part-00000-of-00004.tfrecord", b"part-00003-of-00004.tfrecord"):
        assert name in hdfs.call("GET", f"{folder}/train".removeprefix(hdfs.url), "LISTSTATUS")
    muster.run(*training(local, records, model))
    assert_same_weights(hdfs, local, model)
    here = muster.event("evaluated", "evaluate", local / "model", "--data", f"{local}/train/*")
    there = muster.event("evaluated", "evaluate", model, "--data", records)
    assert there["auc"] == here["auc"]
    muster.run("predict", local / "model", "--data", f"{local}/train/*", "--out", local / "p.csv")
    muster.run("predict", model, "--data", records, "--out", f"{folder}/p.csv")
    assert read(hdfs, f"{folder}/p.csv") == (local / "p.csv").read_bytes()
    muster.run("export", model, "--out", f"{folder}/served/1")
    assert len(read(hdfs, f"{folder}/served/1/saved_model.pb")) > 1000
    assert "linear_model" in muster.run("inspect", model)


def test_replicas_read_and_write_hdfs(hdfs, folder, records, local, muster, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("MUSTER_HOME", str(tmp_path / "home"))
    model = f"{folder}/model"
    muster.run(*training(local, records, model), "--workers", 2)
    found = muster.event("evaluated", "evaluate", model, "--data", records)
    assert found["global_step"] == STEPS / 2  # each step has a batch of both


def test_a_second_training_of_a_folder_is_refused(hdfs, folder, records, local, muster, running) -> None:
    said = muster.fail(*training(local, records, f"{folder}/model"))
    assert f"process {running.pid}" in said and "stop that one first" in said
    output, _ = running.communicate(timeout=DEADLINE)
    assert running.returncode == 0, output
    assert_same_weights(hdfs, local, f"{folder}/model")


def test_a_killed_training_continues(hdfs, folder, records, local, muster, running) -> None:
    running.send_signal(signal.SIGKILL)
    running.wait()
    continued = muster.run(*training(local, records, f"{folder}/model"))
    assert "repeated" in continued
    assert_same_weights(hdfs, local, f"{folder}/model")


def test_a_data_node_is_killed_while_it_is_read(hdfs, folder, local, running) -> None:
    hdfs.kill("data-0")
    try:
        output, _ = running.communicate(timeout=DEADLINE)
        assert running.returncode == 0, output
        assert_same_weights(hdfs, local, f"{folder}/model")
    finally:
        hdfs.start_data_node(0)
        hdfs.wait_until_usable()


def test_the_name_node_is_killed_and_comes_back(hdfs, folder, local, running) -> None:
    hdfs.kill("name")
    time.sleep(2)
    hdfs.start_name_node()
    output, _ = running.communicate(timeout=DEADLINE)
    assert running.returncode == 0, output
    hdfs.wait_until_usable()
    assert_same_weights(hdfs, local, f"{folder}/model")


def test_what_is_wrong_is_one_line(hdfs, folder, local, muster, monkeypatch) -> None:
    def fails(path: str) -> str:
        said = muster.fail("evaluate", local / "model", "--data", path)
        assert len(said.strip().splitlines()) == 1, said
        return said

    assert "no file matches" in fails(f"{folder}/nothing/*")
    assert "Connection refused" in fails("hdfs://127.0.0.1:1/x")
    assert "no file matches" in fails("webhdfs:///x"), "it is on the default file system"
    assert "hdfs://NAMENODE:8020/PATH" in fails("s3://bucket/x")
    hdfs.call("PUT", "/private", "MKDIRS")
    hdfs.call("PUT", "/private", "SETPERMISSION", permission="700")
    assert "Permission denied: user=tester" in fails("hdfs:///private/x.csv")
    monkeypatch.setenv("HADOOP_CONF_DIR", str(local))
    assert "fs.defaultFS" in fails("hdfs:///x")


def test_a_quota_is_named(hdfs, folder, local, muster) -> None:
    path = f"{folder}/small".removeprefix(hdfs.url)
    hdfs.call("PUT", path, "MKDIRS", user="tester")
    hdfs.call("PUT", path, "SETQUOTA", namespacequota="2")
    said = muster.fail("train", local / "model.yaml", "--train", local / "train.csv",
                       "--model-dir", f"{folder}/small/model")  # fmt: skip
    assert "NameSpace quota" in said and "quota=2" in said
