"""`muster train EXPORTED`: what it makes of a Keras model is what Keras makes of it."""

from __future__ import annotations

import json
import os
import pathlib
import re

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
        tmp_path_factory.mktemp("keras"), *OPTIMIZERS, *FUNCTIONS, "words", "pictures",
        "recommender", "autoencoder",
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


def test_a_model_folder_has_the_inputs_of_its_export(
    models: pathlib.Path, muster: Muster, tmp_path: pathlib.Path
) -> None:
    train(muster, models / "adagrad", tmp_path / "m", "--max-steps", 1)
    inputs = muster.json("inspect", tmp_path / "m", "--inputs")
    assert inputs == muster.json("inspect", models / "adagrad" / "export", "--inputs") and inputs[0]["inputs"]


def test_what_a_function_knows_is_in_the_checkpoint(
    models: pathlib.Path, muster: Muster, tmp_path: pathlib.Path
) -> None:
    """Of any type: `own` counts in int64. A training that continues does so from there."""
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


def test_parts_of_processes_are_what_one_writes(
    models: pathlib.Path, muster: Muster, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUSTER_HOME", str(tmp_path / "home"))
    data = models / "words" / "data.tfrecord"
    train(muster, models / "words", tmp_path / "m")
    of_model = ("--model-dir", tmp_path / "m", "--data", data, "--quiet")
    one = muster.event("evaluated", "evaluate", *of_model)
    two = muster.event("evaluated", "evaluate", *of_model, "--workers", 2)
    assert two == pytest.approx(one, rel=1e-12)
    predict = ("predict", *of_model, "--format", "jsonl", "--out")
    muster.run(*predict, tmp_path / "one")
    muster.run(*predict, tmp_path / "two", "--workers", 2)
    parts = sorted((tmp_path / "two").glob("part-*.jsonl"))
    assert len(parts) == 2
    rows, wanted = (
        [list(json.loads(line).values()) for file in files for line in file.read_text().splitlines()]
        for files in (parts, [tmp_path / "one"])
    )
    assert [key for key, _ in rows] == [key for key, _ in wanted] == [10**12 + i for i in range(1000)]
    # TensorFlow's last digits depend on which rows share a batch, and the cut changes that.
    np.testing.assert_allclose([row for _, row in rows], [row for _, row in wanted], rtol=1e-6)


def test_a_recommender_is_trained_evaluated_and_predicts_as_with_keras(
    models: pathlib.Path, muster: Muster, tmp_path: pathlib.Path
) -> None:
    """Its loss depends on the rows of a batch, so that it is evaluated by those of the training."""
    model, data = models / "recommender", models / "recommender" / "data.tfrecord"
    said = muster.event("evaluated", "train", model / "export", "--train", data, "--eval", data,
                        "--model-dir", tmp_path / "m", "--batch-size", BATCH, "--no-shuffle")  # fmt: skip
    wanted = dict(np.load(model / "trained.npz"))
    trained = weights(tmp_path / "m")
    for name, value in wanted.items():
        np.testing.assert_allclose(trained[name], value, atol=1e-5)
    loss = json.loads((model / "evaluated.json").read_text())["loss"]
    found = muster.event("evaluated", "evaluate", "--model-dir", tmp_path / "m", "--data", data)
    assert [found["loss"], said["loss"]] == pytest.approx([loss, loss], abs=1e-4)
    out = tmp_path / "p.jsonl"
    muster.run("predict", "--model-dir", tmp_path / "m", "--data", data, "--out", out, "--quiet")
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    predicted = np.load(model / "predicted.npz")
    np.testing.assert_allclose([row["query"] for row in rows], predicted["query"], atol=1e-4)
    best = np.array([row["best"] for row in rows]).reshape(-1)
    assert np.mean(best == predicted["best"]) > 0.99


def test_an_autoencoder_needs_no_label(
    models: pathlib.Path, muster: Muster, tmp_path: pathlib.Path
) -> None:
    """Its loss is what layers and regularizers add."""
    model, data = models / "autoencoder", models / "autoencoder" / "data.tfrecord"
    train(muster, model, tmp_path / "m")
    compare(weights(tmp_path / "m"), dict(np.load(model / "trained.npz")), 1e-5)
    found = muster.event("evaluated", "evaluate", "--model-dir", tmp_path / "m", "--data", data)
    wanted = json.loads((model / "evaluated.json").read_text())
    assert found["loss"] == pytest.approx(wanted["loss"], abs=1e-5) and found["loss"] > 0.01


def test_what_its_layers_add_chooses_the_best_and_is_told(
    models: pathlib.Path, muster: Muster, tmp_path: pathlib.Path
) -> None:
    """Of a model without another loss: each evaluation says it, and the best one is what is kept."""
    model, data = models / "autoencoder", models / "autoencoder" / "data.tfrecord"
    flags = ["train", model / "export", "--train", data, "--eval", data, "--batch-size", BATCH,
             "--save-steps", 5, "--eval-throttle-secs", 0, "--eval-start-delay-secs", 0,
             "--exporter", "best", "--early-stop", "loss:lower:1000", "--model-dir"]  # fmt: skip
    said = muster.run(*flags, tmp_path / "m", "--json")
    events = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    losses = [event["loss"] for event in events if event["event"] == "evaluated"]
    assert losses and min(losses) > 0.01
    assert [event for event in events if event["event"] == "exported"], "one is the best"
    ended = [event for event in events if event["event"] == "trained"]
    assert ended and ended[-1]["step"] < 25, "its loss is under 1,000 at the first evaluation"
    told = muster.call(*flags, tmp_path / "again")
    assert re.search(r"Evaluated step \d+: loss \d+\.\d{4}\n", told.stderr), told.stderr


def test_the_folder_has_the_format_of_its_newest_training(
    models: pathlib.Path, muster: Muster, tmp_path: pathlib.Path
) -> None:
    """So that evaluate and predict need no flags for the same kind of file."""
    import tensorflow as tf

    rows = []
    for record in tf.data.TFRecordDataset(str(models / "adagrad" / "data.tfrecord")).take(50):
        features = tf.train.Example.FromString(record.numpy()).features.feature
        lists = {name: list(getattr(f, f.WhichOneof("kind")).value) for name, f in features.items()}
        rows.append({name: "|".join(map(str, values)) for name, values in sorted(lists.items())})
    data = tmp_path / "part-00000"
    data.write_text("".join(";".join(row.values()) + "\n" for row in rows))
    flags = ("--delimiter", ";", "--no-header", "--columns", ",".join(rows[0]))
    run = ("train", models / "adagrad" / "export", "--train", data, "--model-dir", tmp_path / "m",
           "--quiet")  # fmt: skip
    muster.run(*run, *flags)
    muster.run("evaluate", tmp_path / "m", "--data", data, "--quiet")
    muster.run("predict", tmp_path / "m", "--data", data, "--out", tmp_path / "p.jsonl", "--quiet")
    assert len((tmp_path / "p.jsonl").read_text().splitlines()) == 50
    other = tmp_path / "rows.csv"
    other.write_text("".join(",".join(row) + "\n" for row in [[*rows[0]], *(r.values() for r in rows)]))
    muster.run("train", models / "adagrad" / "export", "--train", other, "--model-dir", tmp_path / "m",
               "--epochs", 2, "--fresh-data", "--quiet")  # fmt: skip
    muster.run("evaluate", tmp_path / "m", "--data", other, "--quiet")


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
