"""The tf.feature_column that a column of a model file stands for."""

from __future__ import annotations

import math
from typing import Callable

import numpy as np
import tensorflow as tf

from testbed.tensorflow_peer.spec import Spec

fc = tf.feature_column

DTYPES = {"int": tf.int64, "float": tf.float32, "string": tf.string}


def shape_of(column: Spec) -> tuple[int]:
    return (int(column.get("shape", 1)),)


def normalizer(column: Spec) -> Callable[[tf.Tensor], tf.Tensor]:
    mean = np.float32(column.get("mean", 0))
    stddev = np.float32(column.get("stddev", 1))
    log1p = column.get("log1p") == "true"
    return lambda x: ((tf.math.log1p(x) if log1p else x) - mean) / stddev


def _numeric(column: Spec) -> tf.Tensor:
    return fc.numeric_column(
        column["numeric"], shape_of(column), normalizer_fn=normalizer(column)
    )


def feature_column(spec: Spec, name: str):
    """The tf.feature_column that the spec's column `name` stands for."""
    column = spec["columns"][name]
    if "numeric" in column:
        return _numeric(column)
    if "bucketized" in column:
        boundaries = [float(x) for x in column["boundaries"]]
        source = fc.numeric_column(column["bucketized"], shape_of(column))
        return fc.bucketized_column(source, boundaries)
    if "vocabulary" in column:
        words = column["words"]
        if spec["inputs"][column["vocabulary"]]["type"] == "int":
            words = [int(word) for word in words]
        return fc.categorical_column_with_vocabulary_list(
            column["vocabulary"],
            words,
            num_oov_buckets=int(column.get("oov_buckets", 0)),
            default_value=int(column.get("default", -1)),
        )
    if "identity" in column:
        default = int(column["default"]) if "default" in column else None
        return fc.categorical_column_with_identity(
            column["identity"], int(column["buckets"]), default
        )
    if "hash" in column:
        dtype = DTYPES[spec["inputs"][column["hash"]]["type"]]
        return fc.categorical_column_with_hash_bucket(
            column["hash"], int(column["buckets"]), dtype=dtype
        )
    if "cross" in column:
        keys = [key if key in spec["inputs"] else feature_column(spec, key) for key in column["cross"]]
        return fc.crossed_column(keys, int(column["buckets"]))
    if "weighted" in column:
        dtype = DTYPES[spec["inputs"][column["weights"]]["type"]]
        categorical = feature_column(spec, column["weighted"])
        return fc.weighted_categorical_column(categorical, column["weights"], dtype)
    if "indicator" in column:
        return fc.indicator_column(feature_column(spec, column["indicator"]))
    return embedding(column, feature_column(spec, column["embedding"]))


def initializer(column: Spec) -> tf.keras.initializers.Initializer:
    stddev = 1 / math.sqrt(int(column["dimension"]))
    return tf.keras.initializers.TruncatedNormal(stddev=stddev)


def max_norm(column: Spec) -> float | None:
    return float(column["max_norm"]) if "max_norm" in column else None


def embedding(column: Spec, categorical):
    return fc.embedding_column(
        categorical,
        int(column["dimension"]),
        combiner=column.get("combiner", "mean"),
        initializer=initializer(column),
        max_norm=max_norm(column),
    )
