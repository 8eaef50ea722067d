"""Record batches of Arrow on their way to a program: as bytes, and as what the program reads.

Programs that are fed with other rows need no pyarrow.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, List, Tuple

# A view is what a program reads of a batch, made once for all of its rows. A slice of it can be taken.
View = Callable[[Any], Any]
TEXTS = "text string"  # the schema of of_texts(), in Spark's words
BLOCK_BYTES = 1 << 21  # the most that a block on its way should have


def blocks_of(batches: Iterator[Any], skip: int) -> Iterator[Any]:
    """The batches without their first `skip` rows, cut where one has more than BLOCK_BYTES. None is empty."""
    for batch in batches:
        skipped = min(skip, len(batch))
        skip -= skipped
        rows = max(1, BLOCK_BYTES * len(batch) // max(batch.nbytes, 1))
        for first in range(skipped, len(batch), rows):
            yield batch.slice(first, rows)


def dump(batch: Any) -> Tuple[bytes, Any]:
    """The schema and the batch, as messages of Arrow's IPC; the batch is in a buffer."""
    return batch.schema.serialize().to_pybytes(), batch.serialize()


def load(schema: bytes, data: Any) -> Any:
    """The batch that dump() has written. It uses the memory of its data."""
    from pyarrow import ipc, py_buffer

    return ipc.read_record_batch(py_buffer(data), ipc.read_schema(py_buffer(schema)))


def of_texts(texts: List[str]) -> Iterator[Any]:
    """A batch of one row for each, with the schema TEXTS."""
    import pyarrow

    for text in texts:
        yield pyarrow.RecordBatch.from_pydict({"text": [text]})


class Columns:
    """Columns by name, of which a slice of rows can be taken."""

    def __init__(self, columns: Dict[str, Any], rows: int) -> None:
        self._columns, self._rows = columns, rows

    def __len__(self) -> int:
        return self._rows

    def __getitem__(self, rows: slice) -> Columns:
        begin, end, _ = rows.indices(self._rows)
        return Columns({name: column[begin:end] for name, column in self._columns.items()}, end - begin)

    def all(self) -> Dict[str, Any]:
        return self._columns

    def column(self, name: str) -> Any:
        if name not in self._columns:
            raise ValueError(
                f"the DataFrame that is fed has no column '{name}'; it has: {', '.join(self._columns)}"
            )
        return self._columns[name]


def batch_of(batch: Any) -> Any:
    """The view that is the batch itself."""
    return batch


def rows_of(batch: Any) -> List[Any]:
    """The rows as pyspark's Row, which has the values by position and by name."""
    from pyspark.sql import Row

    names = batch.schema.names
    rows = []
    for values in zip(*map(_values_of, batch.columns)):
        row = Row(*values)
        row.__fields__ = names
        rows.append(row)
    return rows


def lists_of(batch: Any) -> Columns:
    """Columns of Python's objects."""
    return Columns(dict(zip(batch.schema.names, map(_values_of, batch.columns))), len(batch))


def arrays_of(batch: Any) -> Columns:
    """Columns that are arrays of numpy: of two dimensions for lists that all have the same length."""
    return Columns(dict(zip(batch.schema.names, map(_array_of, batch.columns))), len(batch))


def _values_of(column: Any) -> List[Any]:
    from pyarrow import types

    is_number = types.is_integer(column.type) or types.is_floating(column.type)
    if is_number and column.null_count == 0:
        values: List[Any] = column.to_numpy(zero_copy_only=False).tolist()  # many times as fast
        return values
    return list(column.to_pylist())


def _array_of(column: Any) -> Any:
    from pyarrow import types

    if types.is_list(column.type) and column.null_count == 0:
        values, lengths = column.flatten(), column.value_lengths().unique().to_pylist()
        if values.null_count == 0 and len(lengths) == 1:
            return values.to_numpy(zero_copy_only=False).reshape(len(column), lengths[0])
    return column.to_numpy(zero_copy_only=False)


def joined(parts: List[Columns]) -> Columns:
    """The rows of several views by arrays_of in one."""
    arrays = {name: _joined([part.column(name) for part in parts]) for name in parts[0].all()}
    return Columns(arrays, sum(map(len, parts)))


def _joined(arrays: List[Any]) -> Any:
    import numpy as np

    if len({array.shape[1:] for array in arrays}) == 1:
        return np.concatenate(arrays)
    rows = [row for array in arrays for row in array]
    lists = np.empty(len(rows), dtype=object)  # of several lengths
    for number, row in enumerate(rows):
        lists[number] = row
    return lists
