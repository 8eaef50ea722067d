"""Columns of tf.feature_column as ours: they are data too, of the same names and arguments."""

from __future__ import annotations

import math
from typing import Any

_MODULE = "tensorflow.python.feature_column."


def ours(column: Any) -> Any:
    """A column of TensorFlow's as the equal one of muster.feature_column; anything else as it is.

    Raises ValueError, as muster.feature_column does, for one that Muster has not.
    """
    if not type(column).__module__.startswith(_MODULE):
        return column
    from muster import feature_column as fc

    kind = type(column).__name__
    if kind == "NumericColumn":
        shape, default = column.shape, column.default_value
        return fc.numeric_column(column.key, shape, default, column.dtype, column.normalizer_fn)
    if kind == "BucketizedColumn":
        return fc.bucketized_column(ours(column.source_column), list(column.boundaries))
    if kind == "VocabularyListCategoricalColumn":
        words, default = column.vocabulary_list, column.default_value
        return fc.categorical_column_with_vocabulary_list(
            column.key, words, column.dtype, default, column.num_oov_buckets
        )
    if kind == "VocabularyFileCategoricalColumn":
        default = None if column.num_oov_buckets else column.default_value
        return fc.categorical_column_with_vocabulary_file(
            column.key,
            column.vocabulary_file,
            column.vocabulary_size,
            column.dtype,
            default,
            column.num_oov_buckets,
            getattr(column, "file_format", None),
        )
    if kind == "IdentityCategoricalColumn":
        buckets, default = column.number_buckets, column.default_value
        return fc.categorical_column_with_identity(column.key, buckets, default)
    if kind == "HashedCategoricalColumn":
        size = column.hash_bucket_size
        return fc.categorical_column_with_hash_bucket(column.key, size, column.dtype)
    if kind == "CrossedColumn":
        keys = [ours(key) for key in column.keys]
        return fc.crossed_column(keys, column.hash_bucket_size, column.hash_key)
    if kind == "WeightedCategoricalColumn":
        inner, weights = ours(column.categorical_column), column.weight_feature_key
        return fc.weighted_categorical_column(inner, weights, column.dtype)
    if kind == "IndicatorColumn":
        return fc.indicator_column(ours(column.categorical_column))
    if kind == "EmbeddingColumn":
        return _embedding(fc, column)
    raise ValueError(
        f"{kind} of TensorFlow, '{getattr(column, 'name', '')}': make it with "
        "muster.feature_column, whose sequence columns say how their steps are pooled and whose "
        "shared_embeddings share a table by name"
    )


def _embedding(fc: Any, column: Any) -> Any:
    return fc.embedding_column(
        ours(column.categorical_column),
        column.dimension,
        column.combiner,
        None if _is_default(column.initializer, column.dimension) else column.initializer,
        column.ckpt_to_load_from,
        column.tensor_name_in_ckpt,
        column.max_norm,
        column.trainable,
    )


def _is_default(initializer: Any, dimension: int) -> bool:
    """What TensorFlow puts where none is given."""
    name = type(initializer).__name__
    return initializer is None or (
        name.startswith("TruncatedNormal")
        and getattr(initializer, "mean", None) == 0
        and math.isclose(getattr(initializer, "stddev", 0), 1 / math.sqrt(dimension))
    )
