"""`tf.feature_column`'s functions: what is computed from a batch's features.

A column is plain data, equal when equal; `muster` computes it under TensorFlow's rules (docs/
features.md). Wrong arguments raise ValueError (TypeError for a normalizer_fn that cannot be
called), as TensorFlow does. What Muster cannot say raises ValueError too, and says what to use.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Tuple, Union

from muster.cells import FLOAT, INT, STRING
from muster.normalizer import Normalizer, trace

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
]


class FeatureColumn:
    """Base of all columns. `name` is TensorFlow's, and part of the variables' names."""

    @property
    def name(self) -> str:
        raise NotImplementedError

    @property
    def parents(self) -> Tuple[FeatureColumn, ...]:
        """The columns this one is made from."""
        return ()

    @property
    def parse_example_spec(self) -> Dict[str, Any]:
        """The features of a tf.Example it reads."""
        spec: Dict[str, Any] = {}
        for parent in self.parents:
            spec.update(parent.parse_example_spec)
        return spec


class CategoricalColumn(FeatureColumn):
    """Gives ids."""


@dataclass(frozen=True)
class FixedLenFeature:
    """tf.io.FixedLenFeature, where TensorFlow is not imported."""

    shape: Tuple[int, ...]
    dtype: str
    default_value: Any = None


@dataclass(frozen=True)
class VarLenFeature:
    """tf.io.VarLenFeature, where TensorFlow is not imported."""

    dtype: str


@dataclass(frozen=True)
class NumericColumn(FeatureColumn):
    key: str
    shape: Tuple[int, ...] = (1,)
    default_value: Optional[float] = None
    normalizer: Normalizer = Normalizer()

    @property
    def name(self) -> str:
        return self.key

    @property
    def parse_example_spec(self) -> Dict[str, Any]:
        default = None if self.default_value is None else (self.default_value,)
        return {self.key: _fixed(self.shape, default)}


@dataclass(frozen=True)
class BucketizedColumn(CategoricalColumn):
    source_column: NumericColumn
    boundaries: Tuple[float, ...]

    @property
    def name(self) -> str:
        return f"{self.source_column.name}_bucketized"

    @property
    def parents(self) -> Tuple[FeatureColumn, ...]:
        return (self.source_column,)


@dataclass(frozen=True)
class _KeyedColumn(CategoricalColumn):
    """A categorical column of one feature; `dtype` is "int" or "string"."""

    key: str
    dtype: str

    @property
    def name(self) -> str:
        return self.key

    @property
    def parse_example_spec(self) -> Dict[str, Any]:
        return {self.key: _var_len(self.dtype)}


@dataclass(frozen=True)
class VocabularyColumn(_KeyedColumn):
    """Words from a list, or `size` lines (None: all) of a file."""

    words: Tuple[str, ...] = ()
    file: Optional[str] = None
    size: Optional[int] = None
    num_oov_buckets: int = 0
    default_value: int = -1


@dataclass(frozen=True)
class IdentityColumn(_KeyedColumn):
    num_buckets: int = 0
    default_value: Optional[int] = None


@dataclass(frozen=True)
class HashedColumn(_KeyedColumn):
    hash_bucket_size: int = 0


@dataclass(frozen=True)
class CrossedColumn(CategoricalColumn):
    keys: Tuple[Union[str, CategoricalColumn], ...]
    hash_bucket_size: int
    hash_key: Optional[int] = None

    def leaves(self) -> List[Union[str, CategoricalColumn]]:
        """The keys, with crosses among them taken apart."""
        out: List[Union[str, CategoricalColumn]] = []
        for key in self.keys:
            out.extend(key.leaves() if isinstance(key, CrossedColumn) else [key])
        return out

    @property
    def name(self) -> str:
        names = [key if isinstance(key, str) else key.name for key in self.leaves()]
        return "_X_".join(sorted(names))

    @property
    def parents(self) -> Tuple[FeatureColumn, ...]:
        return tuple(key for key in self.leaves() if not isinstance(key, str))

    @property
    def parse_example_spec(self) -> Dict[str, Any]:
        spec = super().parse_example_spec
        for key in self.leaves():
            if isinstance(key, str):
                spec.setdefault(key, _var_len(STRING))
        return spec


@dataclass(frozen=True)
class IndicatorColumn(FeatureColumn):
    categorical_column: CategoricalColumn

    @property
    def name(self) -> str:
        return f"{self.categorical_column.name}_indicator"

    @property
    def parents(self) -> Tuple[FeatureColumn, ...]:
        return (self.categorical_column,)


@dataclass(frozen=True)
class EmbeddingColumn(FeatureColumn):
    categorical_column: CategoricalColumn
    dimension: int
    combiner: str = "mean"

    @property
    def name(self) -> str:
        return f"{self.categorical_column.name}_embedding"

    @property
    def parents(self) -> Tuple[FeatureColumn, ...]:
        return (self.categorical_column,)


def numeric_column(
    key: str,
    shape: Union[int, Sequence[int]] = (1,),
    default_value: Any = None,
    dtype: Any = "float32",
    normalizer_fn: Optional[Callable[[Any], Any]] = None,
) -> NumericColumn:
    """`normalizer_fn` may add, subtract, multiply and divide by numbers: `lambda x: (x - 3) / 2`,
    on its own or of `muster.normalizer.log1p(x)`."""
    _check_key(key)
    if type_name(dtype) not in (INT, FLOAT):
        raise ValueError(f"dtype must be convertible to float. dtype: {dtype}, key: {key}")
    if normalizer_fn is not None and not callable(normalizer_fn):
        raise TypeError(f"normalizer_fn must be a callable. Given: {normalizer_fn}")
    dimensions = (shape,) if isinstance(shape, int) else tuple(shape)
    if any(size < 1 for size in dimensions):
        raise ValueError(f"shape dimensions must be greater than 0. shape: {shape}, key: {key}")
    if any(size != 1 for size in dimensions):
        raise ValueError(
            f"numeric_column '{key}' of shape {dimensions}: Muster's numeric columns have one "
            "value a row; give each value a feature and a column of its own"
        )
    if isinstance(default_value, (list, tuple)) and len(default_value) == 1:
        default_value = default_value[0]
    if default_value is not None and not isinstance(default_value, (int, float)):
        raise TypeError(f"default_value must be compatible with dtype. key: {key}")
    default = None if default_value is None else float(default_value)
    return NumericColumn(key, (1,), default, trace(normalizer_fn, key))


def bucketized_column(
    source_column: NumericColumn, boundaries: Sequence[float]
) -> BucketizedColumn:
    if not isinstance(source_column, NumericColumn):
        raise ValueError(
            "source_column must be a column generated with numeric_column(). "
            f"Given: {source_column}"
        )
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
    _check_key(key)
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
    _check_oov(key, num_oov_buckets, default_value != -1)
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
    _check_key(key)
    if not vocabulary_file:
        raise ValueError(f"Missing vocabulary_file in {key}.")
    if file_format not in (None, "text"):
        raise ValueError(f"vocabulary_file in {key}: Muster reads text, one word a line")
    if vocabulary_size is not None and vocabulary_size < 1:
        raise ValueError(f"Invalid vocabulary_size in {key}.")
    _check_oov(key, num_oov_buckets, default_value is not None)
    kind = _string_or_int(dtype, key)
    default = -1 if default_value is None else default_value
    file = str(vocabulary_file)
    return VocabularyColumn(key, kind, (), file, vocabulary_size, num_oov_buckets, default)


def categorical_column_with_identity(
    key: str, num_buckets: int, default_value: Optional[int] = None
) -> IdentityColumn:
    _check_key(key)
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
    _check_key(key)
    if hash_bucket_size is None:
        raise ValueError(f"hash_bucket_size must be set. key: {key}")
    if hash_bucket_size < 1:
        raise ValueError(
            f"hash_bucket_size must be at least 1. hash_bucket_size: {hash_bucket_size}, key: {key}"
        )
    return HashedColumn(key, _string_or_int(dtype, key), hash_bucket_size)


def crossed_column(
    keys: Sequence[Union[str, CategoricalColumn]],
    hash_bucket_size: int,
    hash_key: Optional[int] = None,
) -> CrossedColumn:
    if not hash_bucket_size or hash_bucket_size < 1:
        raise ValueError(f"hash_bucket_size must be > 1. hash_bucket_size: {hash_bucket_size}")
    if not keys or len(keys) < 2:
        raise ValueError(f"keys must be a list with length > 1. Given: {keys}")
    for key in keys:
        if not isinstance(key, (str, CategoricalColumn)):
            raise ValueError(
                "Unsupported key type. All keys must be either string, or categorical column "
                f"except HashedCategoricalColumn. Given: {key}"
            )
        if isinstance(key, HashedColumn):
            raise ValueError(
                "categorical_column_with_hash_bucket is not supported for crossing. Hashing "
                "before crossing will increase probability of collision. Instead, use the feature "
                f"name as a string. Given: {key}"
            )
    return CrossedColumn(tuple(keys), hash_bucket_size, hash_key)


def indicator_column(categorical_column: CategoricalColumn) -> IndicatorColumn:
    _check_categorical(categorical_column)
    return IndicatorColumn(categorical_column)


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
) -> EmbeddingColumn:
    """Rows begin as a truncated normal with stddev 1/sqrt(dimension), as TensorFlow's do."""
    del use_safe_embedding_lookup  # rows without ids are zeros, always
    if dimension is None or dimension < 1:
        raise ValueError(f"Invalid dimension {dimension}.")
    if (ckpt_to_load_from is None) != (tensor_name_in_ckpt is None):
        raise ValueError(
            "Must specify both `ckpt_to_load_from` and `tensor_name_in_ckpt` or none of them."
        )
    _check_categorical(categorical_column)
    name = categorical_column.name
    if combiner not in ("mean", "sum", "sqrtn"):
        raise ValueError(f"embedding of '{name}': combiner '{combiner}' is not mean, sum or sqrtn")
    if initializer is not None:
        raise _unsupported(name, "initializer", "the default, or warm_start_from with weights")
    if ckpt_to_load_from is not None:
        raise _unsupported(name, "ckpt_to_load_from", "warm_start_from of the estimator")
    if max_norm is not None:
        raise _unsupported(name, "max_norm", "l2 of the optimizer")
    if not trainable:
        raise _unsupported(name, "trainable=False", "a trained embedding")
    return EmbeddingColumn(categorical_column, dimension, combiner)


def make_parse_example_spec(feature_columns: Iterable[FeatureColumn]) -> Dict[str, Any]:
    """Feature name -> FixedLenFeature or VarLenFeature: TensorFlow's where it is imported."""
    result: Dict[str, Any] = {}
    for column in feature_columns:
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


def type_name(dtype: Any) -> str:
    """ "int", "float" or "string" for a dtype of TensorFlow, numpy or Python, or its name."""
    name = str(getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or dtype)
    if name.startswith(("int", "uint", "bool")):
        return INT
    if name.startswith(("float", "double", "half", "bfloat")):
        return FLOAT
    if name.startswith(("str", "bytes", "object")):
        return STRING
    raise ValueError(f"unknown dtype {dtype}")


def _string_or_int(dtype: Any, key: str) -> str:
    kind = type_name(dtype)
    if kind == FLOAT:
        raise ValueError(f"column_name: {key} dtype must be string or integer. dtype: {dtype}.")
    return kind


def _check_key(key: Any) -> None:
    if not isinstance(key, str):
        raise ValueError(f"key must be a string. Got: type {type(key)}. Given key: {key}.")


def _check_oov(key: str, num_oov_buckets: int, has_default: bool) -> None:
    if num_oov_buckets and has_default:
        raise ValueError(f"Can't specify both num_oov_buckets and default_value in {key}.")
    if num_oov_buckets < 0:
        raise ValueError(f"Invalid num_oov_buckets {num_oov_buckets} in {key}.")


def _check_categorical(column: Any) -> None:
    if not isinstance(column, CategoricalColumn):
        raise ValueError(
            f"Unsupported input type. Input must be a CategoricalColumn. Given: {column}"
        )


def _unsupported(name: str, argument: str, instead: str) -> ValueError:
    return ValueError(f"embedding of '{name}': Muster has no {argument}; use {instead}")


_EXAMPLE_TYPES = {INT: "int64", FLOAT: "float32", STRING: "string"}


def _fixed(shape: Tuple[int, ...], default: Any) -> Any:
    tf = sys.modules.get("tensorflow")
    if tf is not None:
        return tf.io.FixedLenFeature(shape, tf.float32, default)
    return FixedLenFeature(shape, _EXAMPLE_TYPES[FLOAT], default)


def _var_len(kind: str) -> Any:
    tf = sys.modules.get("tensorflow")
    if tf is not None:
        return tf.io.VarLenFeature(tf.as_dtype(_EXAMPLE_TYPES[kind]))
    return VarLenFeature(_EXAMPLE_TYPES[kind])
