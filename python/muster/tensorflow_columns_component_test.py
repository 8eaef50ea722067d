"""Columns made with tf.feature_column are those of muster.feature_column of the same arguments."""

from __future__ import annotations

import pathlib

import pytest
import tensorflow as tf

from muster import estimator, feature_column


def made_by(fc, words: pathlib.Path) -> dict:
    age = fc.numeric_column("age", normalizer_fn=lambda x: (x - 40) / 10)
    bucket = fc.bucketized_column(fc.numeric_column("height"), [1.5, 1.8])
    job = fc.categorical_column_with_vocabulary_list("job", ["cook", "smith"], num_oov_buckets=2)
    town = fc.categorical_column_with_vocabulary_file("town", str(words), 2, default_value=1)
    number = fc.categorical_column_with_vocabulary_list("number", [3, 5], default_value=0)
    return {
        "age": age,
        "image": fc.numeric_column("image", [2, 3]),
        "filled": fc.numeric_column("filled", default_value=2.0),
        "bucket": bucket,
        "job": job,
        "town": town,
        "number": number,
        "identity": fc.categorical_column_with_identity("identity", 7, default_value=3),
        "hash": fc.categorical_column_with_hash_bucket("hash", 9, tf.int64),
        "cross": fc.crossed_column([bucket, "job", job], 50, hash_key=4),
        "weighted": fc.weighted_categorical_column(job, "score"),
        "indicator": fc.indicator_column(town),
        "embedding": fc.embedding_column(job, 4, combiner="sqrtn", max_norm=2.0),
    }


@pytest.fixture
def words(tmp_path) -> pathlib.Path:
    path = tmp_path / "words.txt"
    path.write_text("Bern\nGraz\n")
    return path


def test_each_kind_of_column(words) -> None:
    from muster.tensorflow_columns import ours

    theirs, expected = made_by(tf.feature_column, words), made_by(feature_column, words)
    for name, column in expected.items():
        assert ours(theirs[name]) == column, name
        assert ours(column) is column
    assert feature_column.make_parse_example_spec([theirs["age"], theirs["job"]]) == (
        tf.feature_column.make_parse_example_spec([theirs["age"], theirs["job"]])
    )


def test_they_are_mixed(words, tmp_path) -> None:
    theirs, mine = made_by(tf.feature_column, words), made_by(feature_column, words)

    def model(columns, weight):
        return estimator.LinearClassifier(columns, tmp_path, weight_column=weight)._model

    weight = tf.feature_column.numeric_column("weight")
    mixed = [
        theirs["age"],
        feature_column.crossed_column([theirs["bucket"], "job", mine["job"]], 50, hash_key=4),
        feature_column.indicator_column(theirs["town"]),
        feature_column.weighted_categorical_column(theirs["job"], "score"),
    ]
    own = [mine["age"], mine["cross"], mine["indicator"], mine["weighted"]]
    assert model(mixed, weight) == model(own, "weight")
    assert model(theirs["age"], None) == model(mine["age"], None)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: tf.cast(x, tf.float32),
        lambda x: (tf.cast(x, "float64") - 40.0) / 8.0,
        lambda x: tf.divide(tf.subtract(tf.cast(x, tf.float32), 40), tf.constant(8.0)),
        lambda x: tf.identity(x) * 0.5 + 3,
        lambda x: 2 * (tf.math.log1p(x) - 1.5),
    ],
)
def test_a_normalizer_of_tensorflows_functions(function) -> None:
    normalizer = feature_column.numeric_column("x", normalizer_fn=function).normalizer
    x = tf.constant([[0.0], [3.5], [41.0]])
    given = tf.math.log1p(x) if normalizer.log1p_first else x
    expected = (given - normalizer.mean) / normalizer.stddev
    tf.debugging.assert_near(tf.cast(function(x), tf.float32), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    "function, says",
    [
        (lambda x: tf.cast(x, tf.int32), "TypeError: Cast to int32 of TensorFlow"),
        (lambda x: tf.math.sigmoid(x), "TypeError: Sigmoid of TensorFlow"),
        (lambda x: tf.cast(x, tf.float32) - [1.0, 2.0], "TypeError: only"),
        (lambda x: tf.cast(x, tf.float32) * tf.cast(x, tf.float32), "TypeError: "),
        (lambda x: tf.constant(2.0) * tf.cast(3, tf.float32), "it gave "),
    ],
)
def test_a_normalizer_that_muster_cannot_compute(function, says) -> None:
    with pytest.raises(ValueError, match=f"numeric_column 'x': the trained model must.*{says}"):
        feature_column.numeric_column("x", normalizer_fn=function)


@pytest.mark.parametrize(
    "make, says",
    [
        (lambda fc: fc.sequence_numeric_column("s"), "SequenceNumericColumn of TensorFlow"),
        (
            lambda fc: fc.embedding_column(
                fc.categorical_column_with_identity("i", 5), 2,
                initializer=tf.keras.initializers.Zeros(),
            ),
            "Muster has no initializer",
        ),
    ],
)  # fmt: skip
def test_what_muster_has_not_is_named(make, says) -> None:
    with pytest.raises(ValueError, match=says):
        estimator.DNNClassifier([2], [make(tf.feature_column)])
