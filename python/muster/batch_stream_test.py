"""Streams have the bytes that docs/formats/batch_stream.md describes."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest

from muster.batch_stream import BatchWriter, StreamColumn


def written(columns, *batches) -> bytes:
    out = bytearray()
    writer = BatchWriter(out.extend, columns)
    for batch in batches:
        writer.write(batch)
    writer.end()
    return bytes(out)


def test_the_format() -> None:
    columns = [
        StreamColumn("i", "int"),
        StreamColumn("s", "string"),
        StreamColumn("l", "float", True),
    ]
    stream = written(columns, {"i": [1, 2], "s": ["a", b"bc"], "l": [[0.5], []], "other": [0]})
    header = struct.pack("<I", 3) + b"\0\0\1\0i" + b"\2\0\1\0s" + b"\1\1\1\0l"
    header += struct.pack("<I", zlib.crc32(header))
    payload = struct.pack("<qq", 1, 2) + struct.pack("<II", 1, 2) + b"abc"
    payload += struct.pack("<II", 1, 0) + struct.pack("<f", 0.5)
    assert stream == (
        b"MUSTRBAT" + struct.pack("<II", 1, len(header)) + header
        + struct.pack("<IIQ", 2, zlib.crc32(payload), len(payload)) + payload
        + struct.pack("<IIQ", 0, 0, 0)
    )  # fmt: skip


@pytest.mark.parametrize("empty", [[], np.array([], np.int64), np.zeros((0, 3), np.int64)])
def test_a_batch_without_rows_is_no_end(empty) -> None:
    columns = [StreamColumn("i", "int", True)]
    assert written(columns, {"i": empty}) == written(columns)


def test_padding_of_several_values_is_left_out_but_not_of_sparse_ones() -> None:
    text, number = StreamColumn("x", "string", True), StreamColumn("x", "int", True)
    padded = written([text], {"x": np.array([["a", ""], ["", ""]])})
    assert padded == written([text], {"x": [["a"], []]})
    assert written([number], {"x": np.array([[5, -1]])}) == written([number], {"x": [[5, -1]]})
    assert written([number], {"x": np.array([[5, -1]])}) == written([number], {"x": [[5]]})

    class Ragged:
        values, row_splits = np.array(["a", ""]), np.array([0, 2])

    frame = written([text], {"x": Ragged()})
    assert struct.pack("<I", 2) + struct.pack("<II", 1, 0) + b"a" in frame


def test_weights_of_padding_are_left_out() -> None:
    columns = [StreamColumn("x", "string", True), StreamColumn("w", "float", True, weighs="x")]
    padded = {"x": np.array([["a", ""], ["", "b"]]), "w": np.array([[1.0, 2], [3, 4]])}
    assert written(columns, padded) == written(columns, {"x": [["a"], ["b"]], "w": [[1.0], [4.0]]})


@pytest.mark.parametrize(
    "column, batch, says",
    [
        (StreamColumn("x", "int"), {"y": [1]}, "Feature x is not in features"),
        (StreamColumn("x", "int"), {"x": ["a"]}, "type string, its columns want int"),
        (StreamColumn("x", "string"), {"x": [1]}, "type int, its columns want string"),
        (StreamColumn("x", "int"), {"x": [[1, 2]]}, "several values a row"),
    ],
)
def test_what_does_not_fit_is_named(column, batch, says) -> None:
    with pytest.raises(ValueError, match=says):
        written([column], batch)


def test_rows_must_agree() -> None:
    with pytest.raises(ValueError, match="'b' has 1 rows, others have 2"):
        written([StreamColumn("a", "int"), StreamColumn("b", "int")], {"a": [1, 2], "b": [1]})


def test_keys_of_a_cross_lose_their_fractions() -> None:
    cut = [StreamColumn("x", "int", truncated=True)]
    whole = written([StreamColumn("x", "int")], {"x": [1, -2, 3]})
    for values in ([1.7, -2.9, 3.0], np.array([1.7, -2.9, 3.0])):
        assert written(cut, {"x": values}) == whole
