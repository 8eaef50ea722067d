"""`muster init` and `muster records stats` on Parquet files: what is drafted trains on the same files."""

from __future__ import annotations

import datetime
import pathlib
import random
import subprocess
import sys

import pyarrow
import pytest
from pyarrow import feather, orc, parquet

from testbed.muster import Muster

ROWS, DAYS = 300, ("2026-11-20", "2026-11-21")


def make_table(seed: int) -> pyarrow.Table:
    chance = random.Random(seed)

    def some(value: object) -> object:
        return None if chance.random() < 0.1 else value

    def column(make, type_=None) -> pyarrow.Array:
        return pyarrow.array([make() for _ in range(ROWS)], type_)

    start = datetime.datetime(2026, 11, 20)
    age = [some(chance.randrange(18, 80)) for _ in range(ROWS)]
    return pyarrow.table({
        "age": pyarrow.array(age, pyarrow.int16()),
        "member": column(lambda: some(chance.random() < 0.5)),
        "price": column(lambda: some(chance.uniform(1, 9))),
        "seen": column(
            lambda: some(start + datetime.timedelta(seconds=chance.randrange(10**6))),
            pyarrow.timestamp("us", tz="UTC"),
        ),
        "city": column(lambda: some(chance.choice(["Rome", "Oslo", "Lima"]))).dictionary_encode(),
        "digit": column(lambda: chance.choice("123")),
        "words": column(lambda: [chance.choice("abc") for _ in range(chance.randrange(4))]),
        "place": column(lambda: {"x": 1}),
        "bought": pyarrow.array(["yes" if (a or 0) > 40 else "no" for a in age]),
    })  # fmt: skip


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.setenv("MUSTER_PARQUET_PYTHON", sys.executable)
    for seed, day in enumerate(DAYS):
        (tmp_path / f"table/dt={day}").mkdir(parents=True)
        parquet.write_table(make_table(seed), tmp_path / f"table/dt={day}/part-0", row_group_size=90)
    return tmp_path


def test_a_drafted_model_trains_on_the_same_files(folder: pathlib.Path, muster: Muster) -> None:
    [found] = muster.json("init", folder / "table", "--label", "bought", "--out", folder / "m.yaml")
    assert found["rows"] == ROWS * len(DAYS) and found["format"] == "parquet"
    uses = {column["name"]: column["use"] for column in found["columns"]}
    assert uses == {
        "dt": "vocabulary", "age": "numeric", "member": "numeric", "price": "numeric", "seen": "date",
        "city": "vocabulary", "digit": "vocabulary", "words": "vocabulary",
    }  # fmt: skip
    missing = {column["name"]: column["missing"] for column in found["columns"]}
    assert missing["digit"] == 0 < missing["age"] and missing["city"] > 0
    assert found["warnings"] == [
        "column 'place' is left out: it is a struct, a map or a list of lists; write its fields as columns"
    ]
    done = subprocess.run(
        [muster.binary, *found["next"].split()[1:]], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    metrics = muster.event("evaluated", "evaluate", folder / "model", "--data", folder / "table")
    assert metrics["auc"] > 0.9, metrics


def test_a_label_and_a_file_that_are_not_there_are_named(folder: pathlib.Path, muster: Muster) -> None:
    out = folder / "m.yaml"
    said = muster.fail("init", folder / "table", "--label", "bougt", "--out", out)
    assert "did you mean 'bought'?" in said
    assert "no file matches" in muster.fail("init", folder / "none.parquet", "--label", "y", "--out", out)
    (folder / "text.parquet").write_text("a,b\n1,2\n")
    assert f"{folder}/text.parquet" in muster.fail("init", folder / "text.parquet", "--label", "a", "--out", out)
    assert not out.exists()


def test_a_python_without_pyarrow_is_told_what_to_install(
    folder: pathlib.Path, muster: Muster, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "python").write_text(f'#!/bin/sh\nexec {sys.executable} -S -E "$@"\n')
    (folder / "python").chmod(0o755)
    monkeypatch.setenv("MUSTER_PARQUET_PYTHON", str(folder / "python"))
    said = muster.fail("init", folder / "table", "--label", "bought", "--out", folder / "m.yaml")
    assert "pip install pyarrow" in said and len(said.splitlines()) == 1


def test_the_columns_are_described_by_their_own_types(folder: pathlib.Path, muster: Muster) -> None:
    [stats] = muster.json("records", "stats", folder / "table")
    types = {name: column["type"] for name, column in stats["columns"].items()}
    assert types == {
        "dt": "text", "age": "int", "member": "int", "price": "float", "seen": "date", "city": "text",
        "digit": "text", "words": "text", "bought": "text",
    }  # fmt: skip
    assert "min" not in stats["columns"]["digit"] and stats["columns"]["seen"]["missing"] > 0


def test_types_that_differ_between_files_and_ids_above_int64_are_drafted(
    folder: pathlib.Path, muster: Muster
) -> None:
    """Files of several days often have a column once as integers and once as floats, or as text."""
    tables = [
        pyarrow.table({
            "y": [0, 1] * 50, "n": list(range(100)), "code": list(range(100)),
            "id": pyarrow.array([7, 2**63 + 5] * 50, pyarrow.uint64()),
        }),
        pyarrow.table({
            "y": [0, 1] * 50, "n": [each + 0.5 for each in range(100)], "code": ["7", "x"] * 50,
            "id": pyarrow.array([7, 9] * 50, pyarrow.uint64()), "late": ["a", "b"] * 50,
        }),
    ]  # fmt: skip
    (folder / "days").mkdir()
    for number, table in enumerate(tables):
        parquet.write_table(table, folder / f"days/part-{number}")
    [found] = muster.json("init", folder / "days", "--label", "y", "--out", folder / "m.yaml")
    types = {column["name"]: (column["type"], column["missing"]) for column in found["columns"]}
    assert types["n"] == ("float", 0) and types["code"] == ("text", 0)
    assert types["id"] == ("text", 0) and types["late"] == ("text", 100)
    words = (folder / "m.yaml").read_text()
    assert "9223372036854775813" in words
    muster.run("train", folder / "m.yaml", "--train", folder / "days", "--model-dir", folder / "model")


@pytest.mark.parametrize("name, says", [
    ("t.feather", "pandas.read_feather('t.feather').to_csv('t.csv', index=False)"),
    ("t.orc", "pandas.read_orc('t.orc').to_csv('t.csv', index=False)"),
    ("t.arrows", "open_stream('t.arrows').read_pandas().to_csv('t.csv', index=False)"),
])  # fmt: skip
def test_other_tables_are_named_with_a_command_that_makes_them_readable(
    name: str, says: str, folder: pathlib.Path, muster: Muster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    table = make_table(3).drop(["words", "place"])
    if name == "t.orc":
        orc.write_table(table.drop(["city"]), name)
    elif name == "t.feather":
        feather.write_feather(table, name)
    else:
        with pyarrow.ipc.new_stream(name, table.schema) as stream:
            stream.write_table(table)
    said = muster.fail("init", name, "--label", "bought", "--out", "m.yaml")
    assert says in said and len(said.splitlines()) == 1
    command = said[said.index("python3 -c ") :].strip()
    subprocess.run(command.replace("python3", sys.executable, 1), shell=True, check=True)
    muster.run("init", "t.csv", "--label", "bought", "--out", "m.yaml")
