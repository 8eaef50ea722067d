"""Arrow's batches through a stream and back."""

from __future__ import annotations

import datetime
import decimal
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
    values = {
        "half": pyarrow.array([decimal.Decimal("2.0"), decimal.Decimal("0.5")]),
        "day": pyarrow.array([datetime.date(2026, 1, 2)]),
        "share": pyarrow.array([1.0, 0.5]),
    }
    for name, wanted, said in (
        ("half", "int", "is decimal, but the model file says int, which the value '0.5' is not. .* to float, or give it trunc"),
        ("day", "float", "is date, but the model file says float. .* to int, which is its seconds since 1970"),
        ("share", "int", "is double, but the model file says int, which the value '0.5' is not. .* to float"),
    ):
        with pytest.raises(Unfit, match=f"here: column '{name}' {said}"):
            batch = pyarrow.RecordBatch.from_pydict({name: values[name]})
            written([batch], [{"name": name, "type": wanted, "list": False}])
    required = {"name": "job", "type": "string", "list": False}
    with pytest.raises(Unfit, match="row 2 of a batch: column 'job' has no value, and no default"):
        written([make_batch()], [required])
    with pytest.raises(Unfit, match="column 'tags' is a list"):
        written([make_batch()], [{"name": "tags", "type": "string", "list": False}])


def test_a_nan_among_ints_is_no_fraction() -> None:
    age = [dict(COLUMNS[0], truncate=False)]
    for value, says in ((float("nan"), "'nan' is not. Cast the column, or make nulls"), (0.5, "'0.5' is not.*to float")):
        with pytest.raises(Unfit, match=says):
            written([pyarrow.record_batch({"age": pyarrow.array([1.0, value])})], age)


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


def test_times_are_whole_seconds_rounded_down() -> None:
    columns = [{"name": "at", "type": "int", "list": False}]
    for unit, each in (("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)):
        moments = [0, -1, each, -each, 5 * each // 2, -5 * each // 2]
        for zone in (None, "Europe/Rome"):
            batch = pyarrow.record_batch({"at": pyarrow.array(moments, pyarrow.timestamp(unit, zone))})
            rows = rows_of(written([batch], columns))
            assert [row["at"] for row in rows] == [moment // each for moment in moments]
    days = pyarrow.record_batch({"at": pyarrow.array([0, -1, 2], pyarrow.date32())})
    assert [row["at"] for row in rows_of(written([days], columns))] == [0, -86400, 2 * 86400]
