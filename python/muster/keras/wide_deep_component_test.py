"""A Keras 2 WideDeepModel of feature columns as a model folder: predictions and further training
agree with Keras."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from testbed import keras_checks
from testbed.muster import Muster

PROGRAM = keras_checks.ROOT / "testbed/programs/keras2_wide_deep.py"
SOURCE = pathlib.Path(os.environ.get("MUSTER_SEEDS", "/nowhere")) / "wide_deep_spark/src"


def python_of(version: str) -> str:
    if version == "2.15":
        return sys.executable
    python = os.environ.get("MUSTER_PYTHON_TENSORFLOW_2_4")
    if not python:
        pytest.skip("needs Python 3.8 (MUSTER_PYTHON_TENSORFLOW_2_4)")
    return python


def run(python: str, *arguments: object, cwd: pathlib.Path) -> str:
    done = subprocess.run([python, PROGRAM, *map(str, arguments)], capture_output=True, text=True,
                          env=keras_checks.environment(), timeout=300, cwd=cwd)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def predict(muster: Muster, folder: pathlib.Path) -> np.ndarray:
    out = folder / "out.jsonl"
    muster.run("predict", folder / "model", "--data", folder / "rows.tfrecord", "--out", out, "--quiet")
    return np.array([json.loads(line)["logistic"][0] for line in out.read_text().splitlines()])


@pytest.mark.parametrize("version", ["2.4", "2.15"])
@pytest.mark.parametrize("model", ["article", "all layers"])
def test_it_predicts_and_trains_as_keras(
    model: str, version: str, muster: Muster, tmp_path: pathlib.Path
) -> None:
    """Including the state of both optimizers."""
    if model == "article" and not SOURCE.is_dir():
        pytest.skip("needs the articles' programs (MUSTER_SEEDS)")
    run(python_of(version), "convert", tmp_path, *([SOURCE] if model == "article" else []), cwd=tmp_path)
    before, after = (np.load(tmp_path / f"{when}.npy").reshape(-1) for when in ("before", "after"))
    assert np.abs(before - after).max() > 1e-3, "the further training changes something"
    np.testing.assert_allclose(predict(muster, tmp_path), before, atol=2e-6)
    folder = tmp_path / "model"
    said = muster.event("trained", "train", folder / "model.yaml", folder, "--train",
                        tmp_path / "rows.tfrecord", "--no-shuffle")  # fmt: skip
    assert (said["first_step"], said["step"]) == (3, 6)
    np.testing.assert_allclose(predict(muster, tmp_path), after, atol=5e-6)


def test_what_does_not_fit_is_named(tmp_path: pathlib.Path) -> None:
    said = json.loads(run(sys.executable, "refuse", cwd=tmp_path).splitlines()[-1])
    for name, words in {
        "another model": "a tf.keras.experimental.WideDeepModel is wanted, not a Sequential",
        "not compiled": "the model is not compiled",
        "embedding": "the linear model's column 'Embarked_embedding'",
        "deep linear": "a model file's linear part is one Dense layer",
        "layer": "(LayerNormalization): it does not fit",
        "momentum": "this one has momentum 0.9",
        "regularizer": "a model file cannot say its kernel_regularizer; l1 and l2 of `dnn`",
        "bias": "it has no bias",
        "last": "the last layer has an activation",
        "mixed": "the dnn model's hidden layers differ in activation",
        "activation": "activation 'elu' is none of",
        "loss": "loss hinge with activation sigmoid and 1 outputs",
        "no activation": "loss binary_crossentropy with activation linear and 1 outputs",
        "optimizer": "optimizer Nadam: Muster has Ftrl, Adagrad, Adam, RMSprop, SGD",
        "initializer": "Muster has no initializer",
    }.items():
        assert words in said[name], (name, said[name])
    assert not list(tmp_path.iterdir())
