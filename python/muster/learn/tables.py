"""X as columns of numpy arrays, from arrays, lists, pandas DataFrames and Arrow tables.

pandas and pyarrow are recognised by attributes of their objects; neither is imported.
"""

from __future__ import annotations

import datetime
import numbers
from dataclasses import dataclass
from typing import Any, List, Optional

import numpy as np

_DAY = np.timedelta64(1, "D")
_TIME = "datetime64[s]"
_DURATION = "timedelta64[us]"


@dataclass
class Table:
    """Rows of features: either a matrix of numbers, or columns by name.

    names: None if X has none. matrix: float64 [rows, columns], NaN for a missing value. columns:
    numbers as float64, NaN if missing; times as datetime64[s] and durations as timedelta64[us],
    NaT if missing; anything else as objects, None if missing.
    """

    rows: int
    width: int
    names: Optional[List[str]] = None
    matrix: Optional[Any] = None
    columns: Optional[List[Any]] = None

    def column_names(self) -> List[str]:
        """Returns the names, or x0, x1, ... if there are none."""
        return self.names or [f"x{i}" for i in range(self.width)]


def read(X: Any, owner: str) -> Table:
    """Raises ValueError or TypeError if X has no rows of features; `owner` is for messages."""
    if hasattr(X, "toarray") and hasattr(X, "nnz"):
        raise TypeError(
            f"Sparse data was passed to {owner}, but dense data is required. Use X.toarray() to "
            "convert it to a dense numpy array; in a Pipeline, OneHotEncoder(sparse_output=False) and "
            "ColumnTransformer(..., sparse_threshold=0) give one."
        )
    if hasattr(X, "column_names") and hasattr(X, "schema"):
        names = list(X.column_names)
        columns = [_arrow_column(X.column(i)) for i in range(len(names))]
        return _checked(Table(int(X.num_rows), len(names), _unique(names), columns=columns), owner)
    if hasattr(X, "iloc") and hasattr(X, "columns"):
        columns = [_pandas_column(X.iloc[:, i]) for i in range(X.shape[1])]
        table = Table(int(X.shape[0]), int(X.shape[1]), _names(X.columns), columns=columns)
        return _checked(table, owner)
    return _checked(_array(X, owner), owner)


def as_numbers(values: Any, name: str) -> Any:
    """Returns a column as float64, NaN for a missing value. Raises ValueError for others."""
    if values.dtype.kind == "f":
        return values
    if values.dtype.kind == "m":
        raise ValueError(f"X: column '{name}' held numbers when the model was fitted; now it has durations")
    out = np.empty(len(values), np.float64)
    for i, value in enumerate(values.tolist()):
        try:
            out[i] = np.nan if value is None else float(value)
        except (TypeError, ValueError):
            raise ValueError(
                f"X: column '{name}' held numbers when the model was fitted; row {i} has {value!r}"
            ) from None
    return out


def as_days(values: Any, name: str) -> Any:
    """Returns a column of durations as days, NaN for a missing value. Raises ValueError for others."""
    if values.dtype.kind == "m":
        return np.where(np.isnat(values), np.nan, values / _DAY)
    if all(_is_missing(value) for value in values):
        return np.full(len(values), np.nan)
    raise ValueError(f"X: column '{name}' held durations when the model was fitted; now it has {values[0]!r}")


def as_times(values: Any, name: str) -> Any:
    """Returns a column as datetime64[s], NaT for a missing value. Raises ValueError for others."""
    if values.dtype.kind == "M":
        return values
    out = np.full(len(values), "NaT", _TIME)
    for i, value in enumerate(values):
        if hasattr(value, "toordinal"):
            out[i] = _time(value)
        elif value is not None and value == value:
            raise ValueError(
                f"X: column '{name}' held times when the model was fitted; row {i} has {value!r}"
            )
    return out


def as_words(values: Any) -> List[Optional[bytes]]:
    """Returns a column as UTF-8, None for a missing value. A whole number has no fraction: 1.0 is
    1."""
    known: dict[Any, Optional[bytes]] = {}
    out = []
    for value in values.tolist():
        key = (type(value), value) if isinstance(value, (str, bytes, int, float)) else None
        if key is None or key not in known:
            word = _word(value)
            if key is not None:
                known[key] = word
        out.append(known[key] if key is not None else word)
    return out


def _word(value: Any) -> Optional[bytes]:
    if value is None or value != value:
        return None
    if isinstance(value, bytes):
        return value or None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).encode() or None


def _array(X: Any, owner: str) -> Table:
    array = np.asarray(X)
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported\n{array}\n")
    if array.ndim == 0:
        raise ValueError(f"Expected 2D array, got scalar array instead:\narray={array}.")
    if array.ndim == 1:
        raise ValueError(
            f"Expected 2D array, got 1D array instead:\narray={array}.\nReshape your data either "
            "using array.reshape(-1, 1) if your data has a single feature or array.reshape(1, -1) "
            "if it contains a single sample."
        )
    if array.ndim > 2:
        raise ValueError(f"Found array with dim {array.ndim}. {owner} expected <= 2.")
    rows, width = array.shape
    if array.dtype.kind in "biuf":
        return Table(rows, width, matrix=array.astype(np.float64))
    columns = [plain(array[:, i]) for i in range(width)]
    if columns and all(column.dtype.kind == "f" for column in columns):
        return Table(rows, width, matrix=np.column_stack(columns))
    return Table(rows, width, columns=columns)


def _pandas_column(series: Any) -> Any:
    if isinstance(series.dtype, np.dtype):
        return plain(series.to_numpy())
    category = hasattr(series, "cat")
    values = series.astype(object).to_numpy(dtype=object, na_value=None)
    return _missing_as_none(values) if category else plain(values)


def _arrow_column(column: Any) -> Any:
    category = hasattr(column.type, "value_type") and hasattr(column.type, "index_type")
    if category:
        column = column.cast(column.type.value_type)
    kind = str(column.type)
    if kind.startswith(("int", "uint", "float", "double", "half", "timestamp", "date", "duration")):
        if kind.startswith("date"):
            column = column.cast("timestamp[ms]")
        values = np.asarray(column)
    else:
        values = np.array(column.to_pylist() + [None], dtype=object)[:-1]
    return _missing_as_none(values.astype(object)) if category else plain(values)


def plain(values: Any) -> Any:
    """Returns numbers and truth values as float64, times as datetime64[s], durations as
    timedelta64[us], others as objects."""
    kind = values.dtype.kind
    if kind in "biuf":
        return values.astype(np.float64)
    if kind == "M":
        return values.astype(_TIME)
    if kind == "m":
        return values.astype(_DURATION)
    if kind == "c":
        raise ValueError(f"Complex data not supported\n{values}\n")
    values = _missing_as_none(values.astype(object))
    given = [value for value in values if value is not None]
    if given and all(isinstance(value, (numbers.Number, np.generic)) for value in given):
        if any(isinstance(value, complex) for value in given):
            raise ValueError(f"Complex data not supported\n{values}\n")
        if not any(isinstance(value, (np.str_, np.bytes_)) for value in given):
            return np.array([np.nan if value is None else float(value) for value in values])
    if given and all(isinstance(value, datetime.timedelta) for value in given):
        return np.array(values, _DURATION)
    if given and all(hasattr(value, "toordinal") for value in given):
        return np.array([None if value is None else _time(value) for value in values], _TIME)
    return values


def _time(value: Any) -> Any:
    """Converts a date or a time of Python or pandas; without a zone it is UTC."""
    if getattr(value, "tzinfo", None) is not None:
        value = value.astimezone(datetime.timezone.utc).replace(tzinfo=None)
    return np.datetime64(value, "s")


def _missing_as_none(values: Any) -> Any:
    """Replaces NaN, NaT and pandas's NA, which do not equal themselves, by None in objects."""
    out = np.empty(len(values), object)
    for i, value in enumerate(values):
        out[i] = None if _is_missing(value) else value
    return out


def _is_missing(value: Any) -> bool:
    if value is None:
        return True
    if isinstance(value, (str, bytes)):
        return False
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # pandas's NA has no truth value
        return True


def _names(given: Any) -> Optional[List[str]]:
    """Returns the names of a DataFrame's columns; None if they are numbers."""
    texts = [isinstance(name, str) for name in given]
    if not any(texts):
        return None
    if not all(texts):
        raise TypeError(
            "Feature names are only supported if all input features have string names, but your "
            f"input has {sorted({type(name).__name__ for name in given})} as feature name / column "
            "name types. If you want feature names to be stored and validated, you must convert "
            "them all to strings, by using X.columns = X.columns.astype(str) for example."
        )
    return _unique(list(given))


def _unique(names: List[str]) -> List[str]:
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(f"X: columns have the same name: {repeated}")
    if "" in names:
        raise ValueError(f"X: column {names.index('')} has no name ('')")
    return names


def _checked(table: Table, owner: str) -> Table:
    shape = (table.rows, table.width)
    for count, what in ((table.rows, "sample(s)"), (table.width, "feature(s)")):
        if count == 0:
            raise ValueError(
                f"Found array with 0 {what} (shape={shape}) while a minimum of 1 is required by "
                f"{owner}."
            )
    blocks = [table.matrix] if table.matrix is not None else table.columns or []
    if any(block.dtype.kind == "f" and np.isinf(block).any() for block in blocks):
        raise ValueError(
            "Input X contains infinity or a value too large for dtype('float64')."
        )
    return table
