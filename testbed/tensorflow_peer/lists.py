"""Columns of lists in the twin: their tensors, pooled sequences, and tables that columns share."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.feature_column import feature_column_v2

from testbed.tensorflow_peer import columns
from testbed.tensorflow_peer.spec import Spec

fc = tf.feature_column


def _is_fixed(spec: Spec, name: str) -> bool:
    """Whether a numeric or bucketized column reads the list: rows of one length, a dense tensor."""
    return any(name in (c.get("numeric"), c.get("bucketized")) for c in spec["columns"].values())


def to_tensor(spec: Spec, name: str, values: np.ndarray) -> tf.Tensor | tf.SparseTensor:
    """Returns an input of some rows as an input_fn would."""
    field = spec["inputs"][name]
    if field.get("list") != "true":
        return tf.constant(values)
    dtype = columns.DTYPES[field["type"]]
    if _is_fixed(spec, name):
        return tf.constant(list(values), dtype)
    indices = [(row, i) for row, each in enumerate(values) for i in range(len(each))]
    flat = [value for each in values for value in each]
    width = max([len(each) for each in values] + [1])
    return tf.SparseTensor(
        np.array(indices, np.int64).reshape(-1, 2),
        tf.constant(flat, dtype, shape=[len(flat)]),
        [len(values), width],
    )


def _sequence_categorical(spec: Spec, name: str):
    """The sequence_categorical_column_with_... of the categorical column `name`."""
    column = spec["columns"][name]
    if "hash" in column:
        return fc.sequence_categorical_column_with_hash_bucket(
            column["hash"], int(column["buckets"]), columns.DTYPES[spec["inputs"][column["hash"]]["type"]]
        )
    if "identity" in column:
        default = int(column["default"]) if "default" in column else None
        return fc.sequence_categorical_column_with_identity(
            column["identity"], int(column["buckets"]), default
        )
    return fc.sequence_categorical_column_with_vocabulary_list(
        column["vocabulary"],
        column["words"],
        num_oov_buckets=int(column.get("oov_buckets", 0)),
        default_value=int(column.get("default", -1)),
    )


def pooled(steps: tf.Tensor, lengths: tf.Tensor, pooling: str) -> tf.Tensor:
    """Pools steps [batch, T, width], of which a row has `lengths`, to [batch, width]; without steps
    zeros.

    mean is GlobalAveragePooling1D under the mask of the lengths, max is reduce_max of the steps
    under it, last is the step at which an RNN's output is taken.
    """
    mask = tf.sequence_mask(lengths, tf.shape(steps)[1])[:, :, tf.newaxis]
    some = tf.cast(lengths > 0, tf.float32)[:, tf.newaxis]
    if pooling == "max":
        largest = tf.reduce_max(tf.where(mask, steps, tf.float32.min), axis=1)
        return tf.where(some > 0, largest, 0.0)
    if pooling == "last":
        last = tf.gather(steps, tf.maximum(lengths - 1, 0), batch_dims=1)
        return last * some
    if pooling == "mean":
        average = tf.keras.layers.GlobalAveragePooling1D()(steps, mask=mask[:, :, 0])
        return tf.where(some > 0, average, 0.0)
    total = tf.reduce_sum(tf.where(mask, steps, 0.0), axis=1)
    count = tf.cast(lengths, tf.float32)[:, tf.newaxis]
    return total if pooling == "sum" else tf.math.divide_no_nan(total, tf.sqrt(count))


class PooledSequence(tf.keras.layers.Layer):
    """tf.keras.experimental.SequenceFeatures of one column, pooled."""

    def __init__(self, spec: Spec, name: str):
        super().__init__()
        column = spec["columns"][name]
        self.pooling = column["pooling"]
        if "sequence_numeric" in column:
            scale = columns.normalizer(column)
            made = fc.sequence_numeric_column(
                column["sequence_numeric"],
                columns.shape_of(column),
                normalizer_fn=lambda x: tf.sparse.map_values(scale, x),
            )
        else:
            made = columns.embedding(column, _sequence_categorical(spec, column["embedding"]))
        self.steps = tf.keras.experimental.SequenceFeatures([made])

    def call(self, features: dict[str, Any]) -> tf.Tensor:
        steps, lengths = self.steps(features)
        return pooled(steps, lengths, self.pooling)


class SharedEmbedding(tf.keras.layers.Layer):
    """Computes tf.feature_column.shared_embeddings, which TensorFlow 2 only has in graphs."""

    def __init__(self, spec: Spec, name: str, tables: dict[str, tf.Variable]):
        super().__init__()
        self.column = spec["columns"][name]
        self.categorical = columns.feature_column(spec, self.column["embedding"])
        shape = [self.categorical.num_buckets, int(self.column["dimension"])]
        shared = self.column["shared"]
        if shared not in tables:
            tables[shared] = tf.Variable(columns.initializer(self.column)(shape), name=shared)
        self.table = tables[shared]

    def call(self, features: dict[str, Any]) -> tf.Tensor:
        cache = feature_column_v2.FeatureTransformationCache(features)
        ids, weights = self.categorical.get_sparse_tensors(cache, None)
        ids = tf.SparseTensor(ids.indices, tf.cast(ids.values, tf.int64), ids.dense_shape)
        norm = columns.max_norm(self.column)
        if "pooling" not in self.column:
            return tf.nn.safe_embedding_lookup_sparse(
                self.table, ids, weights, self.column.get("combiner", "mean"), max_norm=norm
            )
        dense = tf.sparse.to_dense(ids, -1)
        rows = tf.nn.embedding_lookup(self.table, tf.maximum(dense, 0), max_norm=norm)
        steps = tf.where(dense[:, :, tf.newaxis] >= 0, rows, 0.0)
        counted = tf.SparseTensor(ids.indices, tf.ones_like(ids.values), ids.dense_shape)
        lengths = tf.sparse.reduce_sum(counted, axis=1)
        return pooled(steps, lengths, self.column["pooling"])
