"""Programs of tf.compat.v1.estimator give the same losses and weights with TensorFlow and Muster.
"""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import tensorflow
import tensorflow.compat.v1 as theirs

import muster.tensorflow
import muster.tensorflow.compat.v1 as ours

SEED, ROWS, BATCH, STEPS = 13, 96, 16, 12
DRAW = np.random.default_rng(SEED)
DATA = {
    "x": DRAW.normal(size=ROWS).astype(np.float32),
    "image": DRAW.normal(size=(ROWS, 2, 3)).astype(np.float32),
    "weight": DRAW.choice([0.5, 1.0, 3.0], ROWS).astype(np.float32),
}
SCORE = DATA["x"] + DATA["image"][:, 1, 2]
LABELS = {
    "binary": (SCORE > 0).astype(np.int64),
    "three": np.digitize(SCORE, [-0.5, 0.5]).astype(np.int64),
    "pair": np.stack([SCORE, -SCORE], axis=1),
}


def columns(tf):
    return [tf.feature_column.numeric_column("x"), tf.feature_column.numeric_column("image", [2, 3])]


CASES = {
    "three classes": ("three", lambda tf, **o: tf.estimator.LinearClassifier(
        columns(tf), n_classes=3, weight_column="weight", **o)),
    "adagrad": ("binary", lambda tf, **o: tf.estimator.LinearClassifier(
        columns(tf), optimizer=tf.train.AdagradOptimizer(0.3), **o)),
    "adam": ("binary", lambda tf, **o: tf.estimator.LinearClassifier(
        columns(tf), optimizer="Adam", partitioner=None, **o)),
    "momentum": ("pair", lambda tf, **o: tf.estimator.LinearRegressor(
        columns(tf), label_dimension=2, weight_column="weight",
        optimizer=lambda: tf.train.MomentumOptimizer(0.01, 0.9, use_nesterov=True), **o)),
    "ftrl": ("binary", lambda tf, **o: tf.estimator.LinearClassifier(
        columns(tf), optimizer=tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01), **o)),
    "sgd": ("binary", lambda tf, **o: tf.estimator.LinearClassifier(
        columns(tf), optimizer=tf.train.GradientDescentOptimizer(0.01), **o)),
    "mean": ("binary", lambda tf, **o: tf.estimator.LinearClassifier(
        columns(tf), loss_reduction=tf.losses.Reduction.SUM_OVER_BATCH_SIZE, **o)),
    "version 2's sum": ("binary", lambda tf, **o: version_2_of(tf).estimator.LinearClassifier(
        columns(tf), loss_reduction=tensorflow.keras.losses.Reduction.SUM, **o)),
    "nothing learnt": ("binary", lambda tf, **o: tf.estimator.LinearClassifier(
        columns(tf), optimizer=tf.train.GradientDescentOptimizer(0.0), **o)),
    "baseline": ("three", lambda tf, **o: tf.estimator.BaselineClassifier(n_classes=3, **o)),
}  # fmt: skip


def version_2_of(tf):
    return muster.tensorflow if tf is ours else tensorflow


def input_fn_of(label: str, batch: int, epochs):
    def input_fn():
        data = theirs.data.Dataset.from_tensor_slices((DATA, LABELS[label]))
        return theirs.data.make_one_shot_iterator(data.repeat(epochs).batch(batch)).get_next()

    return input_fn


@pytest.mark.parametrize("case", CASES)
def test_losses_are_those_of_tensorflow_1(case, tmp_path) -> None:
    label, make = CASES[case]
    found = {}
    for name, tf in (("theirs", theirs), ("ours", ours)):
        model = make(tf, model_dir=str(tmp_path / name))
        model.train(input_fn_of(label, BATCH, None), steps=STEPS)
        metrics = model.evaluate(input_fn_of(label, BATCH, 1))
        logits = [row.get("logits", row.get("predictions")) for row in
                  model.predict(input_fn_of(label, BATCH, 1))]  # fmt: skip
        found[name] = metrics, np.stack(logits)
    (metrics, logits), (our_metrics, our_logits) = found["theirs"], found["ours"]
    np.testing.assert_allclose(our_logits, logits, rtol=2e-4, atol=2e-5)
    for name in ("loss", "average_loss", "global_step"):
        assert our_metrics[name] == pytest.approx(float(metrics[name]), rel=1e-4), name
    if case == "nothing learnt":
        assert not our_logits.any()


@pytest.mark.parametrize("name", [n for n in dir(theirs.estimator) if n.endswith(
    ("Classifier", "Regressor")) or n in ("DNNEstimator", "LinearEstimator")])  # fmt: skip
def test_arguments_are_those_of_tensorflow_1(name) -> None:
    signature = inspect.signature(getattr(theirs.estimator, name).__init__)
    names = [name for name in signature.parameters if name != "self"]
    made = getattr(ours.estimator, name)
    columns = [ours.feature_column.numeric_column("x")]
    values = {name: p.default for name, p in signature.parameters.items() if name != "self"}
    needed = {"hidden_units": [2], "dnn_hidden_units": [2], "head": ours.estimator.BinaryClassHead()}
    for name in names:
        values[name] = columns if name.endswith("feature_columns") else needed.get(
            name, values[name])  # fmt: skip
    assert made(*values.values()).config is not None
    with pytest.raises(TypeError, match=f"takes {len(names)} arguments"):
        made(*values.values(), 1)
    with pytest.raises(TypeError, match="'steps' which it does not have"):
        made(**values, steps=1)


def test_the_rest_is_tensorflows() -> None:
    assert ours.train.AdamOptimizer is theirs.train.AdamOptimizer
    assert muster.tensorflow.compat.v1 is ours
    assert muster.tensorflow.compat.v2 is muster.tensorflow
    assert ours.estimator.RunConfig is muster.estimator.RunConfig
    with pytest.raises(AttributeError, match="EstimatorSpec"):
        ours.estimator.EstimatorSpec  # noqa: B018


@pytest.mark.parametrize(
    "optimizer, says",
    [
        (theirs.train.RMSPropOptimizer(0.1), "begins with a mean square of 1"),
        ("RMSProp", "begins with a mean square of 1"),
        (theirs.train.ProximalAdagradOptimizer(0.1), "ProximalAdagradOptimizer: Muster has"),
        (theirs.train.AdamOptimizer(lambda: 0.1), "lr is no number"),
        ("Adadelta", "Unsupported optimizer name: Adadelta"),
    ],
)
def test_an_optimizer_that_is_not_here_is_refused(optimizer, says) -> None:
    with pytest.raises(ValueError, match=says):
        ours.estimator.LinearClassifier(columns(ours), optimizer=optimizer)


def test_names_of_tensorflow_1_are_told_where_they_are() -> None:
    with pytest.raises(AttributeError, match="tf.gfile, which is of TensorFlow 1: import muster.tensorflow.compat.v1"):
        muster.tensorflow.gfile  # noqa: B018
    with pytest.raises(AttributeError, match="nothing_of_this_name"):
        muster.tensorflow.nothing_of_this_name  # noqa: B018
