"""Inputs: files that `muster` reads itself, and TensorFlow's functions for arrays and tables."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

__all__ = ["FilesInput", "csv", "numpy_input_fn", "pandas_input_fn", "records"]


@dataclass(frozen=True)
class FilesInput:
    """Files for an input function to return: no row passes through Python.

    label: the column or feature with the labels. types: "int", "float" or "string" for columns that
    only crosses use (string by default). lists: columns with several values. missing: the values
    that count as missing. defaults: the values that replace missing ones.
    """

    patterns: Tuple[str, ...]
    label: str = "label"
    batch_size: int = 128
    num_epochs: Optional[int] = 1  # None: indefinitely
    shuffle: bool = True  # shuffles training data; else rows come in order
    types: Mapping[str, str] = field(default_factory=dict)
    lists: Sequence[str] = ()
    missing: Mapping[str, Any] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.batch_size < 1:
            raise ValueError(f"batch_size {self.batch_size}: it must be at least 1")
        if self.num_epochs is not None and self.num_epochs < 1:
            raise ValueError(f"num_epochs {self.num_epochs}: at least 1, or None indefinitely")


def csv(files: Union[str, Sequence[str]], **options: Any) -> FilesInput:
    """CSV files with a header; names must end in .csv or .csv.gz. `options` are FilesInput's."""
    return FilesInput(_patterns(files), **options)


def records(files: Union[str, Sequence[str]], **options: Any) -> FilesInput:
    """TFRecord files of tf.Example, or JSON lines (.jsonl). `options` are FilesInput's."""
    return FilesInput(_patterns(files), **options)


def _patterns(files: Union[str, Sequence[str]]) -> Tuple[str, ...]:
    patterns = (str(files),) if isinstance(files, str) or hasattr(files, "parts") else tuple(files)
    if not patterns:
        raise ValueError("no files were given")
    return tuple(str(pattern) for pattern in patterns)


def numpy_input_fn(
    x: Any,
    y: Any = None,
    batch_size: int = 128,
    num_epochs: Optional[int] = 1,
    shuffle: Optional[bool] = None,
    queue_capacity: int = 1000,
    num_threads: int = 1,
    seed: Optional[int] = None,
) -> Callable[[], Iterator[Any]]:
    """tf.compat.v1.estimator.inputs.numpy_input_fn: batches of a dict of arrays.

    All rows are shuffled anew in each epoch; as in TensorFlow, a batch may span two epochs.
    """
    del queue_capacity, num_threads
    if not isinstance(shuffle, bool):
        raise ValueError(
            "shuffle must be provided and explicitly set as boolean "
            "(it is recommended to set it as True for training); got {}".format(shuffle)
        )
    if not isinstance(x, Mapping):
        x = {"x": x}  # TensorFlow's name for a single array
    if not x:
        raise ValueError("x cannot be an empty dict")
    lengths = {name: len(values) for name, values in x.items()}
    if y is not None:
        lengths["y"] = len(y)
    if len(set(lengths.values())) != 1:
        raise ValueError(f"Length of tensors in x and y is mismatched: {lengths}")
    rows = next(iter(lengths.values()))
    draw = random.Random(seed)

    def batches() -> Iterator[Any]:
        for picked in _row_batches(rows, batch_size, num_epochs, draw if shuffle else None):
            features = {name: _take(values, picked) for name, values in x.items()}
            yield features if y is None else (features, _take(y, picked))

    return batches


def pandas_input_fn(
    x: Any,
    y: Any = None,
    batch_size: int = 128,
    num_epochs: Optional[int] = 1,
    shuffle: Optional[bool] = None,
    queue_capacity: int = 1000,
    num_threads: int = 1,
    target_column: str = "target",
) -> Callable[[], Iterator[Any]]:
    """tf.compat.v1.estimator.inputs.pandas_input_fn: batches of a DataFrame and a Series."""
    if not hasattr(x, "columns"):
        raise TypeError(f"x must be pandas DataFrame, got {type(x)}")
    if y is not None and len(y) != len(x):
        raise ValueError(f"Index for x and y are mismatched: {len(x)} and {len(y)} rows")
    if target_column in x.columns and y is not None:
        raise ValueError(
            f"Cannot use name {target_column} for the target column: DataFrame already has a "
            f"column with that name: {list(x.columns)}"
        )
    table: Dict[str, Any] = {str(name): x[name].to_numpy() for name in x.columns}
    labels = None if y is None else y.to_numpy() if hasattr(y, "to_numpy") else y
    return numpy_input_fn(table, labels, batch_size, num_epochs, shuffle, queue_capacity)


def _row_batches(
    rows: int, batch_size: int, num_epochs: Optional[int], draw: Optional[random.Random]
) -> Iterator[List[int]]:
    epoch, ready = 0, []
    while rows and (num_epochs is None or epoch < num_epochs):
        order = list(range(rows))
        if draw is not None:
            draw.shuffle(order)
        ready += order
        epoch += 1
        whole = len(ready) - len(ready) % batch_size
        for start in range(0, whole, batch_size):
            yield ready[start : start + batch_size]
        ready = ready[whole:]
    if ready:
        yield ready


def _take(values: Any, rows: List[int]) -> Any:
    if hasattr(values, "dtype"):
        return values[rows]
    return [values[row] for row in rows]
