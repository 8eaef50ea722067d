"""Writes batches as `muster` reads them from a pipe or a file: docs/formats/batch_stream.md."""

from __future__ import annotations

import array
import struct
import zlib
from typing import Any, List, Mapping, NamedTuple, Sequence, Tuple

from muster import cells as cells_lib
from muster.binary import Write
from muster.cells import FLOAT, INT, STRING, Cells

_TYPES = {INT: 0, FLOAT: 1, STRING: 2}


class StreamColumn(NamedTuple):
    """A column of the stream: its name, "int", "float" or "string", and whether rows are lists.

    weighs: the column whose values these are weights of; the weights of its padding are left out.
    truncated: fractions are cut off, as TensorFlow does with the keys of a cross.
    """

    name: str
    type: str
    list: bool = False
    weighs: str = ""
    truncated: bool = False


class BatchWriter:
    """Writes a stream with `write`, batch by batch. Call `end` after the last batch."""

    def __init__(self, write: Write, columns: Sequence[StreamColumn]) -> None:
        self._write = write
        self._columns = list(columns)
        header = struct.pack("<I", len(self._columns))
        for column in self._columns:
            name = column.name.encode()
            header += struct.pack("<BBH", _TYPES[column.type], column.list, len(name)) + name
        header += struct.pack("<I", zlib.crc32(header))
        write(b"MUSTRBAT" + struct.pack("<II", 1, len(header)) + header)

    def write(self, batch: Mapping[str, Any]) -> int:
        """Writes one batch and returns its rows. Raises ValueError for what does not fit."""
        parts: List[bytes] = []
        rows = -1
        for column in self._columns:
            if column.name not in batch:
                raise ValueError(f"Feature {column.name} is not in features dictionary.")
            given = cells_lib.cells(batch[column.name], column.name)
            if rows not in (-1, given.rows):
                raise ValueError(
                    f"feature '{column.name}' has {given.rows} rows, others have {rows}"
                )
            rows = given.rows
            if column.weighs and column.list:
                given = _without_padding_of(batch[column.weighs], column.weighs, given)
            _append(given, column, parts)
        if rows > 0:
            payload = b"".join(parts)
            self._write(struct.pack("<IIQ", rows, zlib.crc32(payload), len(payload)))
            self._write(payload)
        return max(rows, 0)

    def end(self) -> None:
        self._write(struct.pack("<IIQ", 0, 0, 0))


def _append(given: Cells, column: StreamColumn, parts: List[bytes]) -> None:
    if (column.type == STRING) != (given.kind == STRING) and len(given.values) > 0:
        raise ValueError(
            f"feature '{column.name}' has values of type {given.kind}, its columns want "
            f"{column.type}"
        )
    values: Any = given.values
    if column.type == STRING:
        values = cells_lib.as_bytes(values)
    if given.rank > 2 and column.type != FLOAT:
        raise ValueError(
            f"feature '{column.name}' has rank {given.rank}: rows of {column.type}s have rank 2"
        )
    lengths = given.lengths
    if lengths is not None and not column.list:
        raise ValueError(
            f"feature '{column.name}' has several values a row; its first batch had one"
        )
    if column.list:
        if lengths is None:
            lengths, dense = [1] * given.rows, True
        else:
            dense = given.padded
        if dense and column.type != FLOAT:
            lengths, values = _drop_padding(lengths, values, b"" if column.type == STRING else -1)
        parts.append(array.array("I", lengths).tobytes())
    if column.type == STRING:
        parts.append(array.array("I", map(len, values)).tobytes())
        parts.append(b"".join(values))
    else:
        if column.truncated:
            values = cells_lib.truncated(values)
        parts.append(cells_lib.numbers(values, column.type, column.name))


def _without_padding_of(weighed: Any, name: str, weights: Cells) -> Cells:
    """Returns the weights of those values that are not padding."""
    ids = cells_lib.cells(weighed, name)
    if not ids.padded or not weights.padded or len(ids.values) != len(weights.values):
        return weights
    padding: Any = -1
    values: Sequence[Any] = ids.values
    if ids.kind == STRING:
        padding, values = b"", cells_lib.as_bytes(values)
    kept = iter([value != padding for value in values])
    lengths, left = [], []
    start = 0
    for length in weights.lengths or ():
        row = [w for w in weights.values[start : start + length] if next(kept)]
        lengths.append(len(row))
        left += row
        start += length
    return Cells(weights.kind, weights.rows, left, lengths)


def _drop_padding(
    lengths: Sequence[int], values: Sequence[Any], padding: Any
) -> Tuple[List[int], List[Any]]:
    kept_lengths, kept, start = [], [], 0
    for length in lengths:
        row = [value for value in values[start : start + length] if value != padding]
        kept_lengths.append(len(row))
        kept += row
        start += length
    return kept_lengths, kept
