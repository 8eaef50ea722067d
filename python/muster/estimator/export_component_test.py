"""What a program can choose about its exports: custom receivers, extra assets, text instead of
bytes."""

from __future__ import annotations

import logging
import pathlib

import pytest
import tensorflow as tf

from muster import estimator, feature_column

v1 = tf.compat.v1
NAMES = {"x": tf.io.FixedLenFeature([1], tf.float32), "job": tf.io.VarLenFeature(tf.string)}


def batches():
    for _ in range(5):
        yield {"x": [0.5, -0.5, 1.0], "job": ["cook", "smith", "cook"]}, [1, 0, 1]


def make(folder, config=None):
    job = feature_column.categorical_column_with_hash_bucket("job", 10)
    columns = [feature_column.numeric_column("x"), job]
    return estimator.LinearClassifier(columns, folder, config=config)


def parsing():
    examples = v1.placeholder(tf.string, [None], "examples")
    features = v1.parse_example(examples, NAMES)
    return tf.estimator.export.ServingInputReceiver(features, {"examples": examples})


def raw():
    features = {
        "x": v1.placeholder(tf.float32, [None, 1]),
        "job": tf.identity(v1.placeholder(tf.string, [None])),
    }
    return tf.estimator.export.ServingInputReceiver(features, features)


def expanded(axis=-1):
    features = raw().features
    features["x"] = v1.placeholder(tf.float32, [None])
    made = {name: tf.expand_dims(tensor, axis) for name, tensor in features.items()}
    return tf.estimator.export.ServingInputReceiver(made, features)


def computed():
    job = v1.placeholder(tf.string, [None])
    features = {"x": v1.placeholder(tf.float32, [None, 1]), "job": tf.strings.lower(job)}
    return tf.estimator.export.ServingInputReceiver(features, {"job": job, "x": features["x"]})


def of_other_names():
    features = raw().features
    return tf.estimator.export.ServingInputReceiver(
        features, {f"input_{name}": tensor for name, tensor in features.items()}
    )


RECEIVERS = {
    "parsing": parsing,
    "raw": raw,
    "expanded": expanded,
    "TensorFlow's parsing": tf.estimator.export.build_parsing_serving_input_receiver_fn(NAMES),
    "TensorFlow's raw": lambda: tf.estimator.export.build_raw_serving_input_receiver_fn(
        raw().features
    )(),
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> estimator.Estimator:
    return make(tmp_path_factory.mktemp("model")).train(batches)


@pytest.mark.parametrize("name", RECEIVERS)
def test_a_receiver_of_the_program(name, trained, tmp_path) -> None:
    path = pathlib.Path(trained.export_saved_model(tmp_path, RECEIVERS[name]).decode())
    signatures = tf.saved_model.load(str(path)).signatures
    inputs = signatures["serving_default"].structured_input_signature[1]
    assert inputs["x"].shape.as_list() == [None]


def test_a_receiver_that_computes_or_renames(trained, tmp_path, caplog) -> None:
    with pytest.raises(ValueError, match="feature 'job' is computed .by StringLower"):
        trained.export_saved_model(tmp_path, computed)
    with pytest.raises(ValueError, match="feature 'x' is computed .by ExpandDims"):
        trained.export_saved_model(tmp_path, lambda: expanded(axis=0))
    with pytest.raises(ValueError, match="must return a ServingInputReceiver"):
        trained.export_saved_model(tmp_path, lambda: {"x": 1})
    with caplog.at_level(logging.WARNING, "muster"):
        trained.export_saved_model(tmp_path, of_other_names)
    assert "called as the features are, ['job', 'x'], not ['input_job', 'input_x']" in caplog.text


def test_assets_and_text_of_an_export(trained, tmp_path) -> None:
    words = tmp_path / "words.txt"
    words.write_text("cook\n")
    out = trained.export_saved_model(tmp_path / "out", raw, {"sub/words.txt": str(words)}, True)
    path = pathlib.Path(out.decode())
    assert (path / "assets.extra/sub/words.txt").read_text() == "cook\n"
    assert (path / "saved_model.pbtxt").is_file() and not (path / "saved_model.pb").exists()
    assert "serving_default" in tf.saved_model.load(str(path)).signatures


def test_assets_and_text_of_exporters(tmp_path) -> None:
    words = tmp_path / "words.txt"
    words.write_text("cook\n")
    config = estimator.RunConfig(save_checkpoints_steps=2)
    made = make(tmp_path / "model", config)
    extra = {"assets_extra": {"words.txt": str(words)}, "as_text": True}
    exporters = [
        estimator.FinalExporter("last", raw, **extra),
        estimator.LatestExporter("all", raw, **extra),
        estimator.BestExporter("best", raw),
    ]
    spec = estimator.EvalSpec(batches, None, exporters=exporters, start_delay_secs=0, throttle_secs=0)
    estimator.train_and_evaluate(made, estimator.TrainSpec(batches), spec)
    for name, text in (("last", True), ("all", True), ("best", False)):
        for path in (tmp_path / "model/export" / name).iterdir():
            assert (path / "assets.extra/words.txt").is_file() is text
            assert (path / "saved_model.pbtxt").is_file() is text
            assert (path / "saved_model.pb").is_file() is not text
