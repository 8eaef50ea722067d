"""Feature columns as plain data, compared by value. muster.feature_column makes them."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Tuple, Union

from muster.cells import FLOAT, INT, STRING
from muster.normalizer import Normalizer


class FeatureColumn:
    """Base of all columns. `name` is the same as in TensorFlow, and part of the variables' names.
    """

    @property
    def name(self) -> str:
        raise NotImplementedError

    @property
    def parents(self) -> Tuple[FeatureColumn, ...]:
        """Returns the columns that this one is made from."""
        return ()

    @property
    def parse_example_spec(self) -> Dict[str, Any]:
        """Returns the features of a tf.Example that the columns read."""
        spec: Dict[str, Any] = {}
        for parent in self.parents:
            spec.update(parent.parse_example_spec)
        return spec


class CategoricalColumn(FeatureColumn):
    """Base of all columns that give ids."""


def base(column: CategoricalColumn) -> CategoricalColumn:
    """Returns the column without weights and sequence."""
    while isinstance(column, (WeightedColumn, SequenceColumn)):
        column = column.categorical_column
    return column


@dataclass(frozen=True)
class FixedLenFeature:
    """Stands for tf.io.FixedLenFeature if TensorFlow is not imported."""

    shape: Tuple[int, ...]
    dtype: str
    default_value: Any = None


@dataclass(frozen=True)
class VarLenFeature:
    """Stands for tf.io.VarLenFeature if TensorFlow is not imported."""

    dtype: str


@dataclass(frozen=True)
class NumericColumn(FeatureColumn):
    """`size` values per row; `dimensions` is their shape, if that is not (size,)."""

    key: str
    size: int = 1
    default_value: Optional[float] = None
    normalizer: Normalizer = Normalizer()
    dimensions: Tuple[int, ...] = ()

    @property
    def name(self) -> str:
        return self.key

    @property
    def shape(self) -> Tuple[int, ...]:
        return self.dimensions or (self.size,)

    @property
    def parse_example_spec(self) -> Dict[str, Any]:
        default = None if self.default_value is None else (self.default_value,) * self.size
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
    """Words from a list, or from `size` lines (None: all) of a file."""

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
        """Returns the keys; a cross among them is replaced by its own keys."""
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
class WeightedColumn(CategoricalColumn):
    """A categorical column's ids, each with a weight."""

    categorical_column: CategoricalColumn
    weight_feature_key: str

    @property
    def name(self) -> str:
        return f"{self.categorical_column.name}_weighted_by_{self.weight_feature_key}"

    @property
    def parents(self) -> Tuple[FeatureColumn, ...]:
        return (self.categorical_column,)

    @property
    def parse_example_spec(self) -> Dict[str, Any]:
        return {**super().parse_example_spec, self.weight_feature_key: _var_len(FLOAT)}


@dataclass(frozen=True)
class SequenceColumn(CategoricalColumn):
    """A categorical column whose values are the steps of a sequence, in order."""

    categorical_column: CategoricalColumn

    @property
    def name(self) -> str:
        return self.categorical_column.name

    @property
    def parents(self) -> Tuple[FeatureColumn, ...]:
        return (self.categorical_column,)


@dataclass(frozen=True)
class SequenceNumericColumn(FeatureColumn):
    """A sequence of numbers, pooled over its steps of `size` values."""

    key: str
    size: int = 1
    normalizer: Normalizer = Normalizer()
    pooling: str = "mean"

    @property
    def name(self) -> str:
        return self.key

    @property
    def parse_example_spec(self) -> Dict[str, Any]:
        return {self.key: _var_len(FLOAT)}


@dataclass(frozen=True)
class IndicatorColumn(FeatureColumn):
    categorical_column: CategoricalColumn

    @property
    def name(self) -> str:
        return f"{self.categorical_column.name}_indicator"

    @property
    def parents(self) -> Tuple[FeatureColumn, ...]:
        return (self.categorical_column,)


def dense(column: FeatureColumn) -> FeatureColumn:
    """Returns the column as a network reads it: as in TensorFlow, a bucketized one is dense, one-hot.
    """
    return IndicatorColumn(column) if isinstance(column, BucketizedColumn) else column


@dataclass(frozen=True)
class EmbeddingColumn(FeatureColumn):
    """`pooling` replaces the combiner for a sequence. `shared` is the name of a common table."""

    categorical_column: CategoricalColumn
    dimension: int
    combiner: str = "mean"
    max_norm: Optional[float] = None
    pooling: Optional[str] = None
    shared: Optional[str] = None

    @property
    def name(self) -> str:
        kind = "embedding" if self.shared is None else "shared_embedding"
        return f"{self.categorical_column.name}_{kind}"

    @property
    def parents(self) -> Tuple[FeatureColumn, ...]:
        return (self.categorical_column,)


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
