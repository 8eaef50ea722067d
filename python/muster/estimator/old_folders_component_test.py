"""Muster evaluates and trains on folders that tf.estimator trained, and predicts from them."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import muster.tensorflow as ours
import muster.tensorflow.compat.v1 as ours_1
from muster import MusterError

X = np.linspace(-1, 1, 64).astype(np.float32)
WORDS = np.array([b"a", b"b"] * 32)


def input_fn():
    features = {"x": X, "w": WORDS, "weight": np.abs(X)}
    return tf.data.Dataset.from_tensor_slices((features, (X > 0).astype(np.int64))).batch(8)


def make(api, folder, units=4):
    fc = api.feature_column
    words = fc.categorical_column_with_vocabulary_list("w", ["a", "b", "c"])
    return api.estimator.DNNLinearCombinedClassifier(
        str(folder), linear_feature_columns=[fc.numeric_column("x"), words],
        dnn_feature_columns=[fc.numeric_column("x"), fc.embedding_column(words, 3)],
        dnn_hidden_units=[units], weight_column="weight",
    )  # fmt: skip


@pytest.mark.parametrize("theirs, mine", [(tf.compat.v1, ours_1), (tf, ours)])
def test_an_old_folder(theirs, mine, tmp_path) -> None:
    trained = make(theirs, tmp_path).train(input_fn)
    expected = trained.evaluate(input_fn)
    other = make(mine, tmp_path, units=5)
    with pytest.raises(MusterError, match="dnn/hiddenlayer_0/kernel"):
        other.evaluate(input_fn)
    assert not (tmp_path / "model.yaml").exists(), "it was of another model"

    model = make(mine, tmp_path)
    rows = [row["logits"] for row in model.predict(input_fn)]
    wanted = [row["logits"] for row in trained.predict(input_fn)]
    np.testing.assert_allclose(rows, wanted, rtol=1e-4, atol=1e-5)
    assert (tmp_path / "model.yaml").exists()
    kernel = "dnn/hiddenlayer_0/kernel"
    np.testing.assert_array_equal(
        model.get_variable_value(kernel), trained.get_variable_value(kernel)
    )
    found = model.evaluate(input_fn)
    for name in ("average_loss", "accuracy", "loss", "global_step"):
        assert found[name] == pytest.approx(float(expected[name]), rel=1e-4), name


def test_training_goes_on_with_slots_of_muster_s_names(tmp_path) -> None:
    steps = make(tf, tmp_path).train(input_fn).get_variable_value("global_step")
    model = make(ours, tmp_path).train(input_fn)
    assert model.evaluate(input_fn)["global_step"] == 2 * steps


def test_slots_of_tensorflow_1_are_named(tmp_path) -> None:
    make(tf.compat.v1, tmp_path).train(input_fn)
    with pytest.raises(MusterError, match="warm_start_from='.*', which takes the weights"):
        make(ours_1, tmp_path).train(input_fn)
    assert make(ours_1, tmp_path).evaluate(input_fn)["global_step"] == 8
