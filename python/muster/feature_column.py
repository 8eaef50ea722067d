"""The functions of `tf.feature_column`: what is computed from a batch's features.

A column is plain data, compared by value; `muster` computes it by TensorFlow's rules
(docs/features.md). Wrong arguments raise ValueError (TypeError for a normalizer_fn that cannot be
called), as in TensorFlow. What Muster does not support raises ValueError too, and says what to use
instead.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Union

from muster.cells import FLOAT, INT, STRING, type_name
from muster.column_checks import (
    check_categorical,
    check_embedding,
    check_key,
    check_numeric,
    check_oov,
    check_pooling,
    check_sequence,
    string_or_int,
    unsupported,
)
from muster.columns import (
    BucketizedColumn,
    CategoricalColumn,
    CrossedColumn,
    EmbeddingColumn,
    FeatureColumn,
    HashedColumn,
    IdentityColumn,
    IndicatorColumn,
    NumericColumn,
    SequenceColumn,
    SequenceNumericColumn,
    VocabularyColumn,
    WeightedColumn,
    base,
)
from muster.normalizer import Normalizer, trace
from muster.tensorflow_columns import ours

__all__ = [
    "bucketized_column",
    "categorical_column_with_hash_bucket",
    "categorical_column_with_identity",
    "categorical_column_with_vocabulary_file",
    "categorical_column_with_vocabulary_list",
    "crossed_column",
    "embedding_column",
    "indicator_column",
    "make_parse_example_spec",
    "numeric_column",
    "sequence_categorical_column_with_hash_bucket",
    "sequence_categorical_column_with_identity",
    "sequence_categorical_column_with_vocabulary_file",
    "sequence_categorical_column_with_vocabulary_list",
    "sequence_numeric_column",
    "shared_embedding_columns",
    "shared_embeddings",
    "weighted_categorical_column",
]


def numeric_column(
    key: str,
    shape: Union[int, Sequence[int]] = (1,),
    default_value: Any = None,
    dtype: Any = "float32",
    normalizer_fn: Optional[Callable[[Any], Any]] = None,
) -> NumericColumn:
    """`normalizer_fn` may add, subtract, multiply and divide by numbers, as `lambda x: (x - 3) / 2`
    does, applied to the value or to `muster.normalizer.log1p(x)`, also by TensorFlow's functions."""
    dimensions = check_numeric(key, shape, dtype)
    size = math.prod(dimensions)
    if isinstance(default_value, (list, tuple)) and len(set(default_value)) == 1:
        default_value = default_value[0]
    if default_value is not None and not isinstance(default_value, (int, float)):
        raise TypeError(f"default_value must be one number. key: {key}")
    if default_value is not None and size > 1:
        raise ValueError(f"numeric_column '{key}': only one value a row can have a default_value")
    default = None if default_value is None else float(default_value)
    normalizer = trace(normalizer_fn, key)
    return NumericColumn(key, size, default, normalizer, dimensions if len(dimensions) > 1 else ())


def sequence_numeric_column(
    key: str,
    shape: Union[int, Sequence[int]] = (1,),
    default_value: float = 0.0,
    dtype: Any = "float32",
    normalizer_fn: Optional[Callable[[Any], Any]] = None,
    pooling: str = "mean",
) -> SequenceNumericColumn:
    """`pooling` is Muster's addition: how steps become one: "sum", "mean", "sqrtn", "max", "last".
    """
    dimensions = check_numeric(key, shape, dtype)
    if len(dimensions) > 1:
        raise ValueError(f"shape {shape} of '{key}': a step has one dimension: (N,)")
    if default_value != 0:
        raise ValueError(f"sequence_numeric_column '{key}': default_value must be 0")
    check_pooling(key, pooling)
    return SequenceNumericColumn(key, dimensions[0], trace(normalizer_fn, key), pooling)


def bucketized_column(
    source_column: NumericColumn, boundaries: Sequence[float]
) -> BucketizedColumn:
    source_column = ours(source_column)
    if not isinstance(source_column, NumericColumn):
        raise ValueError(
            "source_column must be a column generated with numeric_column(). "
            f"Given: {source_column}"
        )
    if len(source_column.shape) > 1:
        raise ValueError(f"source_column must be one-dimensional column. Given: {source_column}")
    if not isinstance(boundaries, (list, tuple)) or not boundaries:
        raise ValueError("boundaries must be a sorted list, and not empty.")
    if any(a >= b for a, b in zip(boundaries, boundaries[1:])):
        raise ValueError("boundaries must be a sorted list.")
    if source_column.normalizer != Normalizer():
        raise ValueError(
            f"bucketized_column of '{source_column.key}': its source has a normalizer_fn; "
            "give boundaries of the value as it is, and a source without normalizer_fn"
        )
    return BucketizedColumn(source_column, tuple(float(x) for x in boundaries))


def categorical_column_with_vocabulary_list(
    key: str,
    vocabulary_list: Iterable[Any],
    dtype: Any = None,
    default_value: int = -1,
    num_oov_buckets: int = 0,
) -> VocabularyColumn:
    check_key(key)
    words = list(vocabulary_list)
    if not words:
        raise ValueError(f"vocabulary_list {words} must be non-empty, column_name: {key}")
    if len(set(words)) != len(words):
        raise ValueError(f"Duplicate keys in vocabulary_list {words}, column_name: {key}")
    is_text = [isinstance(word, (str, bytes)) for word in words]
    kind = STRING if all(is_text) else INT
    if any(is_text) != all(is_text) or (kind == INT and any(word != int(word) for word in words)):
        raise ValueError(f"column_name: {key} vocabulary: dtype must be string or integer.")
    if dtype is not None and type_name(dtype) != kind:
        raise ValueError(
            f"dtype {dtype} and vocabulary dtype {kind} do not match, column_name: {key}"
        )
    check_oov(key, num_oov_buckets, default_value != -1)
    text = [
        word.decode() if isinstance(word, bytes) else word if kind == STRING else str(int(word))
        for word in words
    ]
    return VocabularyColumn(
        key, kind, tuple(text), num_oov_buckets=num_oov_buckets, default_value=default_value
    )


def categorical_column_with_vocabulary_file(
    key: str,
    vocabulary_file: str,
    vocabulary_size: Optional[int] = None,
    dtype: Any = "string",
    default_value: Optional[int] = None,
    num_oov_buckets: int = 0,
    file_format: Optional[str] = None,
) -> VocabularyColumn:
    check_key(key)
    if not vocabulary_file:
        raise ValueError(f"Missing vocabulary_file in {key}.")
    if file_format not in (None, "text"):
        raise ValueError(f"vocabulary_file in {key}: Muster reads text, one word a line")
    if vocabulary_size is not None and vocabulary_size < 1:
        raise ValueError(f"Invalid vocabulary_size in {key}.")
    check_oov(key, num_oov_buckets, default_value is not None)
    kind = string_or_int(dtype, key)
    default = -1 if default_value is None else default_value
    file = str(vocabulary_file)
    return VocabularyColumn(key, kind, (), file, vocabulary_size, num_oov_buckets, default)


def categorical_column_with_identity(
    key: str, num_buckets: int, default_value: Optional[int] = None
) -> IdentityColumn:
    check_key(key)
    if num_buckets < 1:
        raise ValueError(f"num_buckets {num_buckets} < 1, column_name {key}")
    if default_value is not None and not 0 <= default_value < num_buckets:
        raise ValueError(
            f"default_value {default_value} not in range [0, {num_buckets}), column_name {key}"
        )
    return IdentityColumn(key, INT, num_buckets, default_value)


def categorical_column_with_hash_bucket(
    key: str, hash_bucket_size: int, dtype: Any = "string"
) -> HashedColumn:
    check_key(key)
    if hash_bucket_size is None:
        raise ValueError(f"hash_bucket_size must be set. key: {key}")
    if hash_bucket_size < 1:
        raise ValueError(
            f"hash_bucket_size must be at least 1. hash_bucket_size: {hash_bucket_size}, key: {key}"
        )
    return HashedColumn(key, string_or_int(dtype, key), hash_bucket_size)


def crossed_column(
    keys: Sequence[Union[str, CategoricalColumn]],
    hash_bucket_size: int,
    hash_key: Optional[int] = None,
) -> CrossedColumn:
    if not hash_bucket_size or hash_bucket_size < 1:
        raise ValueError(f"hash_bucket_size must be > 1. hash_bucket_size: {hash_bucket_size}")
    if not keys or len(keys) < 2:
        raise ValueError(f"keys must be a list with length > 1. Given: {keys}")
    keys = [ours(key) for key in keys]
    for key in keys:
        if not isinstance(key, (str, CategoricalColumn)):
            raise ValueError(
                "Unsupported key type. All keys must be either string, or categorical column "
                f"except HashedCategoricalColumn. Given: {key}"
            )
        if isinstance(key, (WeightedColumn, SequenceColumn)):
            raise ValueError(f"Unsupported key type: a cross takes no weights. Given: {key}")
        if isinstance(key, HashedColumn):
            raise ValueError(
                "categorical_column_with_hash_bucket is not supported for crossing. Hashing "
                "before crossing will increase probability of collision. Instead, use the feature "
                f"name as a string. Given: {key}"
            )
    return CrossedColumn(tuple(keys), hash_bucket_size, hash_key)


def indicator_column(categorical_column: CategoricalColumn) -> IndicatorColumn:
    categorical_column = check_categorical(categorical_column)
    if isinstance(categorical_column, SequenceColumn):
        raise ValueError(
            f"In indicator_column: {categorical_column.name}. categorical_column must not be of "
            "type SequenceCategoricalColumn: use a non-sequence categorical_column_with_*"
        )
    return IndicatorColumn(categorical_column)


def weighted_categorical_column(
    categorical_column: CategoricalColumn, weight_feature_key: str, dtype: Any = "float32"
) -> WeightedColumn:
    categorical_column = check_categorical(categorical_column)
    if type_name(dtype) not in (INT, FLOAT):
        raise ValueError(f"dtype {dtype} is not convertible to float.")
    if isinstance(categorical_column, (WeightedColumn, CrossedColumn, SequenceColumn)):
        raise ValueError(
            f"weighted_categorical_column of {categorical_column.name}: Muster weighs vocabulary, "
            "hash, identity and bucketized columns"
        )
    return WeightedColumn(categorical_column, weight_feature_key)


def embedding_column(
    categorical_column: CategoricalColumn,
    dimension: int,
    combiner: str = "mean",
    initializer: Any = None,
    ckpt_to_load_from: Optional[str] = None,
    tensor_name_in_ckpt: Optional[str] = None,
    max_norm: Optional[float] = None,
    trainable: bool = True,
    use_safe_embedding_lookup: bool = True,
    pooling: Optional[str] = None,
) -> EmbeddingColumn:
    """Rows begin as a truncated normal with stddev 1/sqrt(dimension), as in TensorFlow.

    `pooling` is Muster's addition: how the steps of a sequence column become one.
    """
    del use_safe_embedding_lookup  # rows without ids are always zeros
    categorical_column = check_categorical(categorical_column)
    name = categorical_column.name
    check_embedding(name, dimension, combiner, initializer, ckpt_to_load_from, tensor_name_in_ckpt)
    if not trainable:
        raise unsupported(name, "trainable=False", "a trained embedding")
    check_sequence(categorical_column, pooling)
    return EmbeddingColumn(categorical_column, dimension, combiner, max_norm, pooling)


def shared_embeddings(
    categorical_columns: Sequence[CategoricalColumn],
    dimension: int,
    combiner: str = "mean",
    initializer: Any = None,
    shared_embedding_collection_name: Optional[str] = None,
    ckpt_to_load_from: Optional[str] = None,
    tensor_name_in_ckpt: Optional[str] = None,
    max_norm: Optional[float] = None,
    trainable: bool = True,
    use_safe_embedding_lookup: bool = True,
    pooling: Optional[str] = None,
) -> List[EmbeddingColumn]:
    """Embeddings of several columns in one table."""
    columns = [check_categorical(column) for column in categorical_columns]
    for column in columns:
        if type(base(column)) is not type(base(columns[0])):
            raise ValueError(
                "To use shared_embedding_column, all categorical_columns must have the same type, "
                "or be weighted_categorical_column or sequence column of the same type. Given "
                f"column: {columns[0]} does not match given column: {column}"
            )
    name = shared_embedding_collection_name or (
        "_".join(sorted(column.name for column in columns)) + "_shared_embedding"
    )
    made = [
        embedding_column(
            column,
            dimension,
            combiner,
            initializer,
            ckpt_to_load_from,
            tensor_name_in_ckpt,
            max_norm,
            trainable,
            use_safe_embedding_lookup,
            pooling,
        )
        for column in columns
    ]
    return [replace(column, shared=name) for column in made]


shared_embedding_columns = shared_embeddings  # TensorFlow 1's name


def sequence_categorical_column_with_identity(
    key: str, num_buckets: int, default_value: Optional[int] = None
) -> SequenceColumn:
    return SequenceColumn(categorical_column_with_identity(key, num_buckets, default_value))


def sequence_categorical_column_with_hash_bucket(
    key: str, hash_bucket_size: int, dtype: Any = "string"
) -> SequenceColumn:
    return SequenceColumn(categorical_column_with_hash_bucket(key, hash_bucket_size, dtype))


def sequence_categorical_column_with_vocabulary_file(
    key: str,
    vocabulary_file: str,
    vocabulary_size: Optional[int] = None,
    num_oov_buckets: int = 0,
    default_value: Optional[int] = None,
    dtype: Any = "string",
) -> SequenceColumn:
    return SequenceColumn(
        categorical_column_with_vocabulary_file(
            key, vocabulary_file, vocabulary_size, dtype, default_value, num_oov_buckets
        )
    )


def sequence_categorical_column_with_vocabulary_list(
    key: str,
    vocabulary_list: Iterable[Any],
    dtype: Any = None,
    default_value: int = -1,
    num_oov_buckets: int = 0,
) -> SequenceColumn:
    return SequenceColumn(
        categorical_column_with_vocabulary_list(
            key, vocabulary_list, dtype, default_value, num_oov_buckets
        )
    )


def make_parse_example_spec(feature_columns: Iterable[FeatureColumn]) -> Dict[str, Any]:
    """Returns feature name -> FixedLenFeature or VarLenFeature: TensorFlow's classes if it is
    imported."""
    result: Dict[str, Any] = {}
    for column in map(ours, feature_columns):
        if not isinstance(column, FeatureColumn):
            raise ValueError(
                f"All feature_columns must be FeatureColumn instances. Given: {column}"
            )
        for key, value in column.parse_example_spec.items():
            if key in result and result[key] != value:
                raise ValueError(
                    f"feature_columns contain different parse_spec for key {key}. "
                    f"Given {value} and {result[key]}"
                )
            result[key] = value
    return result
