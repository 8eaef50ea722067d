"""Arrow's batches through a stream and back."""

from __future__ import annotations

import io
from typing import Any

import pyarrow
import pytest

from muster.arrow_stream import StreamWriter, Unfit, read_stream

COLUMNS = [
    {"name": "age", "type": "int", "list": False, "truncate": True, "default": -1},
    {"name": "gain", "type": "float", "list": True},
    {"name": "job", "type": "string", "list": False, "default": "none"},
    {"name": "tags", "type": "string", "list": True},
]


def written(batches: list[Any], columns: list[dict[str, Any]]) -> bytes:
    out = io.BytesIO()
    writer = StreamWriter(lambda parts: [out.write(part) for part in parts], columns, "here")
    for batch in batches:
        writer.write(batch, {})
    writer.end()
    return out.getvalue()


def rows_of(stream: bytes) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for batch in read_stream(io.BytesIO(stream).read):
        cells = {}
        for name, (values, lengths) in batch.items():
            cells[name] = values.to_pylist()
            if lengths is not None:
                ends, at = [], 0
                for length in lengths.to_pylist():
                    ends.append(cells[name][at : at + length])
                    at += length
                cells[name] = ends
        rows += [dict(zip(cells, row)) for row in zip(*cells.values())]
    return rows


def make_batch() -> Any:
    return pyarrow.RecordBatch.from_pydict(
        {
            "age": pyarrow.array([34.5, None, -2.9], pyarrow.float64()),
            "gain": pyarrow.array([[0.5, None, 2.0], None, []], pyarrow.list_(pyarrow.float64())),
            "job": pyarrow.array(["clerk", None, ""]),
            "tags": pyarrow.array([["a"], ["b", "cd"], None], pyarrow.list_(pyarrow.string())),
        }
    )


def test_values_defaults_and_lists() -> None:
    rows = rows_of(written([make_batch(), make_batch().slice(1, 2)], COLUMNS))
    assert rows == [
        {"age": 34, "gain": [0.5, 2.0], "job": b"clerk", "tags": [b"a"]},
        {"age": -1, "gain": [], "job": b"none", "tags": [b"b", b"cd"]},
        {"age": -2, "gain": [], "job": b"", "tags": []},
        {"age": -1, "gain": [], "job": b"none", "tags": [b"b", b"cd"]},
        {"age": -2, "gain": [], "job": b"", "tags": []},
    ]


def test_one_value_as_a_list_is_absent_for_a_null() -> None:
    columns = [{"name": "age", "type": "float", "list": True}, {"name": "job", "type": "string", "list": True}]
    rows = rows_of(written([make_batch()], columns))
    assert [row["age"] for row in rows] == [[34.5], [], pytest.approx([-2.9])]
    assert [row["job"] for row in rows] == [[b"clerk"], [], [b""]]


def test_what_does_not_fit() -> None:
    whole = {"name": "job", "type": "int", "list": False}
    with pytest.raises(Unfit, match="here: column 'job' is string, but the model file says int"):
        written([make_batch()], [whole])
    required = {"name": "job", "type": "string", "list": False}
    with pytest.raises(Unfit, match="row 2 of a batch: column 'job' has no value, and no default"):
        written([make_batch()], [required])
    with pytest.raises(Unfit, match="column 'tags' is a list"):
        written([make_batch()], [{"name": "tags", "type": "string", "list": False}])


@pytest.mark.parametrize("cut", [3, 17, 60, -1, -17])
def test_a_stream_that_is_cut(cut: int) -> None:
    stream = written([make_batch()], COLUMNS)
    with pytest.raises(Unfit):
        rows_of(stream[:cut])


def test_a_flipped_bit() -> None:
    stream = bytearray(written([make_batch()], COLUMNS))
    stream[-20] ^= 1
    with pytest.raises(Unfit, match="CRC"):
        rows_of(bytes(stream))
