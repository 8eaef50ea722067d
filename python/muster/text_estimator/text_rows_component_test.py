"""Rows as JSON and back, of all types."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import pytest
from pyspark.ml.linalg import Vectors
from pyspark.sql import Row, types

from muster.text_estimator.rows import BadRecord, RowDecoder, encoded, row_schema
from testbed.spark.fixtures import spark

__all__ = ["spark"]

SCHEMA = """
    id long, small short, name string, yes boolean, score double, ratio float, blob binary, day date,
    at timestamp, wall timestamp_ntz, price decimal(30,10), matrix array<array<double>>,
    counts map<string,int>, byNumber map<int,double>, inner struct<a: int, b: array<string>>
"""
VALUES = (
    2**60 + 1, -3, 'Grüße, "\n\u2028😀', True, 0.1, 0.25, bytearray(b"\0\xff\n"), datetime.date(1969, 12, 31),
    datetime.datetime(2024, 2, 29, 23, 59, 59, 123456), datetime.datetime(2024, 3, 31, 2, 30, 0, 1),
    decimal.Decimal("12345678901234567890.0123456789"), [[1.0, float("inf")], [], [-0.5]], {"a": 1, "b": None},
    {7: 0.5}, Row(a=None, b=["x", None]),
)  # fmt: skip


def round_trip(df: Any) -> list[Any]:
    decoder = RowDecoder(row_schema(df.schema))
    return [decoder.decode(record.value) for record in encoded(df).collect()]


def test_all_types_come_back(spark: Any) -> None:
    df = spark.createDataFrame([VALUES, (None,) * len(VALUES)], SCHEMA)
    wanted = df.collect()
    assert round_trip(df) == wanted
    assert wanted[0].name == VALUES[2] and wanted[1].inner is None


def test_not_a_number(spark: Any) -> None:
    (row,) = round_trip(spark.createDataFrame([(float("nan"), float("-inf"))], "x double, y float"))
    assert row.x != row.x and row.y == float("-inf")


def test_vectors_are_lists(spark: Any) -> None:
    df = spark.createDataFrame([(Vectors.dense(0.1, 2.0),), (Vectors.sparse(3, {1: 5.0}),)], ["features"])
    assert [row["features"] for row in round_trip(df)] == [[0.1, 2.0], [0.0, 5.0, 0.0]]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "is no row: "),
        ("[1]", "is no JSON object"),
        ('{"id": 1}', "column 'words' is missing"),
        ('{"id": "1", "words": []}', "'1' is no int"),
        ('{"id": true, "words": []}', "True is no int"),
        ('{"id": 1, "words": "a"}', "'a' is no array"),
        ('{"id": 1, "words": [1]}', "1 is no str"),
    ],
)
def test_what_is_no_row(text: str, why: str) -> None:
    schema = types.StructType().add("id", "long").add("words", types.ArrayType(types.StringType()))
    with pytest.raises(BadRecord, match=why):
        RowDecoder(schema).decode(text)


def test_columns_without_json(spark: Any) -> None:
    df = spark.sql("select interval 3 day as gap, 1 as id")
    with pytest.raises(ValueError, match="interval day.*cast the column"):
        encoded(df)
    with pytest.raises(ValueError, match="two columns have the same name; the columns are: id, id"):
        encoded(df.select("id", "id"))
