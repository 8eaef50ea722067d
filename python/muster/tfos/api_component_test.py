"""muster.tfos beside its clusters: TFParallel, dfutil, pipeline, and programs that cannot be changed."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
from typing import Any

import pyspark
import pytest

from muster.tfos import TFNode, TFParallel, dfutil
from muster.tfos.pipeline import Namespace, TFEstimator, TFModel
from testbed.spark import sessions
from testbed.spark.fixtures import spark

__all__ = ["spark"]


@pytest.mark.parametrize("use_barrier", [False, True])
def test_instances_of_a_program(spark: Any, tmp_path: pathlib.Path, use_barrier: bool) -> None:
    def program(args: Any, ctx: Any) -> None:
        (pathlib.Path(args["folder"]) / str(ctx.worker_num)).write_text(f"{ctx.num_workers} {ctx.defaultFS}")

    TFParallel.run(spark.sparkContext, program, {"folder": str(tmp_path)}, 2, use_barrier=use_barrier)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "0": "2 file://", "1": "2 file://",
    }  # fmt: skip


def test_too_many_instances(spark: Any) -> None:
    with pytest.raises(ValueError, match="3 tasks, but Spark's executors have 2 slots"):
        TFParallel.run(spark.sparkContext, print, {}, 3)


def test_dataframes_as_tfrecords(spark: Any, tmp_path: pathlib.Path) -> None:
    row = ("a text", 1, [2, 3, 4], -1.5, [-2.5, -3.5], bytearray(b"\xff\xfe"), None)
    schema = "a string, b int, c array<int>, d double, e array<double>, f binary, g string"
    df = spark.createDataFrame([row], schema)
    dfutil.saveAsTFRecords(df.coalesce(1), str(tmp_path / "data"))
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == [".part-r-00000.index", "part-r-00000"]
    loaded = dfutil.loadTFRecords(spark.sparkContext, f"file://{tmp_path}/data", binary_features=["f"])
    assert loaded.dtypes == [
        ("a", "string"), ("b", "bigint"), ("c", "array<bigint>"), ("d", "double"), ("e", "array<double>"),
        ("f", "binary"), ("g", "string"),
    ]  # fmt: skip
    assert tuple(loaded.collect()[0]) == row
    assert dfutil.isLoadedDF(loaded)
    assert not dfutil.isLoadedDF(df) and not dfutil.isLoadedDF(loaded.filter("b > 0"))
    with pytest.raises(ValueError, match="is there already"):
        dfutil.saveAsTFRecords(df, str(tmp_path / "data"))


def test_paths() -> None:
    def path(root: str, given: str) -> str:
        return TFNode.hdfs_path(type("ctx", (), {"defaultFS": root, "working_dir": "/folder"}), given)

    import getpass

    user = getpass.getuser()
    assert path("hdfs://n:1", "s3a://b/x") == "s3a://b/x"
    assert path("hdfs://n:1", "/x") == "hdfs://n:1/x"
    assert path("hdfs://n:1", "x") == f"hdfs://n:1/user/{user}/x"
    assert path("file://", "x") == "file:///folder/x"
    assert path("other://", "x") == "other:///x"


def test_an_estimator_feeds_its_columns(spark: Any, tmp_path: pathlib.Path) -> None:
    def train(args: Any, ctx: Any) -> None:
        feed = ctx.get_data_feed(input_mapping=args.input_mapping)
        while not feed.should_stop():
            batch = feed.next_batch(args.batch_size)
            text = "".join(f"{x} {y}\n" for x, y in zip(batch["features"], batch["label"]))
            with open(f"{args.model_dir}/{args.name}", "a") as file:
                file.write(text)

    df = spark.createDataFrame([(float(n), n % 2, "unused") for n in range(50)], "x double, y int, z string")
    estimator = TFEstimator(train, {"name": "rows"}).setInputMapping({"x": "features", "y": "label"})
    estimator.setBatchSize(10).setEpochs(2).setModelDir(str(tmp_path)).setExportDir("exported")
    model = estimator.fit(df)
    lines = (tmp_path / "rows").read_text().splitlines()
    assert sorted(lines) == sorted([f"{float(n)} {n % 2}" for n in range(50)] * 2)
    assert isinstance(model, TFModel)
    assert (model.getExportDir(), model.getBatchSize()) == ("exported", 10)
    with pytest.raises(ValueError, match="no column 'w' of input_mapping; it has: x, y, z"):
        estimator.setInputMapping({"w": "features"}).fit(df)
    with pytest.raises(ValueError, match="TFModel needs export_dir"):
        TFModel({}).transform(df)


def test_arguments() -> None:
    assert list(Namespace({"a": 1})) == ["a"]
    assert list(Namespace(["--a", "1"])) == ["--a", "1"]
    assert Namespace({"a": 1}) == Namespace(Namespace({"a": 1}))
    estimator = TFEstimator(print, {"a": 1}).setSteps(7)
    merged = estimator.merge_args_params()
    assert (merged.a, merged.steps, merged.batch_size, merged.master_node) == (1, 7, 100, "chief")
    assert estimator.getProtocol() == "grpc"
    with pytest.raises(TypeError, match="a list, a dict or a Namespace"):
        Namespace(3)


PROGRAM = """
import sys
from tensorflowonspark import TFCluster, TFNode
import tensorflowonspark.compat

def program(args, ctx):
    from tensorflowonspark import TFNode
    feed = TFNode.DataFeed(ctx.mgr, False)
    while not feed.should_stop():
        feed.batch_results([len(args) * row for row in feed.next_batch(10)])

if __name__ == "__main__":
    from testbed.spark import sessions
    sc = sessions.session().sparkContext
    cluster = TFCluster.run(sc, program, sys.argv, 1, 0, input_mode=TFCluster.InputMode.SPARK)
    print("sum", cluster.inference(sc.parallelize(range(100), 3)).sum())
    cluster.shutdown()

    def address(numbers):
        from tensorflowonspark import util
        import tensorflowonspark.reservation
        return [util.get_ip_address() for number in numbers]

    print("tasks without a cluster", sc.parallelize(range(2), 2).mapPartitions(address).count())
"""


@pytest.mark.parametrize("submit", [False, True])
def test_a_program_that_imports_tensorflowonspark(tmp_path: pathlib.Path, submit: bool) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "muster.tfos"]
    environment = {**os.environ, "PYTHONPATH": sessions.PYTHONPATH}
    if submit:
        module = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
        spark_submit = pathlib.Path(pyspark.__file__).parent / "bin" / "spark-submit"
        command = [str(spark_submit), "--py-files", module.stdout.strip()]
    done = subprocess.run(
        [*command, str(tmp_path / "program.py"), "one", "two"], env=environment, timeout=300,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    assert f"sum {3 * sum(range(100))}" in done.stdout
    assert "tasks without a cluster 2" in done.stdout
