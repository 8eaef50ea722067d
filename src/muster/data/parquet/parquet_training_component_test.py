"""Models are trained, evaluated and used on Parquet files as on records of the same rows."""

from __future__ import annotations

import csv
import json
import pathlib
import sys
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

from testbed.hadoop.cluster import Hdfs
from testbed.muster import Muster
from testbed.trainings import last_checkpoint

ROWS, PARTS, GROUP = 6000, ("a", "b", "c"), 700
SPEC = """
inputs: {label: int, I1: {type: float, default: 0}, C1: {type: string, default: ""}, dt: string}
label: label
columns:
  I1: {numeric: I1, log1p: true}
  C1: {hash: C1, buckets: 1000}
  dt: {vocabulary: dt, words: [a, b, c]}
  e: {embedding: C1, dimension: 4}
model: {type: wide_deep, linear: {columns: [C1, dt]}, dnn: {columns: [I1, e], hidden_units: [8]}}
train: {batch_size: 50, shuffle: true, seed: 3}
"""


@pytest.fixture(scope="module")
def table(muster: Muster, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A folder with model.yaml, a Hive table of Parquet, and records of the same rows in the same order."""
    folder = pathlib.Path(tmp_path_factory.mktemp("table"))
    (folder / "model.yaml").write_text(SPEC)
    muster.run("sample", "clicks", "--rows", ROWS, "--out", folder / "clicks.csv")
    with open(folder / "clicks.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    share = ROWS // len(PARTS)
    with open(folder / "rows.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["label", "I1", "C1", "dt"])
        for number, part in enumerate(PARTS):
            mine = rows[number * share : (number + 1) * share]
            writer.writerows([row["label"], row["I1"], row["C1"], part] for row in mine)
            columns = {
                "label": pyarrow.array([int(row["label"]) for row in mine], pyarrow.int8()),
                "unused": pyarrow.array(["x"] * len(mine)),
                "C1": pyarrow.array([row["C1"] or None for row in mine]),
                "I1": pyarrow.array([float(row["I1"]) if row["I1"] else None for row in mine]),
            }
            path = folder / f"table/dt={part}/000000_0"  # as Hive calls it
            path.parent.mkdir(parents=True)
            parquet.write_table(pyarrow.table(columns), path, row_group_size=GROUP, compression="snappy")
    (folder / "table/_SUCCESS").write_text("")
    muster.run("records", "from-csv", folder / "rows.csv", "--spec", folder / "model.yaml",
               "--out", folder / "records", "--shards", 1)  # fmt: skip
    return folder


@pytest.fixture(autouse=True)
def python_with_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUSTER_PARQUET_PYTHON", sys.executable)


def train(table: pathlib.Path, data: object, model: pathlib.Path, *flags: object) -> list[object]:
    return ["train", table / "model.yaml", "--train", data, "--model-dir", model, "--epochs", 2,
            "--save-steps", 1000, *flags]  # fmt: skip


@pytest.fixture(scope="module")
def model(table: pathlib.Path, muster: Muster) -> pathlib.Path:
    muster.run(*train(table, table / "records/*", table / "model", "--no-shuffle"))
    return table / "model"


def test_a_training_in_order_is_that_of_the_records(table, model, muster, tmp_path) -> None:
    muster.run(*train(table, table / "table", tmp_path / "model", "--no-shuffle"))
    found, wanted = (muster.event("evaluated", "evaluate", folder, "--data", table / "table")
                     for folder in (tmp_path / "model", model))  # fmt: skip
    assert (found["loss"], found["auc"]) == (wanted["loss"], wanted["auc"])


@pytest.mark.parametrize("flags", [[], ["--no-shuffle"]])
def test_a_training_continues_where_it_was(flags, table, muster, tmp_path) -> None:
    muster.run(*train(table, table / "table", tmp_path / "whole", *flags))
    for steps in (17, 90, 131):
        muster.run(*train(table, table / "table", tmp_path / "parts", "--max-steps", steps, *flags))
    muster.run(*train(table, table / "table", tmp_path / "parts", *flags))
    assert last_checkpoint(tmp_path / "parts") == last_checkpoint(tmp_path / "whole")


def test_an_evaluation_and_predictions_are_those_of_the_records(table, model, muster, tmp_path) -> None:
    wanted = muster.event("evaluated", "evaluate", model, "--data", table / "records/*")
    for data in (table / "table", table / "table/dt=*", table / "table/dt=*/*"):
        found = muster.event("evaluated", "evaluate", model, "--data", data)
        assert {k: found[k] for k in ("auc", "loss", "examples") if k in wanted} == {
            k: wanted[k] for k in ("auc", "loss", "examples") if k in wanted
        }
    muster.run("predict", model, "--data", table / "records/*", "--out", tmp_path / "wanted.csv")
    muster.run("predict", model, "--data", table / "table", "--out", tmp_path / "found.csv")
    assert (tmp_path / "found.csv").read_bytes() == (tmp_path / "wanted.csv").read_bytes()


def test_rows_without_a_label_are_predicted(table, model, muster, tmp_path) -> None:
    for folder in sorted((table / "table").glob("dt=*")):
        rows = parquet.read_table(folder / "000000_0").drop(["label"])
        (tmp_path / "bare" / folder.name).mkdir(parents=True)
        parquet.write_table(rows, tmp_path / "bare" / folder.name / "rows.parquet")
    for name, data in (("wanted", table / "records/*"), ("found", tmp_path / "bare")):
        muster.run("predict", model, "--data", data, "--out", tmp_path / f"{name}.csv")
    assert (tmp_path / "found.csv").read_bytes() == (tmp_path / "wanted.csv").read_bytes()


@pytest.mark.parametrize("workers", [2, 5])  # fewer and more than files
def test_workers_share_the_rows(workers, table, model, muster, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("MUSTER_HOME", str(tmp_path / "home"))
    muster.run("predict", model, "--data", table / "records/*", "--out", tmp_path / "wanted.csv")
    muster.run("predict", model, "--data", table / "table", "--out", tmp_path / "parts",
               "--workers", workers)  # fmt: skip
    wanted = (tmp_path / "wanted.csv").read_text().splitlines()
    found = [line for part in sorted((tmp_path / "parts").glob("part-*"))
             for line in part.read_text().splitlines() if line != wanted[0]]  # fmt: skip
    assert sorted(found) == sorted(wanted[1:])


def test_replicas_train_on_a_table(table, muster, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("MUSTER_HOME", str(tmp_path / "home"))
    muster.run(*train(table, table / "table", tmp_path / "model", "--workers", 2, "--max-steps", 50))
    found = muster.event("evaluated", "evaluate", tmp_path / "model", "--data", table / "table")
    assert found["global_step"] == 50


def test_a_table_on_hdfs(hdfs: Hdfs, folder: str, table, model, muster) -> None:
    wanted = muster.event("evaluated", "evaluate", model, "--data", table / "table")
    hdfs.put(table / "table", f"{folder}/table")
    found = muster.event("evaluated", "evaluate", model, "--data", f"{folder}/table")
    assert found["auc"] == wanted["auc"]


def write_bad(folder: pathlib.Path) -> pathlib.Path:
    columns: dict[str, Any] = {"label": [0, 1, None, 1], "I1": [1.0] * 4, "C1": ["x"] * 4, "dt": ["a"] * 4}
    parquet.write_table(pyarrow.table(columns), folder / "bad.parquet")
    return folder / "bad.parquet"


def test_a_row_that_does_not_fit_is_named_or_left_out(model, muster, tmp_path) -> None:
    bad = write_bad(tmp_path)
    said = muster.fail("evaluate", model, "--data", bad)
    assert f"{bad}: row 3: column 'label' has no value" in said
    found = muster.event("evaluated", "evaluate", model, "--data", bad, "--max-bad-records", 1,
                         "--rejects", tmp_path / "rejects")  # fmt: skip
    assert found["bad_records"] == 1, json.dumps(found)


def test_what_cannot_read_parquet_says_so(table, model, muster, tmp_path, monkeypatch) -> None:
    said = muster.fail("records", "cat", table / "table")
    assert "records from-parquet" in said
    monkeypatch.setenv("MUSTER_PARQUET_PYTHON", str(tmp_path / "no-python"))
    said = muster.fail("evaluate", model, "--data", table / "table")
    assert "no-python" in said and len(said.splitlines()) == 1
    (tmp_path / "python").write_text(f'#!/bin/sh\nexec {sys.executable} -S -E "$@"\n')
    (tmp_path / "python").chmod(0o755)
    monkeypatch.setenv("MUSTER_PARQUET_PYTHON", str(tmp_path / "python"))
    said = muster.fail("evaluate", model, "--data", table / "table")
    assert "has no package pyarrow" in said and "pip install pyarrow" in said


def test_a_file_that_was_cut_is_an_error(table, model, muster, tmp_path) -> None:
    whole = (table / "table/dt=a/000000_0").read_bytes()
    (tmp_path / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    assert "cut.parquet" in muster.fail("evaluate", model, "--data", tmp_path / "cut.parquet")
    middle = bytearray(whole)
    middle[4:4000] = b"\xff" * 3996
    (tmp_path / "broken.parquet").write_bytes(middle)
    assert "broken.parquet" in muster.fail("evaluate", model, "--data", tmp_path / "broken.parquet")
