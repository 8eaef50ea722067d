"""One feature of a batch, in any form that an input function gives it, as flat values and their
rows.

Accepts lists, numpy arrays, pandas columns, tensors, sparse and ragged values; none of those
libraries is imported.
"""

from __future__ import annotations

import array
import sys
from typing import Any, Iterable, List, NamedTuple, Optional, Sequence

INT, FLOAT, STRING = "int", "float", "string"

_KINDS = {"b": INT, "i": INT, "u": INT, "f": FLOAT, "S": STRING, "U": STRING}


class Cells(NamedTuple):
    """`values` is a numpy array of numbers, or a list; `lengths` has the number of values per row
    (None: one each)."""

    kind: str
    rows: int
    values: Any
    lengths: Optional[List[int]] = None
    padded: bool = False  # '' and -1 are not values, as in a dense tensor of several values per row
    rank: int = 2  # rank of the given value; above 2, `lengths` counts all values of a row


def cells(value: Any, name: str) -> Cells:
    """Makes Cells from a column. Raises ValueError, with `name`, if it is not a column of a batch.
    """
    if hasattr(value, "dense_shape") and hasattr(value, "indices"):
        return _sparse(value, name)
    if hasattr(value, "row_splits"):
        splits = [int(x) for x in _plain(value.row_splits)]
        lengths = [end - begin for begin, end in zip(splits, splits[1:])]
        flat = _flat(_plain(value.values), name)
        return Cells(flat.kind, len(lengths), flat.values, lengths)
    value = _plain(value)
    if hasattr(value, "dtype") and hasattr(value, "ndim"):
        return _array(value, name)
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise ValueError(f"feature '{name}': a batch has a list of values a feature, not {value!r}")
    return _list(list(value), name)


def _plain(value: Any) -> Any:
    """Converts an eager tensor or a pandas column to a numpy array."""
    if hasattr(value, "to_numpy"):
        return value.to_numpy()
    if hasattr(value, "numpy") and callable(value.numpy):
        return value.numpy()
    return value


def _array(value: Any, name: str) -> Cells:
    if value.ndim == 0:
        raise ValueError(f"feature '{name}' has rank 0: a batch has a value for each row")
    rows = int(value.shape[0])
    if value.ndim == 1 or value.size == rows:
        flat = _flat(value.reshape(-1), name)
        return Cells(flat.kind, rows, flat.values)
    flat = _flat(value.reshape(-1), name)
    width = int(value.size) // rows if rows else 0
    lengths = [width] * rows
    return Cells(flat.kind, rows, flat.values, lengths, padded=True, rank=int(value.ndim))


def _sparse(value: Any, name: str) -> Cells:
    rows = int(_plain(value.dense_shape)[0])
    lengths = [0] * rows
    for row in _plain(value.indices):
        lengths[int(row[0])] += 1
    flat = _flat(_plain(value.values), name)
    return Cells(flat.kind, rows, flat.values, lengths)


def _list(value: List[Any], name: str) -> Cells:
    rank = 2
    while _is_deep(value):
        value, rank = [[cell for part in row for cell in part] for row in value], rank + 1
    nested = [row for row in value if isinstance(row, (list, tuple)) or hasattr(row, "ndim")]
    nested = [row for row in nested if not (hasattr(row, "ndim") and row.ndim == 0)]
    if not nested:
        return _flat(value, name)
    if len(nested) != len(value):
        raise ValueError(f"feature '{name}' mixes values with lists of values")
    lengths = [len(row) for row in value]
    flat = _flat([cell for row in value for cell in row], name)
    if all(length == 1 for length in lengths):
        return flat
    return Cells(flat.kind, len(value), flat.values, lengths, padded=True, rank=rank)


def _is_deep(rows: List[Any]) -> bool:
    """Whether all rows are lists of lists (or of arrays)."""
    return bool(rows) and all(
        _is_sequence(row) and len(row) > 0 and all(_is_sequence(part) for part in row)
        for row in rows
    )


def _is_sequence(value: Any) -> bool:
    return isinstance(value, (list, tuple)) or getattr(value, "ndim", 0) > 0


def _flat(value: Any, name: str) -> Cells:
    if hasattr(value, "dtype"):
        kind = _KINDS.get(value.dtype.kind)
        if kind == STRING or value.dtype.kind == "O":
            value = value.tolist()
        elif kind is not None:
            return Cells(kind, len(value), value)
        else:
            raise ValueError(f"feature '{name}' has values of type {value.dtype}")
    return Cells(_kind_of(value, name), len(value), value)


def _kind_of(values: Sequence[Any], name: str) -> str:
    kinds = {type(value) for value in values}
    if all(issubclass(kind, (str, bytes, type(None))) for kind in kinds):
        return STRING  # also if there are no values
    if all(issubclass(kind, int) or _numpy_kind(kind) == INT for kind in kinds):
        return INT
    if all(issubclass(kind, (int, float)) or _numpy_kind(kind) for kind in kinds):
        return FLOAT
    names = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise ValueError(f"feature '{name}' mixes values of the types {names}")


def _numpy_kind(kind: type) -> Optional[str]:
    numpy = sys.modules.get("numpy")
    if numpy is None or not issubclass(kind, numpy.generic):
        return None
    return _KINDS.get(numpy.dtype(kind).kind)


def as_bytes(values: Sequence[Any]) -> List[bytes]:
    """Converts strings to UTF-8; None becomes the empty string."""
    return [
        value if isinstance(value, bytes) else b"" if value is None else value.encode()
        for value in values
    ]


def numbers(values: Any, kind: str, name: str) -> bytes:
    """Converts to little-endian int64 or float32. Raises ValueError for a fraction or a NaN in an
    int column."""
    if hasattr(values, "astype"):
        if kind == INT and values.dtype.kind == "f" and not (abs(values) < 2.0**63).all():
            raise _no_int(name)
        out = values.astype("<i8" if kind == INT else "<f4")
        if kind == INT and not (out == values).all():
            raise ValueError(f"feature '{name}': its floats are not whole numbers")
        return bytes(out.tobytes())
    if kind == FLOAT:
        return array.array("f", [float(value) for value in values]).tobytes()
    try:
        whole = [int(value) for value in values]
    except (ValueError, OverflowError):
        raise _no_int(name) from None
    if any(a != b for a, b in zip(whole, values)):
        raise ValueError(f"feature '{name}': its floats are not whole numbers")
    return array.array("q", whole).tobytes()


def _no_int(name: str) -> ValueError:
    return ValueError(
        f"feature '{name}' is int, and has NaN, infinity or a number that is too large for an int: give the "
        "number that stands for a missing one, leave such rows out, or make the input a float"
    )


def truncated(values: Any) -> Any:
    """Cuts off the fractions of numbers, towards 0."""
    return values.astype("<i8") if hasattr(values, "astype") else [int(value) for value in values]


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
