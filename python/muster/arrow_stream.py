"""Arrow's batches as a stream of batches (docs/formats/batch_stream.md), and back. Needs pyarrow.

It imports nothing of this package.

A column of the stream is described as `muster inspect --inputs --json` does: {"name", "type": "int" |
"float" | "string", "list": bool, "truncate": bool, "default": optional}.
"""

import struct
import sys
import zlib
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

try:
    import pyarrow
    from pyarrow import compute, types
except ImportError as error:
    raise ImportError(
        "%s has no package pyarrow: install it (pip install pyarrow): %s" % (sys.executable, error)
    ) from None

Column = Mapping[str, Any]
Write = Callable[[List[Any]], None]  # of all these buffers, one after another

_TYPES = {"int": 0, "float": 1, "string": 2}
_TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}  # a second, by the unit of a timestamp
_WIDTHS = {"int": 8, "float": 4}


class Unfit(ValueError):
    """Values that do not fit their column, or a stream that is none; the text is for the user."""


class StreamWriter:
    """Writes the header when it is made. `where` is what messages begin with."""

    def __init__(self, write: Write, columns: Sequence[Column], where: str) -> None:
        self._write = write
        self._columns = list(columns)
        self.where = where
        header = struct.pack("<I", len(columns))
        for column in columns:
            name = column["name"].encode()
            header += struct.pack("<BBH", _TYPES[column["type"]], column["list"], len(name)) + name
        header += struct.pack("<I", zlib.crc32(header))
        write([b"MUSTRBAT" + struct.pack("<II", 1, len(header)) + header])

    def write(self, batch: Any, fixed: Mapping[str, Any]) -> None:
        """Writes the rows of a record batch. fixed: columns with the same value in all rows.

        Raises Unfit for a value that does not fit its column.
        """
        parts: List[Any] = []
        for column in self._columns:
            name = column["name"]
            if name in fixed:
                array = pyarrow.repeat(fixed[name], batch.num_rows)
            else:
                array = batch.column(batch.schema.get_field_index(name))
            parts += _encode(array, column, self.where)
        crc, size = 0, 0
        for part in parts:
            crc, size = zlib.crc32(part, crc), size + memoryview(part).nbytes
        self._write([struct.pack("<IIQ", batch.num_rows, crc, size), *parts])

    def end(self) -> None:
        self._write([struct.pack("<IIQ", 0, 0, 0)])


def _plain(array: Any) -> Any:
    """Without a dictionary."""
    return array.dictionary_decode() if types.is_dictionary(array.type) else array


def _seconds(array: Any) -> Any:
    """Whole seconds since 1970, rounded down, of dates or times."""
    if types.is_date(array.type):
        return array.cast(pyarrow.timestamp("s")).cast(pyarrow.int64())
    ticks, each = array.cast(pyarrow.int64()), _TICKS[array.type.unit]
    below = compute.if_else(compute.less(ticks, 0), each - 1, 0)  # divide() rounds towards zero
    return compute.divide(compute.subtract(ticks, below), each)


def _convert(array: Any, column: Column, where: str) -> Any:
    """Casts values to int64, float32 or binary."""
    array = _plain(array)
    try:
        return _cast(array, column)
    except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError) as error:
        raise Unfit("%s: column '%s' %s" % (where, column["name"], _why_unfit(array, column, error))) from None


def _cast(array: Any, column: Column) -> Any:
    given, wanted = array.type, column["type"]
    if wanted == "string":
        if types.is_fixed_size_binary(given):
            return array.cast(pyarrow.binary())
        if not (types.is_binary(given) or types.is_large_binary(given)):
            array = array.cast(pyarrow.string())  # numbers as CSV would have them
        return array.cast(pyarrow.binary())
    if wanted == "int" and (types.is_timestamp(given) or types.is_date(given)):
        return _seconds(array)
    if types.is_boolean(given):
        array = array.cast(pyarrow.int8())
    if wanted == "int":
        if types.is_string(given):
            return array.cast(pyarrow.int64())
        if column.get("truncate") and not types.is_integer(given):
            array = compute.trunc(array.cast(pyarrow.float64()))
        return array.cast(pyarrow.int64())
    return array.cast(pyarrow.float32(), safe=False)


def _why_unfit(array: Any, column: Column, error: Exception) -> str:
    """What the values are, which cannot be cast, and what to do."""
    given, wanted = array.type, column["type"]
    is_time = types.is_timestamp(given) or types.is_date(given)
    kind = str(given)
    if is_time or types.is_decimal(given):
        kind = kind.partition("(")[0].partition("[")[0].rstrip("0123456789")  # as SQL has it
    advice = "change the type of the input (words are a string; a label of words lists them)"
    if is_time:
        why, advice = "", "change the type of the input to int, which is its seconds since 1970"
    elif wanted != "string" and (bad := _first_unfit(array, column)) is not None:
        why = ", which the value %s is not" % bad
        if bad in ("'nan'", "'inf'", "'-inf'"):
            advice = "make nulls of such values, as df.replace(float('nan'), None) does, if the input has a default"
        elif types.is_floating(given) or types.is_decimal(given):
            advice = "change the type of the input to float, or give it truncate: true, which leaves out fractions"
    else:
        why = ": %s" % str(error).splitlines()[0].rstrip(".")
    return "is %s, but the model file says %s%s. Cast the column, or %s" % (kind, wanted, why, advice)


def _first_unfit(array: Any, column: Column) -> Optional[str]:
    """The first value that cannot be cast; None if its type cannot."""
    for row in range(len(array)):
        try:
            _cast(array.slice(row, 1), column)
        except pyarrow.ArrowInvalid:
            return "'%.100s'" % array[row].as_py()
        except pyarrow.ArrowNotImplementedError:
            break
    return None


def _buffers(array: Any, column: Column) -> List[Any]:
    """The bytes of a stream's values: those of numbers, or the sizes and the bytes of strings."""
    if column["type"] != "string":
        width = _WIDTHS[column["type"]]
        data = array.buffers()[1]
        if data is None:
            return []
        return [memoryview(data)[array.offset * width : (array.offset + len(array)) * width]]
    _, offsets, data = array.buffers()
    if len(array) == 0:
        return []
    ends = memoryview(offsets).cast("i")[array.offset : array.offset + len(array) + 1]
    sizes = compute.binary_length(array).buffers()[1]
    text = b"" if data is None else memoryview(data)[ends[0] : ends[len(array)]]
    return [memoryview(sizes)[: 4 * len(array)], text]


def _encode_lists(array: Any, column: Column, where: str) -> List[Any]:
    if not _is_list(array):
        values = _convert(array, column, where)
        lengths = compute.cast(values.is_valid(), pyarrow.int32())
        present = values.drop_null() if values.null_count > 0 else values
        return [memoryview(lengths.buffers()[1])[: 4 * len(array)], *_buffers(present, column)]
    values = _convert(compute.list_flatten(array), column, where)
    lengths = compute.fill_null(compute.list_value_length(array), 0).cast(pyarrow.int32())
    if values.null_count > 0:
        parents = compute.list_parent_indices(array).filter(values.is_valid())
        counts = compute.value_counts(parents).flatten()
        counted = dict(zip(*(part.to_pylist() for part in counts)))
        lengths = pyarrow.array([counted.get(row, 0) for row in range(len(array))], pyarrow.int32())
        values = values.drop_null()
    start = 4 * lengths.offset
    return [
        memoryview(lengths.buffers()[1])[start : start + 4 * len(array)],
        *_buffers(values, column),
    ]


def _is_list(array: Any) -> bool:
    return bool(types.is_list(array.type) or types.is_large_list(array.type))


def _encode(array: Any, column: Column, where: str) -> List[Any]:
    if column["list"]:
        return _encode_lists(array, column, where)
    if _is_list(array):
        raise Unfit(
            "%s: column '%s' is a list, but the model file says one value per row (list: true takes "
            "lists)" % (where, column["name"])
        )
    values = _convert(array, column, where)
    if values.null_count > 0:
        if "default" not in column:
            row = compute.index(values.is_null(), True).as_py()
            raise Unfit(
                "%s: row %d of a batch: column '%s' has no value, and no default in the model file: give the input a "
                "default, or leave out such rows: df.dropna(subset=['%s'])"
                % (where, row + 1, column["name"], column["name"])
            )
        default = column["default"]
        values = values.fill_null(default.encode() if column["type"] == "string" else default)
    return _buffers(values, column)


def read_stream(read: Callable[[int], bytes]) -> Iterator[Dict[str, Tuple[Any, Optional[Any]]]]:
    """Yields the batches of a stream, first an empty one with the stream's columns: for each column by
    name its values and, of a column of lists, the number of values of each row, as Arrow arrays
    (int64, float32 or binary; int32).

    read: returns exactly so many bytes, or fewer at the end. Raises Unfit where the stream is cut.
    """
    prefix = _exactly(read, 16)
    if not prefix.startswith(b"MUSTRBAT\x01\0\0\0"):
        raise Unfit("not a stream of batches")
    columns = _parse_header(_exactly(read, struct.unpack("<I", prefix[12:])[0]))
    yield {name: _take(pyarrow.py_buffer(b""), 0, kind, lists, 0)[0] for name, kind, lists in columns}
    while True:
        rows, crc, size = struct.unpack("<IIQ", _exactly(read, 16))
        if rows == 0:
            return
        payload = _exactly(read, size)
        if zlib.crc32(payload) != crc:
            raise Unfit("a batch of the stream has a wrong CRC")
        buffer, at = pyarrow.py_buffer(payload), 0
        batch = {}
        for name, kind, lists in columns:
            batch[name], at = _take(buffer, at, kind, lists, rows)
        yield batch


def _exactly(read: Callable[[int], bytes], size: int) -> bytes:
    data = read(size)
    if len(data) < size:
        raise Unfit("the stream ends before its end marker")
    return data


def _parse_header(header: bytes) -> List[Tuple[str, int, bool]]:
    columns, at = [], 4
    for _ in range(struct.unpack_from("<I", header)[0]):
        kind, lists, length = struct.unpack_from("<BBH", header, at)
        at += 4 + length
        columns.append((header[at - length : at].decode(), kind, bool(lists)))
    return columns


def _take(buffer: Any, at: int, kind: int, lists: bool, rows: int) -> Tuple[Any, int]:
    """A column's values and lengths, and where the next column begins."""
    lengths = None
    if lists:
        lengths = _numbers(pyarrow.int32(), buffer, at, rows)
        at += 4 * rows
        rows = compute.sum(lengths).as_py() or 0
    if kind != _TYPES["string"]:
        width = 8 if kind == _TYPES["int"] else 4
        type_ = pyarrow.int64() if kind == _TYPES["int"] else pyarrow.float32()
        return (_numbers(type_, buffer, at, rows), lengths), at + width * rows
    sizes = _numbers(pyarrow.int32(), buffer, at, rows)
    at += 4 * rows
    offsets = offsets_of(sizes)
    end = at + offsets[rows].as_py()
    text = buffer.slice(at, end - at)
    values = pyarrow.Array.from_buffers(
        pyarrow.binary(), rows, [None, offsets.buffers()[1], text], null_count=0
    )
    return (values, lengths), end


def _numbers(type_: Any, buffer: Any, at: int, rows: int) -> Any:
    part = buffer.slice(at, rows * type_.bit_width // 8)
    return pyarrow.Array.from_buffers(type_, rows, [None, part], null_count=0)


def offsets_of(lengths: Any) -> Any:
    """Where each of these lengths begins, and the end: int32, one more than there are lengths."""
    import numpy as np

    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths.to_numpy(zero_copy_only=False), out=offsets[1:])
    return pyarrow.array(offsets)
