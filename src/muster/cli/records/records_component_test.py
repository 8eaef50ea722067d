"""`muster records` and `muster sample` against TensorFlow, pandas and the signals of a shell."""

from __future__ import annotations

import json
import math
import pathlib
import signal
import subprocess
import time

import numpy as np
import pytest

SPEC = """
inputs:
  id: int
  age: {type: int, default: -1, missing: ["?"]}
  pay: {type: float, default: 0}
  job: string
  tags: {type: string, list: true}
  y: int
label: y
columns:
  age: {numeric: age}
model:
  type: linear
  linear: {columns: [age]}
"""
ROWS = (
    'id,age,pay,job,tags,y\r\n1,31,1.5,"clerk, ""old""",a|b,0\r\n2,?,,"two\r\nlines",,1\r\n\r\n3,7,2e3,Zoë,c,1\n'
)


def run(muster, folder: pathlib.Path, *arguments: str, code: int = 0) -> str:
    done = subprocess.run(
        [muster.binary, *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stderr
    return done.stdout


@pytest.fixture()
def place(tmp_path) -> pathlib.Path:
    (tmp_path / "spec.yaml").write_text(SPEC)
    (tmp_path / "rows.csv").write_bytes(ROWS.encode())
    return tmp_path


def convert(muster, place: pathlib.Path, *more: str) -> list[pathlib.Path]:
    run(muster, place, "records", "from-csv", "rows.csv", "--spec", "spec.yaml", "--out", "data",
        "--quiet", *more)  # fmt: skip
    return sorted((place / "data").glob("part-*"))


@pytest.mark.parametrize("compression", ["none", "gzip", "zlib"])
def test_tensorflow_reads_what_was_converted(compression, muster, place):
    import tensorflow as tf

    shards = convert(muster, place, "--shards", "2", "--compression", compression)
    assert [s.name.split(".")[0] for s in shards] == ["part-00000-of-00002", "part-00001-of-00002"]
    kind = "" if compression == "none" else compression.upper()
    rows = {}
    for record in tf.data.TFRecordDataset([str(s) for s in shards], compression_type=kind):
        feature = tf.train.Example.FromString(record.numpy()).features.feature
        rows[feature["id"].int64_list.value[0]] = feature
    assert sorted(rows) == [1, 2, 3]
    assert [rows[i]["age"].int64_list.value[0] for i in (1, 2, 3)] == [31, -1, 7]
    assert [rows[i]["pay"].float_list.value[0] for i in (1, 2, 3)] == [1.5, 0, 2000]
    jobs = [rows[i]["job"].bytes_list.value[0] for i in (1, 2, 3)]
    assert jobs == [b'clerk, "old"', b"two\r\nlines", "Zoë".encode()]
    assert [list(rows[i]["tags"].bytes_list.value) for i in (1, 2, 3)] == [[b"a", b"b"], [], [b"c"]]


def test_inspect_shows_features_as_json(muster, place):
    convert(muster, place)
    lines = run(muster, place, "records", "inspect", "data/part-*", "--json").splitlines()
    records = [json.loads(line) for line in lines]
    assert [r["features"]["id"]["values"] for r in records] == [[1], [2], [3]]
    assert records[0]["offset"] == 0 and records[1]["offset"] > 0
    assert records[1]["features"]["tags"] == {"kind": "bytes", "values": []}
    assert records[2]["features"]["pay"] == {"kind": "float", "values": [2000]}
    limited = run(muster, place, "records", "inspect", "data/part-*", "--limit", "1")
    assert limited.count("record at byte") == 1


def test_cat_prints_a_row_whose_text_could_be_a_protobuf_message(muster, place):
    row = "1,x,,1795805734,"  # three fields that a tf.Example does not know
    (place / "odd.csv").write_text(f"a,b,c,at,d\n{row}\n")
    assert run(muster, place, "records", "cat", "odd.csv") == f"{row}\n"


def test_inspect_and_verify_read_what_other_verbs_read(muster, place):
    """With the same flags."""
    lines = run(muster, place, "records", "inspect", "rows.csv", "--json").splitlines()
    rows = [json.loads(line) for line in lines]
    assert [row["line"] for row in rows] == [2, 3, 6]
    assert rows[0]["features"]["job"] == {"kind": "bytes", "values": ['clerk, "old"']}
    (place / "part-00000").write_text("4;NA;1\n5;31;2\n")
    flags = ("--delimiter", ";", "--no-header", "--columns", "id,age,y")
    shown = run(muster, place, "records", "inspect", "part-00000", *flags, "--limit", "1")
    assert shown.splitlines()[0] == "part-00000:1" and shown.splitlines()[2].split() == ["age", "bytes", "NA"]
    assert "part-00000: 2 records, sound" in run(muster, place, "records", "verify", "part-00000", *flags)
    assert "3 records, sound" in run(muster, place, "records", "verify", "rows.csv", "--spec", "spec.yaml")
    (place / "small.yaml").write_text(
        "inputs: {id: int, age: int, y: int}\nlabel: y\ncolumns: {age: {numeric: age}}\n"
        "model: {type: linear, linear: {columns: [age]}}\n"
    )
    spec = ("records", "verify", "part-00000", "--spec", "small.yaml", *flags)
    done = subprocess.run([muster.binary, *spec], cwd=place, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "part-00000:1: column 'age': 'NA' is not an int" in done.stderr
    run(muster, place, *spec, "--missing", "NA", code=1)  # a row without the value
    (place / "ragged.csv").write_text("a,b\n1,2\n3\n")
    done = subprocess.run([muster.binary, "records", "verify", "ragged.csv"], cwd=place,
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 1 and "ragged.csv:3" in done.stderr


def test_verify_names_the_first_bad_record(muster, place):
    (shard,) = convert(muster, place)
    assert "3 records, sound" in run(muster, place, "records", "verify", "data/part-*")
    offsets = [
        json.loads(line)["offset"]
        for line in run(muster, place, "records", "inspect", str(shard), "--json").splitlines()
    ]
    content = bytearray(shard.read_bytes())
    content[offsets[1] + 30] ^= 1
    shard.write_bytes(content)
    done = subprocess.run(
        [muster.binary, "records", "verify", str(shard)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert f"{shard}: record at byte {offsets[1]}" in done.stderr


def test_stats_are_those_of_numpy(muster, place):
    convert(muster, place)
    csv = json.loads(
        run(muster, place, "records", "stats", "rows.csv", "--spec", "spec.yaml", "--json")
    )
    age = csv["columns"]["age"]
    assert (age["values"], age["missing"]) == (2, 1)
    assert math.isclose(age["stddev"], np.std([31, 7])) and age["mean"] == 19
    records = json.loads(
        run(muster, place, "records", "stats", "data/part-*", "--spec", "spec.yaml", "--json")
    )
    assert records["columns"]["age"]["missing"] == 0, "the default was written"
    assert records["columns"]["tags"]["distinct"] == 3


def test_stats_need_no_model_file(muster, place):
    found = json.loads(run(muster, place, "records", "stats", "rows.csv", "--json"))
    columns = found["columns"]
    assert found["rows"] == 3
    assert [columns[c]["type"] for c in ("id", "age", "pay", "job", "y")] == [
        "int", "int", "float", "text", "int"
    ]  # fmt: skip
    assert columns["pay"]["missing"] == 1 and math.isclose(columns["pay"]["mean"], 1000.75)
    assert columns["age"]["missing_marks"] == ["?"] and columns["age"]["mean"] == 19
    assert columns["y"]["top"] == [["1", 2], ["0", 1]] and columns["y"]["distinct"] == 2
    table = run(muster, place, "records", "stats", "rows.csv")
    assert table.startswith("3 rows, 6 columns\n") and "1 (33.3 %) ?" in table
    assert "1 (2), 0 (1)" in table and "all different" in table


def test_index_of_a_csv_file_is_hidden_and_used(muster, place):
    run(muster, place, "records", "index", "rows.csv")
    assert (place / ".rows.csv.index").exists()
    stats = run(muster, place, "records", "stats", "*.csv", "--spec", "spec.yaml", "--json")
    assert json.loads(stats)["rows"] == 3


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_conversion_leaves_nothing(signum, muster, place):
    with open(place / "rows.csv", "w", encoding="utf-8") as file:
        file.write("id,age,pay,job,tags,y\n")
        file.write("1,31,1.5,clerk,a|b,0\n" * 6_000_000)
    with subprocess.Popen(
        [muster.binary, "records", "from-csv", "rows.csv", "--spec", "spec.yaml", "--out", "data"],
        cwd=place, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        deadline = time.monotonic() + 60
        while not list(place.glob("data/.part-*")) and time.monotonic() < deadline:
            time.sleep(0.005)
        process.send_signal(signum)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == (143 if signum == signal.SIGTERM else 1), errors
    assert "nothing was written" in errors
    assert not list((place / "data").iterdir())


def test_titanic_and_adult_as_pandas_reads_them(muster, tmp_path, real_data, repository):
    import pandas as pd

    for name, file, number in (
        ("titanic", "titanic/train.csv", "Fare"),
        ("adult", "adult/adult.csv", "age"),
    ):
        path = real_data(file)
        spec = repository / "examples" / name / f"{name}.yaml"
        stats = json.loads(
            run(muster, tmp_path, "records", "stats", str(path), "--spec", str(spec), "--json")
        )
        table = pd.read_csv(path)
        assert stats["rows"] == len(table)
        assert math.isclose(stats["columns"][number]["mean"], table[number].mean(), rel_tol=1e-6)
        deviation = table[number].std(ddof=0)
        assert math.isclose(stats["columns"][number]["stddev"], deviation, rel_tol=1e-6)


def test_sample_clicks_scores_as_its_truth_does(muster, tmp_path):
    said = json.loads(
        run(muster, tmp_path, "sample", "clicks", "--rows", "20000", "--seed", "3", "--out", "a.csv",
            "--truth", "truth.csv", "--json")  # fmt: skip
    )
    run(muster, tmp_path, "sample", "clicks", "--rows", "20000", "--seed", "3", "--out", "b.csv")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    lines = (tmp_path / "a.csv").read_text().splitlines()
    assert len(lines) == 20001 and {line.count(",") for line in lines} == {39}
    labels = np.array([line.startswith("1,") for line in lines[1:]])
    truth = np.loadtxt(tmp_path / "truth.csv", skiprows=1)
    assert math.isclose(said["positives"], labels.mean())
    loss = -np.log(np.where(labels, truth, 1 - truth))
    assert math.isclose(said["best_log_loss"], loss.mean(), rel_tol=1e-9)
    positives, negatives = np.sort(truth[labels]), np.sort(truth[~labels])
    below = np.searchsorted(negatives, positives, "left")
    ties = np.searchsorted(negatives, positives, "right") - below
    auc = (below + ties / 2).sum() / len(positives) / len(negatives)
    assert math.isclose(said["best_auc"], auc, rel_tol=1e-12)
