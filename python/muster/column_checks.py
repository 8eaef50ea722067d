"""Checks the arguments of feature_column's functions; TensorFlow's rules are reported in its words.
"""

from __future__ import annotations

from typing import Any, Optional, Sequence, Tuple, Union

from muster.cells import FLOAT, INT, type_name
from muster.columns import CategoricalColumn, SequenceColumn
from muster.tensorflow_columns import ours

POOLINGS = ("sum", "mean", "sqrtn", "max", "last")


def string_or_int(dtype: Any, key: str) -> str:
    kind = type_name(dtype)
    if kind == FLOAT:
        raise ValueError(f"column_name: {key} dtype must be string or integer. dtype: {dtype}.")
    return kind


def check_key(key: Any) -> None:
    if not isinstance(key, str):
        raise ValueError(f"key must be a string. Got: type {type(key)}. Given key: {key}.")


def check_numeric(key: Any, shape: Union[int, Sequence[int]], dtype: Any) -> Tuple[int, ...]:
    """Checks a numeric column, and returns the shape of a row (or a step)."""
    check_key(key)
    if type_name(dtype) not in (INT, FLOAT):
        raise ValueError(f"dtype must be convertible to float. dtype: {dtype}, key: {key}")
    dimensions = (shape,) if isinstance(shape, int) else tuple(shape)
    if any(size < 1 for size in dimensions):
        raise ValueError(f"shape dimensions must be greater than 0. shape: {shape}, key: {key}")
    if not dimensions:
        raise ValueError(f"shape {shape} of '{key}': a row has one value or more: (1,)")
    return tuple(int(size) for size in dimensions)


def check_embedding(
    name: str,
    dimension: int,
    combiner: str,
    initializer: Any,
    ckpt_to_load_from: Optional[str],
    tensor_name_in_ckpt: Optional[str],
) -> None:
    if dimension is None or dimension < 1:
        raise ValueError(f"Invalid dimension {dimension}.")
    if (ckpt_to_load_from is None) != (tensor_name_in_ckpt is None):
        raise ValueError(
            "Must specify both `ckpt_to_load_from` and `tensor_name_in_ckpt` or none of them."
        )
    if combiner not in ("mean", "sum", "sqrtn"):
        raise ValueError(f"embedding of '{name}': combiner '{combiner}' is not mean, sum or sqrtn")
    if initializer is not None:
        raise unsupported(name, "initializer", "the default, or warm_start_from with weights")
    if ckpt_to_load_from is not None:
        raise unsupported(name, "ckpt_to_load_from", "warm_start_from of the estimator")


def check_sequence(column: CategoricalColumn, pooling: Optional[str]) -> None:
    sequence = isinstance(column, SequenceColumn)
    if sequence and pooling is None:
        raise ValueError(
            f"In embedding_column: {column.name}. categorical_column must not be of type "
            "SequenceCategoricalColumn: say how its steps become one, pooling='mean' (Muster's "
            "own), or use a non-sequence categorical_column_with_*"
        )
    if pooling is not None:
        check_pooling(column.name, pooling)
        if not sequence:
            raise ValueError(f"pooling of '{column.name}': it is no sequence column; say combiner")


def check_pooling(name: str, pooling: str) -> None:
    if pooling not in POOLINGS:
        raise ValueError(f"pooling '{pooling}' of '{name}': Muster has {', '.join(POOLINGS)}")


def check_oov(key: str, num_oov_buckets: int, has_default: bool) -> None:
    if num_oov_buckets and has_default:
        raise ValueError(f"Can't specify both num_oov_buckets and default_value in {key}.")
    if num_oov_buckets < 0:
        raise ValueError(f"Invalid num_oov_buckets {num_oov_buckets} in {key}.")


def check_categorical(column: Any) -> CategoricalColumn:
    """Checks a categorical column, and returns a column of TensorFlow as Muster's."""
    column = ours(column)
    if not isinstance(column, CategoricalColumn):
        raise ValueError(
            f"Unsupported input type. Input must be a CategoricalColumn. Given: {column}"
        )
    return column


def unsupported(name: str, argument: str, instead: str) -> ValueError:
    return ValueError(f"embedding of '{name}': Muster has no {argument}; use {instead}")
