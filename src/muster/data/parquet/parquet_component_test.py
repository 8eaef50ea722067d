"""Parquet files against the values that pyarrow reads: records from-parquet, and as data of models."""

from __future__ import annotations

import datetime
import math
import os
import pathlib
import random
import subprocess
import sys
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

from testbed.hadoop.cluster import Hdfs
from testbed.muster import Muster

SPEC = """
inputs:
  i: {type: int, default: -1}
  big: int
  flag: {type: int, default: 0}
  day: {type: int, default: 0}
  x: {type: float, default: 0.5}
  word: {type: string, default: none}
  city: string
  number: string
  ids: {type: int, list: true}
  words: {type: string, list: true}
  weights: {type: float, list: true}
  one: {type: int, list: true}
  dt: string
  y: int
label: y
columns: {x: {numeric: x}}
model: {type: linear, linear: {columns: [x]}}
"""


def make_table(rows: int, seed: int) -> pyarrow.Table:
    chance = random.Random(seed)

    def some(value: Any) -> Any:
        return None if chance.random() < 0.1 else value

    def many(make: Any) -> Any:
        return some([make() for _ in range(chance.randrange(4))])

    start = datetime.datetime(1969, 12, 26, 0, 0, 0, 250_000)  # some are before 1970, all have fractions
    columns = {
        "i": pyarrow.array([some(chance.randrange(100)) for _ in range(rows)], pyarrow.int16()),
        "big": pyarrow.array([chance.randrange(-(2**62), 2**62) for _ in range(rows)]),
        "flag": pyarrow.array([some(chance.random() < 0.5) for _ in range(rows)]),
        "day": pyarrow.array(
            [start + datetime.timedelta(seconds=chance.randrange(10**6)) for _ in range(rows)],
            pyarrow.timestamp("us"),
        ),
        "x": pyarrow.array([some(chance.uniform(-1, 1)) for _ in range(rows)]),
        "word": pyarrow.array([some(chance.choice(["", "a", "b\u00e9", "long" * 9])) for _ in range(rows)]),
        "city": pyarrow.array(
            [chance.choice(["Rome", "Oslo", "Lima"]) for _ in range(rows)]
        ).dictionary_encode(),
        "number": pyarrow.array([chance.randrange(10) for _ in range(rows)], pyarrow.int32()),
        "ids": pyarrow.array([many(lambda: some(chance.randrange(9))) for _ in range(rows)], pyarrow.list_(pyarrow.int64())),
        "words": pyarrow.array([many(lambda: chance.choice("abc")) for _ in range(rows)], pyarrow.list_(pyarrow.string())),
        "weights": pyarrow.array([many(lambda: chance.random()) for _ in range(rows)], pyarrow.list_(pyarrow.float64())),
        "one": pyarrow.array([some(chance.randrange(9)) for _ in range(rows)], pyarrow.int8()),
        "unused": pyarrow.array([b"\xff" * 9] * rows),
        "y": pyarrow.array([chance.randrange(2) for _ in range(rows)], pyarrow.uint8()),
    }  # fmt: skip
    return pyarrow.table(columns)


def expected(table: pyarrow.Table, dt: str) -> list[dict[str, Any]]:
    """The features that each row must have, by pyarrow's Python values."""
    defaults = {"i": -1, "flag": 0, "x": 0.5, "word": "none"}
    found = []
    for row in table.drop(["unused"]).to_pylist():
        row["day"] = math.floor(row["day"].replace(tzinfo=datetime.timezone.utc).timestamp())
        features = {}
        for name, value in row.items():
            value = defaults.get(name) if value is None else value
            values = value if isinstance(value, list) else [] if value is None else [value]
            features[name] = [v for v in values if v is not None]
        features["number"] = [str(features["number"][0])]
        features["flag"] = [int(features["flag"][0])]
        features["dt"] = [dt]
        found.append(features)
    return found


def read_records(paths: list[pathlib.Path]) -> list[dict[str, Any]]:
    """The shards' rows in the order in which they were dealt."""
    import tensorflow as tf

    shards = []
    for path in sorted(paths):
        shard = []
        for record in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
            features = tf.train.Example.FromString(record).features.feature
            row = {}
            for name, feature in features.items():
                kind = feature.WhichOneof("kind")
                values = [] if kind is None else list(getattr(feature, kind).value)
                row[name] = [v.decode() if isinstance(v, bytes) else v for v in values]
            shard.append(row)
        shards.append(shard)
    return [shard[i] for i in range(len(shards[0])) for shard in shards if i < len(shard)]


def assert_same(found: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> None:
    assert len(found) == len(wanted)
    for got, want in zip(found, wanted):
        for name, values in want.items():
            if name in ("x", "weights"):
                assert got.get(name, []) == pytest.approx(values, rel=1e-6), name
            else:
                assert got.get(name, []) == values, name


@pytest.fixture
def spec(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "model.yaml").write_text(SPEC)
    return tmp_path / "model.yaml"


def convert(muster: Muster, pattern: object, spec: pathlib.Path, out: pathlib.Path) -> None:
    muster.run("records", "from-parquet", pattern, "--spec", spec, "--out", out, "--shards", 3,
               "--python", sys.executable)  # fmt: skip


@pytest.mark.parametrize("compression", ["none", "snappy", "gzip", "zstd"])
def test_the_same_values_as_pyarrow(
    compression: str, spec: pathlib.Path, tmp_path: pathlib.Path, muster: Muster
) -> None:
    wanted = []
    for seed, dt in enumerate(("2026-11-20", "2026-11-21")):
        (tmp_path / f"table/dt={dt}").mkdir(parents=True)
        table = make_table(700, seed)
        parquet.write_table(table, tmp_path / f"table/dt={dt}/part-0.parquet",
                            compression=compression, row_group_size=300)  # fmt: skip
        wanted += expected(table, dt)
    convert(muster, f"{tmp_path}/table/*/*.parquet", spec, tmp_path / "out")
    assert_same(read_records(list((tmp_path / "out").glob("*.tfrecord"))), wanted)


def test_files_on_hdfs(
    folder: str, hdfs: Hdfs, spec: pathlib.Path, tmp_path: pathlib.Path, muster: Muster
) -> None:
    table = make_table(500, 3)
    parquet.write_table(table, tmp_path / "part-0.parquet")
    hdfs.call("PUT", folder.removeprefix(hdfs.url) + "/dt=7", "MKDIRS", user="tester")
    target = folder.removeprefix(hdfs.url) + "/dt=7/part-0.parquet"
    subprocess.run(
        ["curl", "-sfL", "-X", "PUT", "-T", str(tmp_path / "part-0.parquet"),
         f"http://127.0.0.1:{hdfs.http_port}/webhdfs/v1{target}?op=CREATE&user.name=tester"],
        check=True,
    )  # fmt: skip
    convert(muster, f"{folder}/dt=7/*.parquet", spec, tmp_path / "out")
    assert_same(read_records(list((tmp_path / "out").glob("*.tfrecord"))), expected(table, "7"))


def fail(muster: Muster, *arguments: object) -> str:
    said = muster.fail("records", "from-parquet", *arguments, "--quiet")
    assert "Traceback" not in said
    return said


@pytest.mark.parametrize("column, values, said", [
    ("y", ["a"] * 3, "column 'y' is string, but the model file says int"),
    ("y", [1, None, 0], "column 'y' has no value, and no default in the model file"),
    ("y", [[1], [2], [3]], "column 'y' is a list, but the model file says one value per row"),
    ("y", [0.5, 1.0, 0.0], "column 'y' is double, but the model file says int"),
    ("y", [{"a": 1}] * 3, "column 'y' is struct<a: int64>: structs, maps and lists of lists are not read"),
])  # fmt: skip
def test_what_does_not_fit_the_model_file(
    column: str, values: list[Any], said: str, tmp_path: pathlib.Path, muster: Muster
) -> None:
    (tmp_path / "m.yaml").write_text(
        "inputs: {x: float, y: int}\nlabel: y\ncolumns: {x: {numeric: x}}\n"
        "model: {type: linear, linear: {columns: [x]}}\n"
    )
    path = tmp_path / "t.parquet"
    parquet.write_table(pyarrow.table({"x": [1.0, 2.0, 3.0], column: values}), path)
    out = tmp_path / "out"
    error = fail(muster, path, "--spec", tmp_path / "m.yaml", "--out", out, "--python", sys.executable)
    assert f"{path}: " in error and said in error
    assert not list(out.glob("part-*"))


def test_other_files(spec: pathlib.Path, tmp_path: pathlib.Path, muster: Muster) -> None:
    (tmp_path / "t.parquet").write_text("a,b\n1,2\n")
    flags = ("--spec", spec, "--out", tmp_path / "out", "--python", sys.executable)
    assert "t.parquet" in fail(muster, tmp_path / "t.parquet", *flags)
    assert "none.parquet" in fail(muster, tmp_path / "none.parquet", *flags)


def test_a_python_without_pyarrow(spec: pathlib.Path, tmp_path: pathlib.Path, muster: Muster) -> None:
    parquet.write_table(make_table(3, 1), tmp_path / "t.parquet")
    (tmp_path / "python").write_text(f"#!/bin/sh\nexec {sys.executable} -S -E \"$@\"\n")
    os.chmod(tmp_path / "python", 0o755)
    error = fail(muster, tmp_path / "t.parquet", "--spec", spec, "--out", tmp_path / "out",
                 "--python", tmp_path / "python")  # fmt: skip
    assert "has no package pyarrow" in error and "pip install pyarrow" in error
