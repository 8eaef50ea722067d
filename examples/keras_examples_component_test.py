"""The examples of Keras models are exported, trained, evaluated and served as their READMEs say."""

from __future__ import annotations

import json
import os
import pathlib
import re
import struct
import subprocess
from typing import Any

import numpy as np
import pytest

from testbed import keras_checks
from testbed.muster import Muster
from testbed.tensorboard import TensorBoard, serve

HERE = pathlib.Path(__file__).parent
# By program: how many files it writes, those to train on and to test, and flags.
RECORDS = {
    "keras_wide_deep/wide_deep.py": (5, "data/part-[0-3]", "data/part-4", ("--ps", "2")),
    "text_classifier/text_classifier.py": (4, "data/train/part-*", "data/test/part-*", ()),
}


def run_example(program: str, place: pathlib.Path, *arguments: object) -> dict[str, Any]:
    """Runs it in `place`; the manifest of what it exported."""
    done = subprocess.run(
        [os.environ["MUSTER_PYTHON_TENSORFLOW"], HERE / program, "exported", *map(str, arguments)],
        cwd=place, env=keras_checks.environment(), capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    manifest: dict[str, Any] = json.loads((place / "exported/model.json").read_text())
    return manifest


def features(path: pathlib.Path) -> dict[str, str]:
    """The kinds of the first record's features."""
    import tensorflow as tf

    record = next(iter(tf.data.TFRecordDataset(str(path)))).numpy()
    found = tf.train.Example.FromString(record).features.feature
    return {name: feature.WhichOneof("kind") for name, feature in found.items()}


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> Muster:
    """Finds TensorFlow, and keeps its jobs in the test's folder."""
    monkeypatch.setenv("MUSTER_TENSORFLOW", os.environ["MUSTER_PYTHON_TENSORFLOW"])
    monkeypatch.setenv("MUSTER_HOME", str(tmp_path / "home"))
    return Muster()


def use(job: Muster, place: pathlib.Path, train: str, test: str, *flags: object) -> dict[str, Any]:
    """The commands of a README; what `evaluate` said."""
    model = place / "model"
    job.run("train", place / "exported", "--train", place / train, "--model-dir", model, "--workers",
            "3", "--max-steps", "12", "--batch-size", "16", *flags)  # fmt: skip
    data = ("--model-dir", model, "--data", place / test)
    said = job.event("evaluated", "evaluate", *data)
    job.run("predict", *data, "--out", place / "predictions.csv", "--quiet")
    predicted = np.loadtxt(place / "predictions.csv", delimiter=",", skiprows=1)
    assert len(predicted) > 10 and (predicted[:, 1:] >= 0).all()
    job.run("export", "--model-dir", model, "--out", place / "served/1")
    assert (place / "served/1/saved_model.pb").is_file()
    assert said["global_step"] >= 12 and np.isfinite(said["loss"])
    return said


def write_digits(folder: pathlib.Path, rows: int) -> None:
    random = np.random.default_rng(1)
    images = random.integers(0, 256, (rows, 28, 28)).astype(np.uint8)
    labels = random.integers(0, 10, rows).astype(np.uint8)
    head = struct.pack(">4B3I", 0, 0, 8, 3, rows, 28, 28)
    (folder / "images").write_bytes(head + images.tobytes())
    (folder / "labels").write_bytes(struct.pack(">4BI", 0, 0, 8, 1, rows) + labels.tobytes())


def test_mnist(job: Muster, tmp_path: pathlib.Path) -> None:
    manifest = run_example("mnist/mnist.py", tmp_path)
    (image,) = manifest["inputs"]
    assert (image["feature"], image["dtype"], image["decode"]) == ("image", "uint8", "raw")
    kinds = {variable["kind"] for variable in manifest["variables"]}
    assert kinds == {"dense", "state", "seed"}
    write_digits(tmp_path, 200)
    job.run("records", "from-idx", tmp_path / "images", tmp_path / "labels", "--out",
            tmp_path / "data", "--shards", "4")  # fmt: skip
    assert "accuracy" in use(job, tmp_path, "data/part-0000[0-2]-*", "data/part-00003-*",
                             "--epochs", "10")  # fmt: skip
    check_tensorboard(tmp_path / "model")


def check_tensorboard(model_dir: pathlib.Path) -> None:
    """Its scalars by Keras's names, and the graph: the model's layers within each function."""
    from google.protobuf import text_format
    from tensorboard.compat.proto import graph_pb2

    with serve(model_dir) as board:
        board.wait(lambda: {"accuracy", "loss"} <= set(scalars(board, "eval")))
        board.wait(lambda: "loss" in scalars(board, "."))
        assert board.get("plugin/graphs/info")["."]["run_graph"] is True
        text = board.get("plugin/graphs/graph", run=".", conceptual="false")
    graph = text_format.Parse(text, graph_pb2.GraphDef())
    names = {node.name for node in graph.node}
    for node in graph.node:
        assert all(name.lstrip("^").split(":")[0] in names for name in node.input), node.name
    for function in ("step", "predict", "evaluate"):
        layers = {name.split("/")[2] for name in names if name.startswith(f"{function}/mnist")}
        found = {re.sub(r"(_\d+)+$", "", layer) for layer in layers}
        assert {"rescaling", "conv2d", "batch_normalization", "re_lu", "max_pooling2d", "flatten",
                "dense", "digit"} <= found  # fmt: skip
        assert ("dropout" in found) == (function == "step")


def scalars(board: TensorBoard, run: str) -> list[str]:
    return list(board.get("plugin/scalars/tags").get(run, {}))


@pytest.mark.parametrize("program", RECORDS)
def test_examples_that_write_their_records(
    program: str, job: Muster, tmp_path: pathlib.Path
) -> None:
    count, train, test, flags = RECORDS[program]
    manifest = run_example(program, tmp_path, "data")
    parts = sorted((tmp_path / "data").rglob("part-*"))
    assert len(parts) == count
    wanted = {port["feature"] for port in [*manifest["inputs"], *manifest["labels"]]}
    for part in parts:
        assert set(features(part)) == wanted
    assert {"table", "dense"} <= {variable["kind"] for variable in manifest["variables"]}
    said = use(job, tmp_path, train, test, *flags)
    assert {metric["name"] for metric in manifest["metrics"]} <= set(said)


def test_the_census_table(real_data, tmp_path: pathlib.Path) -> None:
    run_example("keras_wide_deep/wide_deep.py", tmp_path, "data", real_data("adult/adult.csv"))
    kinds = features(tmp_path / "data/part-0")
    assert kinds["education-num"] == "float_list" and kinds["relationship"] == "bytes_list"


def test_a_program_fits_a_screen_or_two() -> None:
    for program in ("mnist/mnist.py", *RECORDS):
        path = HERE / program
        assert len(path.read_text().splitlines()) < 80, program
        assert "muster train exported --train" in path.with_name("README.md").read_text()
