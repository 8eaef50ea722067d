"""Feature columns against tf.feature_column, through `muster inspect --features`."""

from __future__ import annotations

import csv
import json
import math
import os
import pathlib
import random
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import edge_columns
import tf_columns
import tensorflow as tf
from tf_columns import Column, Field, Row

EXAMPLES = pathlib.Path(__file__).parents[3] / "examples"
ROWS = 10_000


def inspect(spec: pathlib.Path, data: pathlib.Path) -> list[dict[str, Any]]:
    """One object a row: {"dense": {column: floats}, "ids": {column: ids}}."""
    command = [os.environ["MUSTER_BINARY"], "inspect", spec, "--features", data, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def spec_text(fields: list[Field], columns: list[Column]) -> str:
    """A model file; YAML reads JSON. Ints are -1 and strings '' where a row has none."""
    inputs: dict[str, Any] = {"label": {"type": "int", "default": 0}}
    for field in fields:
        inputs[field.name] = {"type": field.type}
        if field.list:
            inputs[field.name]["list"] = True
        elif field.type != "string":
            inputs[field.name]["default"] = -1 if field.type == "int" else 0
    described = {}
    for column in columns:
        options = dict(column.options)
        kind = {column.kind: options.pop("keys", column.input)}
        described[column.name] = {**kind, **options}
    model = {"type": "linear", "linear": {"columns": [columns[0].name]}}
    return json.dumps(
        {"inputs": inputs, "label": "label", "columns": described, "model": model},
        ensure_ascii=False,
        indent=1,
    )


def example(fields: list[Field], row: Row, rng: random.Random) -> bytes:
    """A tf.Example; a missing value is absent, an empty list or written out, by chance."""
    message = tf.train.Example()
    for field in fields:
        value = row[field.name]
        values = value if field.list else [value]
        feature = message.features.feature
        if values in ([b""], [-1]) and not field.list and rng.random() < 0.5:
            values = []
        if not values and rng.random() < 0.5:
            continue
        if field.type == "string":
            feature[field.name].bytes_list.value.extend(values)
        elif field.type == "int":
            feature[field.name].int64_list.value.extend(values)
        else:
            feature[field.name].float_list.value.extend(values)
    return message.SerializeToString()


def check_ids(
    columns: list[Column], fields: list[Field], rows: list[Row], got: list[dict[str, Any]]
) -> None:
    tensors = tf_columns.to_tensors(fields, rows)
    by_name = {column.name: column for column in columns}
    field_names = {field.name: field for field in fields}
    assert len(got) == len(rows)
    for column in columns:
        made = tf_columns.tf_column(column, by_name, field_names)
        expected = tf_columns.tf_ids(made, tensors, len(rows))
        for number, (row, ids) in enumerate(zip(rows, expected)):
            if got[number]["ids"][column.name] != ids:
                values = {name: row[name] for name in tf_columns.fields_of(column, by_name)}
                pytest.fail(
                    f"column {column}, row {number} {values}: tensorflow has {ids}, "
                    f"muster {got[number]['ids'][column.name]}"
                )


def check_dense(
    columns: list[Column], fields: list[Field], rows: list[Row], got: list[dict[str, Any]]
) -> None:
    tensors = tf_columns.to_tensors(fields, rows)
    known = edge_columns.COLUMNS + edge_columns.WEIGHTED + columns
    by_name = {column.name: column for column in known}
    field_names = {field.name: field for field in fields}
    for column in columns:
        made = tf_columns.tf_column(column, by_name, field_names)
        expected = tf_columns.tf_dense(made, tensors)
        values = np.array([row["dense"][column.name] for row in got], np.float32)
        # Log1p is within 3 units of the last place of ours, all else is the same to the bit.
        tolerance = 4e-7 if column.options.get("log1p") else 0
        np.testing.assert_allclose(
            values, expected, rtol=tolerance, atol=tolerance, err_msg=column.name
        )


@pytest.fixture(scope="module")
def random_rows() -> list[Row]:
    seed = int(os.environ.get("MUSTER_SEED", random.SystemRandom().randrange(2**32)))
    print(f"MUSTER_SEED={seed}")
    rng = random.Random(seed)
    return edge_columns.edge_rows(seed) + [edge_columns.random_row(rng) for _ in range(ROWS)]


@pytest.fixture(scope="module")
def inspected(
    random_rows: list[Row], tmp_path_factory: pytest.TempPathFactory
) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("ids")
    spec = folder / "spec.yaml"
    columns = edge_columns.COLUMNS + edge_columns.NUMBERS
    columns += edge_columns.WEIGHTED + edge_columns.WEIGHTED_NUMBERS
    spec.write_text(spec_text(edge_columns.FIELDS, columns))
    rng = random.Random(3)
    with tf.io.TFRecordWriter(str(folder / "rows.tfrecord")) as writer:
        for row in random_rows:
            writer.write(example(edge_columns.FIELDS, row, rng))
    return inspect(spec, folder / "rows.tfrecord")


def test_ids_of_random_values_and_edges(
    random_rows: list[Row], inspected: list[dict[str, Any]]
) -> None:
    check_ids(edge_columns.COLUMNS, edge_columns.FIELDS, random_rows, inspected)


def test_floats_of_random_values(random_rows: list[Row], inspected: list[dict[str, Any]]) -> None:
    check_dense(edge_columns.NUMBERS, edge_columns.FIELDS, random_rows, inspected)


def test_weights_of_random_values(random_rows: list[Row], inspected: list[dict[str, Any]]) -> None:
    columns = {column.name: column for column in edge_columns.COLUMNS + edge_columns.WEIGHTED}
    fields = {field.name: field for field in edge_columns.FIELDS}
    tensors = tf_columns.to_tensors(edge_columns.FIELDS, random_rows)
    for column in edge_columns.WEIGHTED[:-1]:
        made = tf_columns.tf_column(column, columns, fields)
        for what, expected in (
            ("ids", tf_columns.tf_ids(made, tensors, len(random_rows))),
            ("weights", tf_columns.tf_weights(made, tensors, len(random_rows))),
        ):
            assert [row[what][column.name] for row in inspected] == expected, column.name
    check_dense(edge_columns.WEIGHTED_NUMBERS, edge_columns.FIELDS, random_rows, inspected)


@pytest.fixture(scope="module")
def data() -> pathlib.Path:
    if "MUSTER_DATA" not in os.environ:
        pytest.skip("needs MUSTER_DATA")
    return pathlib.Path(os.environ["MUSTER_DATA"])


ADULT_FIELDS = [Field("age", "float")] + [
    Field(name, "string") for name in ("education", "occupation", "native-country")
]
ADULT_COLUMNS = [
    Column("occupation", "hash", "occupation", {"buckets": 1000}),
    Column("native_country", "hash", "native-country", {"buckets": 1000}),
    Column(
        "age_bucket",
        "bucketized",
        "age",
        {"boundaries": [18, 25, 30, 35, 40, 45, 50, 55, 60, 65]},
    ),
    Column(
        "education_x_occupation",
        "cross",
        options={"keys": ["education", "occupation"], "buckets": 1000},
    ),
    Column(
        "age_x_education_x_occupation",
        "cross",
        options={"keys": ["age_bucket", "education", "occupation"], "buckets": 1000},
    ),
]


def read_csv(path: pathlib.Path, fields: list[Field]) -> list[Row]:
    rows: list[Row] = []
    with path.open(newline="") as file:
        for cells in csv.DictReader(file):
            row: Row = {}
            for field in fields:
                cell = cells[field.name]
                if field.type == "string":
                    row[field.name] = b"" if cell == "?" else cell.encode()
                elif field.type == "int":
                    row[field.name] = math.trunc(float(cell)) if cell else -1
                else:
                    row[field.name] = float(cell)
            rows.append(row)
    return rows


def test_adult(data: pathlib.Path) -> None:
    path = data / "adult" / "adult.csv"
    got = inspect(EXAMPLES / "adult" / "adult.yaml", path)
    rows = read_csv(path, ADULT_FIELDS)
    check_ids(ADULT_COLUMNS, ADULT_FIELDS, rows, got)

    seen: dict[tuple[str, Any], list[int]] = {}
    for row, result in zip(rows, got):
        ids = result["ids"]
        seen["occupation", row["occupation"]] = ids["occupation"]
        seen["country", row["native-country"]] = ids["native_country"]
        seen["cross", (row["education"], row["occupation"])] = ids["education_x_occupation"]
    assert seen["occupation", b"Adm-clerical"] == [96]
    assert seen["occupation", b"Exec-managerial"] == [800]
    assert seen["occupation", b"Other-service"] == [527]
    assert seen["occupation", b""] == []
    assert seen["country", b"United-States"] == [587]
    assert seen["country", b"Cuba"] == [99]
    assert seen["cross", (b"Bachelors", b"Adm-clerical")] == [770]
    assert seen["cross", (b"Bachelors", b"Exec-managerial")] == [469]
    assert seen["cross", (b"Some-college", b"")] == [0]
    triple = [row["ids"]["age_x_education_x_occupation"] for row in got[:3]]
    assert triple == [[322], [736], [64]]


TITANIC_FIELDS = [Field("Age", "int"), Field("Sex", "string"), Field("Ticket", "string")]
TITANIC_COLUMNS = [
    Column("ticket", "hash", "Ticket", {"buckets": 10}),
    Column("sex", "vocabulary", "Sex", {"words": ["male", "female"]}),
    Column("age_bucket", "bucketized", "Age", {"boundaries": list(range(10, 100, 10))}),
    Column("age_sex", "cross", options={"keys": ["age_bucket", "sex"], "buckets": 10}),
]


def test_titanic(data: pathlib.Path, tmp_path: pathlib.Path) -> None:
    path = data / "titanic" / "train.csv"
    spec = json.loads(spec_text(TITANIC_FIELDS, TITANIC_COLUMNS))
    spec["inputs"]["Age"]["truncate"] = True
    (tmp_path / "spec.yaml").write_text(json.dumps(spec))
    got = inspect(tmp_path / "spec.yaml", path)
    rows = read_csv(path, TITANIC_FIELDS)
    check_ids(TITANIC_COLUMNS, TITANIC_FIELDS, rows, got)

    cross = {(row["Age"], row["Sex"]): each["ids"]["age_sex"] for row, each in zip(rows, got)}
    assert cross[22, b"male"] == [1]
    assert cross[38, b"female"] == [8]
    assert cross[-1, b"male"] == [4]
    ticket = {row["Ticket"]: each["ids"]["ticket"] for row, each in zip(rows, got)}
    assert ticket[b"A/5 21171"] == [0]
    assert ticket[b"PC 17599"] == [6]
