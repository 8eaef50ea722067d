"""`muster train EXPORTED`: what it makes of a Keras model is what Keras makes of it."""

from __future__ import annotations

import json
import os
import pathlib

import numpy as np
import pytest

from testbed import keras_checks
from testbed.muster import Muster

BATCH = 40
OLDEST = "MUSTER_PYTHON_TENSORFLOW_OLDEST"
OPTIMIZERS = ["adagrad", "adam", "ftrl", "momentum", "rmsprop"]
# Those that are exported as functions, and a rule whose learning rate is one.
FUNCTIONS = ["adadelta", "adamax", "amsgrad", "constrained", "lion", "nadam", "own", "own_schedule"]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return keras_checks.make_trainings(
        tmp_path_factory.mktemp("keras"), *OPTIMIZERS, *FUNCTIONS, "words", "pictures"
    )


@pytest.fixture(scope="module")
def models_of_the_oldest(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return keras_checks.make_trainings(tmp_path_factory.mktemp("oldest"), "adagrad", "pictures", by=OLDEST)  # fmt: skip


@pytest.fixture
def muster(monkeypatch: pytest.MonkeyPatch) -> Muster:
    monkeypatch.setenv("MUSTER_TENSORFLOW", os.environ["MUSTER_PYTHON_TENSORFLOW"])
    return Muster()


def train(muster: Muster, model: pathlib.Path, model_dir: pathlib.Path, *flags: object) -> None:
    muster.run("train", model / "export", "--train", model / "data.tfrecord", "--model-dir",
               model_dir, "--batch-size", BATCH, "--no-shuffle", "--quiet", *flags)  # fmt: skip


def weights(model_dir: pathlib.Path) -> dict[str, np.ndarray]:
    import tensorflow as tf

    reader = tf.train.load_checkpoint(str(model_dir))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def compare(trained: dict[str, np.ndarray], keras: dict[str, np.ndarray], within: float) -> None:
    compared = 0
    for name, wanted in keras.items():
        if name not in trained:
            continue
        assert trained[name].shape == wanted.shape, name
        difference = np.abs(trained[name] - wanted).max()
        assert difference <= within * max(1.0, np.abs(wanted).max()), f"{name}: {difference}"
        compared += 1
    assert compared >= 4


@pytest.mark.parametrize("optimizer", [*OPTIMIZERS, *FUNCTIONS])
def test_a_hundred_steps_are_those_of_train_on_batch(
    optimizer: str, models: pathlib.Path, muster: Muster, tmp_path: pathlib.Path
) -> None:
    train(muster, models / optimizer, tmp_path / "m")
    compare(weights(tmp_path / "m"), dict(np.load(models / optimizer / "trained.npz")), 1e-6)


def test_what_a_function_knows_is_in_the_checkpoint(
    models: pathlib.Path, muster: Muster, tmp_path: pathlib.Path
) -> None:
    """Of any type: `own` counts in int64. A training that goes on goes on from there."""
    train(muster, models / "own", tmp_path / "m", "--max-steps", 60)
    manifest = json.loads((models / "own" / "export" / "model.json").read_text())
    [count] = [slot["name"] for slot in manifest["optimizer"]["slots"] if slot["dtype"] == "int64"]
    assert weights(tmp_path / "m")[f"training/Counting/{count}"] == 120
    train(muster, models / "own", tmp_path / "m")
    train(muster, models / "own", tmp_path / "whole")
    assert weights(tmp_path / "whole")[f"training/Counting/{count}"] == 200
    data = "model.ckpt-100.data-00000-of-00001"
    assert (tmp_path / "m" / data).read_bytes() == (tmp_path / "whole" / data).read_bytes()


def test_a_function_is_inspected(models: pathlib.Path, muster: Muster) -> None:
    assert "optimizer Nadam, a function with 29 slots" in muster.run(
        "inspect", models / "nadam" / "export"
    )


@pytest.mark.parametrize("name", ["words", "pictures"])
def test_evaluation_and_predictions_are_those_of_keras(
    name: str, models: pathlib.Path, muster: Muster, tmp_path: pathlib.Path
) -> None:
    """Of lists of any length and two inputs; of images that TensorFlow decodes."""
    model, data = models / name, models / name / "data.tfrecord"
    train(muster, model, tmp_path / "m")
    compare(weights(tmp_path / "m"), dict(np.load(model / "trained.npz")), 1e-5)
    found = muster.event("evaluated", "evaluate", "--model-dir", tmp_path / "m", "--data", data)
    wanted = json.loads((model / "evaluated.json").read_text())
    assert found["loss"] == pytest.approx(wanted["loss"], abs=1e-5)
    assert found["accuracy"] == pytest.approx(wanted["accuracy"], abs=1e-6)
    out = tmp_path / "p.jsonl"
    muster.run("predict", "--model-dir", tmp_path / "m", "--data", data, "--out", out, "--quiet")
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    key, output = rows[0]  # in this order
    keys = {"id": lambda row: 10**12 + row, "name": lambda row: f"row {row}"}
    assert [row[key] for row in rows] == [keys[key](row) for row in range(len(rows))]
    predicted = np.array([row[output] for row in rows])
    np.testing.assert_allclose(predicted, np.load(model / "predicted.npy"), atol=1e-5)


@pytest.mark.parametrize("exported_by", ["models", "models_of_the_oldest"])
@pytest.mark.parametrize("name", ["adagrad", "pictures"])
def test_the_oldest_tensorflow_trains_as_keras(
    name: str, exported_by: str, request: pytest.FixtureRequest, muster: Muster, tmp_path: pathlib.Path
) -> None:
    """What it exported itself, and what the TensorFlow of today did."""
    model = request.getfixturevalue(exported_by) / name
    train(muster, model, tmp_path / "m", "--tensorflow", os.environ[OLDEST])
    within = 1e-6 if name == "adagrad" else 1e-5
    compare(weights(tmp_path / "m"), dict(np.load(model / "trained.npz")), within)
