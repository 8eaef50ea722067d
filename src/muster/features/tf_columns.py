"""Feature columns of a muster spec, computed by TensorFlow's own tf.feature_column."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf
from tensorflow.python.feature_column import feature_column_v2

tf.get_logger().setLevel("ERROR")


@dataclass(frozen=True)
class Field:
    name: str
    type: str  # int, float, string
    list: bool = False
    length: int = 0  # of a list whose rows all have as many values: a dense tensor


@dataclass(frozen=True)
class Column:
    """`input` is a field; crosses have `keys` (fields or columns) in `options`."""

    name: str
    kind: str
    input: str = ""
    options: dict[str, Any] = field(default_factory=dict)


Value = int | float | bytes
Row = dict[str, Value | list[Value]]
_DTYPES = {"int": (tf.int64, -1), "float": (tf.float32, 0.0), "string": (tf.string, b"")}


def fields_of(column: Column, columns: dict[str, Column]) -> list[str]:
    """The fields that a column reads, in order."""
    names: list[str] = []
    for key in column.options.get("keys", [column.input]):
        leaf = columns[key].input if key in columns and column.kind == "cross" else key
        if leaf not in names:
            names.append(leaf)
    return names


def to_tensors(fields: list[Field], rows: list[Row]) -> dict[str, Any]:
    """Scalar fields as dense tensors, list fields as sparse ones, as an input_fn hands them over."""
    tensors: dict[str, Any] = {}
    for each in fields:
        dtype, _ = _DTYPES[each.type]
        if not each.list or each.length:
            tensors[each.name] = tf.constant([row[each.name] for row in rows], dtype)
            continue
        indices = [(r, i) for r, row in enumerate(rows) for i in range(len(row[each.name]))]
        values = [value for row in rows for value in row[each.name]]
        width = max([len(row[each.name]) for row in rows] + [1])
        tensors[each.name] = tf.SparseTensor(
            np.array(indices, np.int64).reshape(-1, 2),
            tf.constant(values, dtype, shape=[len(values)]),
            [len(rows), width],
        )
    return tensors


def tf_column(column: Column, columns: dict[str, Column], fields: dict[str, Field]) -> Any:
    fc, options = tf.feature_column, column.options
    if column.kind == "numeric":
        mean = tf.constant(options.get("mean", 0.0), tf.float32)
        stddev = tf.constant(options.get("stddev", 1.0), tf.float32)
        log = tf.math.log1p if options.get("log1p") else tf.identity
        return fc.numeric_column(
            column.input,
            (options.get("shape", 1),),
            normalizer_fn=lambda x: (log(tf.cast(x, tf.float32)) - mean) / stddev,
        )
    if column.kind == "bucketized":
        source = fc.numeric_column(column.input, (options.get("shape", 1),))
        return fc.bucketized_column(source, options["boundaries"])
    if column.kind == "vocabulary":
        return fc.categorical_column_with_vocabulary_list(
            column.input,
            options["words"],
            default_value=options.get("default", -1),
            num_oov_buckets=options.get("oov_buckets", 0),
        )
    if column.kind == "identity":
        return fc.categorical_column_with_identity(
            column.input, options["buckets"], options.get("default")
        )
    if column.kind == "hash":
        dtype, _ = _DTYPES[fields[column.input].type]
        return fc.categorical_column_with_hash_bucket(column.input, options["buckets"], dtype)
    if column.kind == "cross":
        keys = [
            key if key in fields else tf_column(columns[key], columns, fields)
            for key in options["keys"]
        ]
        return fc.crossed_column(keys, options["buckets"], options.get("hash_key"))
    if column.kind == "weighted":
        dtype, _ = _DTYPES[fields[options["weights"]].type]
        weighted = tf_column(columns[column.input], columns, fields)
        return fc.weighted_categorical_column(weighted, options["weights"], dtype)
    if column.kind == "indicator":
        return fc.indicator_column(tf_column(columns[column.input], columns, fields))
    raise ValueError(f"unknown kind {column.kind}")


def tf_ids(made: Any, tensors: dict[str, Any], num_rows: int) -> list[list[int]]:
    """The ids of each row that are ids: an embedding drops negative ones."""
    cache = feature_column_v2.FeatureTransformationCache(tensors)
    sparse = made.get_sparse_tensors(cache, None).id_tensor
    ids: list[list[int]] = [[] for _ in range(num_rows)]
    for (row, _), value in zip(sparse.indices.numpy(), sparse.values.numpy()):
        if value >= 0:
            ids[row].append(int(value))
    return ids


def tf_weights(made: Any, tensors: dict[str, Any], num_rows: int) -> list[list[float]]:
    """Of the ids of tf_ids."""
    cache = feature_column_v2.FeatureTransformationCache(tensors)
    ids, weights = made.get_sparse_tensors(cache, None)
    np.testing.assert_array_equal(ids.indices, weights.indices)
    rows: list[list[float]] = [[] for _ in range(num_rows)]
    for (row, _), value, weight in zip(ids.indices.numpy(), ids.values.numpy(), weights.values.numpy()):
        if value >= 0:
            rows[row].append(float(weight))
    return rows


def tf_dense(made: Any, tensors: dict[str, Any]) -> np.ndarray:
    cache = feature_column_v2.FeatureTransformationCache(tensors)
    dense = made.get_dense_tensor(cache, None).numpy()
    return dense.reshape(dense.shape[0], -1)
