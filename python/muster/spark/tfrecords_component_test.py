"""write_tfrecords and read_tfrecords in a SparkSession of this process."""

from __future__ import annotations

import datetime
import decimal
import pathlib
import sys
from typing import Any, Callable, Iterator

import pytest
from pyspark import TaskContext
from pyspark.ml.linalg import Vectors
from pyspark.sql import Row

from muster.binary import MusterError
from muster.spark import read_tfrecords, write_tfrecords
from testbed.muster import Muster
from testbed.spark import sessions
from testbed.spark.fixtures import spark

__all__ = ["spark"]
SCHEMA = "id long, small byte, flag boolean, x double, y float, price decimal(10,2), word string, "
SCHEMA += "raw binary, day date, at timestamp, ids array<long>, words array<string>, xs array<double>"
CLICKS = "examples/clicks/clicks.yaml"


def values(number: int) -> tuple[Any, ...]:
    missing = number % 3 == 0
    return (
        number, number % 100, number % 2 == 0, None if missing else number / 4, number * 0.5,
        decimal.Decimal(f"{number}.25"), None if missing else f"w\u00e9{number}",
        bytes([255, number % 256]), datetime.date(2026, 11, number % 28 + 1),
        datetime.datetime(2026, 11, 26, 10, 0, number % 60), list(range(number % 4)),
        None if missing else ["a", f"b{number}"], [number / 8],
    )  # fmt: skip


def ours(folder: pathlib.Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("compression", ["none", "gzip", "zlib"])
def test_all_types_there_and_back(compression: str, spark: Any, tmp_path: pathlib.Path) -> None:
    rows = [values(number) for number in range(500)]
    df = spark.createDataFrame(rows, SCHEMA).repartition(3)
    path = tmp_path / "data"
    done = write_tfrecords(df, path, compression=compression)
    assert (done.rows, done.files) == (500, 3) and done.bytes > 0
    suffix = {"none": "", "gzip": ".gz", "zlib": ".zlib"}[compression]
    names = [f"part-{number:05d}.tfrecord{suffix}" for number in range(3)]
    assert ours(path) == sorted([*names, *(f".{name}.index" for name in names)])
    assert ours(tmp_path) == ["data"]  # nothing else is left

    given = {row.id: row for row in read_tfrecords(spark, path, SCHEMA.replace("decimal(10,2)", "double")).collect()}
    assert len(given) == 500
    for row in rows:
        found, wanted = list(given[row[0]]), list(row)
        wanted[5] = float(wanted[5])
        wanted[11] = wanted[11] or []  # a list without values
        assert found[3] == pytest.approx(wanted[3], rel=1e-6)
        wanted[3] = found[3]
        assert found == wanted

    inferred = read_tfrecords(spark, str(path))
    kinds = dict(inferred.dtypes)
    assert kinds == {
        "id": "bigint", "small": "bigint", "flag": "bigint", "x": "float", "y": "float",
        "price": "float", "word": "string", "raw": "binary", "day": "bigint", "at": "bigint",
        "ids": "array<bigint>", "words": "array<string>", "xs": "float",
    }  # fmt: skip
    assert inferred.selectExpr("sum(id)").first()[0] == sum(range(500))
    assert inferred.where("word is null").count() == 167



def test_workers_that_lack_a_package_are_told_of(
    spark: Any, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = sessions.python_without_packages(tmp_path)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", python)
    with pytest.raises(MusterError, match=f"run {python}, where this fails: No module named .*PYSPARK_PYTHON={sys.executable}"):
        write_tfrecords(spark.range(10), tmp_path / "data")
    assert not (tmp_path / "data").exists()


def test_the_same_bytes_as_the_command_line(spark: Any, muster: Muster, tmp_path: pathlib.Path) -> None:
    muster.run("sample", "clicks", "--rows", 3000, "--seed", 5, "--out", tmp_path / "clicks.csv")
    muster.run("records", "from-csv", tmp_path / "clicks.csv", "--spec", CLICKS, "--out", tmp_path / "theirs")
    df = spark.read.csv(str(tmp_path / "clicks.csv"), header=True, inferSchema=True).coalesce(1)
    write_tfrecords(df, tmp_path / "ours", model=CLICKS)
    theirs = next((tmp_path / "theirs").glob("part-*")).read_bytes()
    assert (tmp_path / "ours/part-00000.tfrecord").read_bytes() == theirs


def test_real_passengers(
    spark: Any, muster: Muster, real_data: Callable[[str], pathlib.Path], tmp_path: pathlib.Path
) -> None:
    table, spec = real_data("titanic/train.csv"), "examples/titanic/titanic.yaml"
    muster.run("records", "from-csv", table, "--spec", spec, "--out", tmp_path / "theirs")
    df = spark.read.csv(str(table), header=True, inferSchema=True, escape='"').coalesce(1)
    write_tfrecords(df, tmp_path / "ours", model=spec)
    theirs = next((tmp_path / "theirs").glob("part-*")).read_bytes()
    assert (tmp_path / "ours/part-00000.tfrecord").read_bytes() == theirs


def test_empty_partitions_and_an_empty_frame(spark: Any, muster: Muster, tmp_path: pathlib.Path) -> None:
    df = spark.createDataFrame([(7, "a")], "id long, word string").repartition(4)
    done = write_tfrecords(df, tmp_path / "data")
    assert (done.rows, done.files) == (1, 4)
    assert read_tfrecords(spark, tmp_path / "data").collect() == [Row(id=7, word="a")]
    assert len(muster.json("records", "index", f"{tmp_path}/data/part-*")) == 4
    empty = spark.createDataFrame([], "id long")
    assert write_tfrecords(empty, tmp_path / "none").rows == 0
    assert read_tfrecords(spark, tmp_path / "none", "id long").count() == 0


def test_a_schema_chooses_and_casts(spark: Any, tmp_path: pathlib.Path) -> None:
    df = spark.createDataFrame([(1, "2.5", "x")], "id int, number string, word string")
    write_tfrecords(df, tmp_path / "data", schema="number float, id long")
    assert read_tfrecords(spark, tmp_path / "data").collect() == [Row(id=1, number=2.5)]


def test_vectors_are_arrays(spark: Any, tmp_path: pathlib.Path) -> None:
    df = spark.createDataFrame([(Vectors.dense(1, 2),), (Vectors.sparse(2, [1], [5.0]),)], ["v"])
    write_tfrecords(df.coalesce(1), tmp_path / "data")
    assert [row.v for row in read_tfrecords(spark, tmp_path / "data").collect()] == [[1, 2], [0, 5]]


def failing_once(at: int) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Fails the first attempt of each task after so many rows."""

    def fail(batches: Iterator[Any]) -> Iterator[Any]:
        done = 0
        for batch in batches:
            if TaskContext.get().attemptNumber() == 0 and done + batch.num_rows > at:
                yield batch.slice(0, at - done)
                raise RuntimeError("a test makes this attempt fail")
            done += batch.num_rows
            yield batch

    return fail


def test_a_task_that_fails_at_half_is_repeated_and_repeats_nothing(
    spark: Any, tmp_path: pathlib.Path
) -> None:
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", 500)
    df = spark.range(0, 20000, 1, 4).mapInArrow(failing_once(2500), "id long")
    done = write_tfrecords(df, tmp_path / "data")
    assert (done.rows, done.files) == (20000, 4)
    ids = [row.id for row in read_tfrecords(spark, tmp_path / "data").collect()]
    assert sorted(ids) == list(range(20000))
    assert ours(tmp_path) == ["data"]


def test_a_job_that_fails_leaves_nothing(spark: Any, tmp_path: pathlib.Path) -> None:
    def fail(batches: Iterator[Any]) -> Iterator[Any]:
        yield from batches
        raise RuntimeError("a test makes every attempt fail")

    with pytest.raises(Exception, match="every attempt fail"):
        write_tfrecords(spark.range(10).mapInArrow(fail, "id long"), tmp_path / "data")
    assert ours(tmp_path) == []


def test_an_existing_folder_is_replaced_only_when_asked(spark: Any, tmp_path: pathlib.Path) -> None:
    for count in (3, 1):
        df = spark.range(0, 10 * count, 1, count)
        mode = "error" if count == 3 else "overwrite"
        write_tfrecords(df, tmp_path / "data", mode=mode)
    assert read_tfrecords(spark, tmp_path / "data").count() == 10
    assert len(ours(tmp_path / "data")) == 2
    with pytest.raises(ValueError, match="data is there already"):
        write_tfrecords(spark.range(3), tmp_path / "data")


@pytest.mark.parametrize("frame, arguments, said", [
    (["map('a', 1) as m"], {}, "column 'm' is map<string,int>, which no feature holds"),
    (["id as a", "id as a"], {}, "the DataFrame has 2 columns that Spark takes for 'a': a, a. Keep one"),
    (["id as a", "id as A"], {"schema": "a int"}, "2 columns that Spark takes for 'a': a, A"),
    (["id as I1", "1 as i2"], {"model": CLICKS}, "no column 'I2', which the model needs; it has: I1"),
    (["id"], {"model": CLICKS}, "the DataFrame has no column 'label', which the model needs; it has: id"),
    (["id"], {"schema": "nothing long"}, "the DataFrame has no column 'nothing'"),
    (["if(id = 2, 'abc', '7') as t"], {"schema": "t int"}, "alue 'abc' "),
    (["id as target"], {"schema": "targt int"}, "which the schema names (did you mean 'target'?)"),
    (["id"], {"mode": "append"}, "mode 'append'"),
    (["id"], {"names": "part"}, "names 'part': a place for the partition's number is wanted"),
    (["id"], {"compression": "zstd"}, "compression 'zstd'"),
])  # fmt: skip
def test_what_cannot_be_written_is_one_line(
    frame: list[str], arguments: dict[str, Any], said: str, spark: Any, tmp_path: pathlib.Path
) -> None:
    df = spark.range(3).selectExpr(*frame)
    with pytest.raises(ValueError) as caught:
        write_tfrecords(df, tmp_path / "data", **arguments)
    assert said in str(caught.value) and "\n" not in str(caught.value)
    assert ours(tmp_path) == []


MODEL = """
inputs: {x: float, n: int, y: int}
label: y
columns: {x: {numeric: x}}
model: {type: linear, linear: {columns: [x]}}
"""


@pytest.mark.parametrize("frame, said", [
    (["if(id = 5, null, id) as x", "1 as n", "1 as y"],
     "column 'x' has no value, and no default in the model file"),
    (["'a' as n", "id as x", "1 as y"], "column 'n' is string, but the model file says int"),
    (["0.5D as n", "id as x", "1 as y"], "column 'n' is double, but the model file says int"),
    (["array(id) as x", "1 as n", "1 as y"], "column 'x' is array<bigint>, but the model file says one value"),
])  # fmt: skip
def test_values_that_do_not_fit_a_model_are_one_line(
    frame: list[str], said: str, spark: Any, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "model.yaml").write_text(MODEL)
    df = spark.range(0, 10, 1, 2).selectExpr(*frame)
    with pytest.raises(ValueError) as caught:
        write_tfrecords(df, tmp_path / "data", model=str(tmp_path / "model.yaml"))
    assert said in str(caught.value) and "\n" not in str(caught.value)
    assert ours(tmp_path) == ["model.yaml"]


def test_reading_what_is_not_there_or_does_not_fit(spark: Any, tmp_path: pathlib.Path) -> None:
    with pytest.raises(ValueError, match="no file is there"):
        read_tfrecords(spark, tmp_path / "nothing")
    write_tfrecords(spark.createDataFrame([([1, 2],)], "ids array<long>"), tmp_path / "data")
    with pytest.raises(Exception, match="feature 'ids' has 2 values in a record"):
        read_tfrecords(spark, tmp_path / "data", "ids long").collect()
    with pytest.raises(Exception, match="ids"):
        read_tfrecords(spark, tmp_path / "data", "ids array<string>").collect()
    (tmp_path / "text").write_text("a,b\n1,2\n")
    with pytest.raises((MusterError, Exception), match="text"):
        read_tfrecords(spark, tmp_path / "text").collect()
