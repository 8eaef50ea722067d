"""Trains every head with tf.estimator and with Muster, and compares metrics and predictions.

Linear models begin with zeros, so that both are equal from the first step on.
"""

from __future__ import annotations

import numpy as np
import pytest

from muster import estimator, feature_column

SEED = 11
ROWS, BATCH, STEPS = 96, 16, 30
WORDS = ["red", "green", "blue"]


def make_data() -> dict:
    draw = np.random.default_rng(SEED)
    x = draw.normal(size=ROWS).astype(np.float32)
    job = draw.choice(["clerk", "cook", "smith"], ROWS)
    score = x + (job == "smith") + 0.3 * draw.normal(size=ROWS)
    return {
        "x": x,
        "job": job.astype(object),
        "weight": draw.choice([0.5, 1.0, 3.0], ROWS).astype(np.float32),
        "binary": (score > 0.4).astype(np.int64),
        "three": np.digitize(score, [0, 1]).astype(np.int64),
        "words": np.array(WORDS, object)[np.digitize(score, [0, 1])],
        "number": score.astype(np.float32),
        "pair": np.stack([score, 2 * x], axis=1).astype(np.float32),
        "count": draw.poisson(np.exp(0.3 * score)).astype(np.float32),
        "share": (1 / (1 + np.exp(-score))).astype(np.float32),
        "labels": np.stack([score > 0, x > 0, x < -1], axis=1).astype(np.int64),
    }


DATA = make_data()

CASES = {
    "LinearClassifier": (
        "binary", lambda e, columns, **o: e.LinearClassifier(columns, **o)),
    "weighted": (
        "binary", lambda e, columns, **o: e.LinearClassifier(columns, weight_column="weight", **o)),
    "three classes": (
        "three", lambda e, columns, **o: e.LinearClassifier(
            columns, n_classes=3, weight_column="weight", **o)),
    "words": (
        "words", lambda e, columns, **o: e.LinearClassifier(
            columns, n_classes=3, label_vocabulary=WORDS, **o)),
    "LinearRegressor": (
        "number", lambda e, columns, **o: e.LinearRegressor(columns, weight_column="weight", **o)),
    "two numbers": (
        "pair", lambda e, columns, **o: e.LinearRegressor(columns, label_dimension=2, **o)),
    "BaselineClassifier": (
        "three", lambda e, columns, **o: e.BaselineClassifier(n_classes=3, **o)),
    "BaselineRegressor": (
        "number", lambda e, columns, **o: e.BaselineRegressor(**o)),
    "Poisson": (
        "count", lambda e, columns, **o: e.LinearEstimator(
            e.PoissonRegressionHead(), columns, **o)),
    "logistic": (
        "share", lambda e, columns, **o: e.LinearEstimator(
            e.LogisticRegressionHead(weight_column="weight"), columns, **o)),
    "several labels": (
        "labels", lambda e, columns, **o: e.LinearEstimator(
            e.MultiLabelHead(3, thresholds=[0.3]), columns, **o)),
    "thresholds": (
        "binary", lambda e, columns, **o: e.LinearEstimator(
            e.BinaryClassHead(thresholds=[0.3]), columns, **o)),
}  # fmt: skip


def columns_of(api) -> list:
    job = api.categorical_column_with_vocabulary_list("job", ["clerk", "cook"], num_oov_buckets=1)
    return [api.numeric_column("x"), job]


def dataset(label: str, size: int = BATCH):
    import tensorflow as tf

    features = {name: DATA[name] for name in ("x", "job", "weight")}
    return tf.data.Dataset.from_tensor_slices((features, DATA[label])).batch(size)


def feed(case: str, name: str, label: str, repeat: bool):
    """Returns an input function.

    TensorFlow's Baseline* cannot use a dataset that is made in graph mode, and take a batch from an
    iterator before the first step: for them all rows are one batch.
    """
    import tensorflow as tf

    baseline = case.startswith("Baseline")

    def input_fn():
        data = dataset(label, ROWS if baseline else BATCH)
        data = data.repeat() if repeat else data
        if name == "theirs" and baseline:
            return tf.compat.v1.data.make_one_shot_iterator(data).get_next()
        return data

    return input_fn


@pytest.mark.parametrize("case", CASES)
def test_a_head_is_tensorflows(case, tmp_path) -> None:
    import tensorflow as tf

    label, make = CASES[case]
    found = {}
    for name, api, column_api in (
        ("theirs", tf.estimator, tf.feature_column),
        ("ours", estimator, feature_column),
    ):
        model = make(api, columns_of(column_api), model_dir=str(tmp_path / name))
        model.train(feed(case, name, label, repeat=True), steps=STEPS)
        once = feed(case, name, label, repeat=False)
        found[name] = model.evaluate(once), list(model.predict(once))
    (their_metrics, their_rows), (our_metrics, our_rows) = found["theirs"], found["ours"]

    if "auc_interpolated" in our_metrics:
        our_metrics["auc"] = our_metrics.pop("auc_interpolated")
    assert set(their_metrics) <= set(our_metrics)
    for name, value in their_metrics.items():
        assert our_metrics[name] == pytest.approx(float(value), rel=1e-4, abs=1e-5), name
    assert len(our_rows) == len(their_rows) == ROWS
    for ours, theirs in zip(our_rows, their_rows):
        assert set(ours) == set(theirs)
        for key, value in theirs.items():
            assert (ours[key].shape, ours[key].dtype) == (value.shape, value.dtype), key
            if value.dtype == object:
                assert ours[key].tolist() == value.tolist(), key
            else:
                np.testing.assert_allclose(ours[key], value, rtol=1e-3, atol=1e-4, err_msg=key)
