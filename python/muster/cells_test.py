"""Columns of a batch in every form that input functions give them."""

from __future__ import annotations

import collections

import numpy as np
import pandas as pd
import pytest

from muster.cells import FLOAT, INT, STRING, Cells, as_bytes, cells, numbers

Sparse = collections.namedtuple("Sparse", "indices values dense_shape")
Ragged = collections.namedtuple("Ragged", "values row_splits")


def flat(given: Cells) -> tuple:
    return given.kind, given.rows, list(given.values), given.lengths


@pytest.mark.parametrize(
    "value, kind, values",
    [
        ([1, 2], INT, [1, 2]),
        ([True, False], INT, [1, 0]),
        ([1, 2.5], FLOAT, [1, 2.5]),
        (["a", b"b", None], STRING, ["a", b"b", None]),
        ([[1], [2]], INT, [1, 2]),
        (np.array([1, 2], np.int32), INT, [1, 2]),
        (np.array([[1.5], [2.5]]), FLOAT, [1.5, 2.5]),
        (np.array(["a", "b"]), STRING, ["a", "b"]),
        (np.array([b"a", b"b"], object), STRING, [b"a", b"b"]),
        ([np.float32(1.5), np.float32(2)], FLOAT, [1.5, 2]),
        ([np.int64(3), np.int64(4)], INT, [3, 4]),
        (pd.Series([1, 2]), INT, [1, 2]),
        (pd.Series(["a", "b"]), STRING, ["a", "b"]),
    ],
)
def test_one_value_a_row(value, kind, values) -> None:
    assert flat(cells(value, "x")) == (kind, len(values), values, None)


@pytest.mark.parametrize(
    "value, lengths, values, padded",
    [
        ([["a"], [], ["b", "c"]], [1, 0, 2], ["a", "b", "c"], True),
        (np.array([[1, 2], [3, -1]]), [2, 2], [1, 2, 3, -1], True),
        (Sparse(np.array([[0, 0], [2, 0], [2, 1]]), np.array([7, 8, 9]), np.array([3, 2])),
         [1, 0, 2], [7, 8, 9], False),
        (Ragged(np.array([7, 8, 9]), np.array([0, 1, 1, 3])), [1, 0, 2], [7, 8, 9], False),
    ],
)  # fmt: skip
def test_several_values_a_row(value, lengths, values, padded) -> None:
    given = cells(value, "x")
    assert (given.lengths, list(given.values), given.padded) == (lengths, values, padded)
    assert given.rows == len(lengths)


@pytest.mark.parametrize("form", [np.array, np.ndarray.tolist, list])
def test_rows_of_any_shape_are_their_values(form) -> None:
    given = cells(form(np.arange(12.0).reshape(2, 3, 2)), "x")
    assert (given.rows, given.lengths, given.rank) == (2, [6, 6], 3)
    assert list(given.values) == list(range(12))


@pytest.mark.parametrize(
    "value, says",
    [
        ("text", "a list of values"),
        (5, "a list of values"),
        (np.float32(5), "rank 0"),
        ([1, "a"], "types int, str"),
        ([[1], 2], "mixes values with lists"),
        (np.array([1j]), "complex128"),
    ],
)
def test_what_is_no_column_is_named(value, says) -> None:
    with pytest.raises(ValueError, match=f"feature 'x'.*{says}"):
        cells(value, "x")


def test_numbers_are_little_endian_and_ints_stay_whole() -> None:
    assert numbers([1, -1], INT, "x") == numbers(np.array([1.0, -1.0]), INT, "x")
    assert numbers([1, -1], INT, "x") == b"\1" + bytes(7) + b"\xff" * 8
    assert numbers([0.5], FLOAT, "x") == numbers(np.array([0.5]), FLOAT, "x") == b"\0\0\0\x3f"
    for fraction in ([0.5], np.array([0.5])):
        with pytest.raises(ValueError, match="'x'.*not whole"):
            numbers(fraction, INT, "x")
    for missing in ([1.0, float("nan")], np.array([1.0, np.nan]), [float("inf")]):
        with pytest.raises(ValueError, match="'x' is int, and has NaN.* number that stands for a missing one"):
            numbers(missing, INT, "x")


def test_strings_are_utf8_and_none_is_empty() -> None:
    assert as_bytes(["ü", b"\xff", None]) == ["ü".encode(), b"\xff", b""]
