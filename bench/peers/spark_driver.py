"""spark_driver.py SETTINGS: a driver of Spark for bench/spark.py, with Muster and TensorFlowOnSpark in one session.

SETTINGS is JSON. Each line of the input is JSON, [name of a method of Driver, its arguments]; what the method
returns is the line of JSON that answers it. A standalone cluster of two workers with a core each is started first.
"""

import ctypes
import json
import os
import sys
import time
import uuid
from pathlib import Path

import pandas
from pyspark.sql import SparkSession, functions
from spark_scoring import export_again, predict_keras, predict_series

from testbed.spark.cluster import SparkCluster

WORKERS = 2
FLOATS, INTS = 20, 20
BATCH_ROWS = 10_000  # as many as Spark puts into a record batch
TFMODEL_ROWS = 1000
IDS = [f"c{i}" for i in range(8)]  # inputs of the Keras model
TICKS = os.sysconf("SC_CLK_TCK")


def adopt_orphans():
    """What this process has started, and what that has started, stays below it when its parent has ended."""
    set_child_subreaper = 36
    assert ctypes.CDLL(None).prctl(set_child_subreaper, 1, 0, 0, 0) == 0


def cpu_ticks():
    """Of each process below this one, with those that it has waited for."""
    used, children = {}, {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has ended
            used[folder.name] = sum(map(int, fields[11:15]))
            children.setdefault(fields[1], []).append(folder.name)
    tree = [str(os.getpid())]
    for process in tree:
        tree += children.get(process, [])
    return {process: used[process] for process in tree}


def measured(work):
    """What `work` costs, in CPU and wall seconds, and what it returns.

    Spark ends Python workers that were idle for a minute, and nobody counts what such a worker has used: it is
    left out on both sides.
    """
    wall, before = time.monotonic(), cpu_ticks()
    result = work()
    wall = time.monotonic() - wall
    ticks = sum(used - before.get(process, 0) for process, used in cpu_ticks().items())
    return {"cpu": ticks / TICKS, "wall": wall, "result": result}


def keep_rows(folder, ctx):
    """A program that counts its rows and adds up a column, by next_batch."""
    feed = ctx.get_data_feed()
    rows, total = 0, 0
    while not feed.should_stop():
        batch = feed.next_batch(BATCH_ROWS)
        rows += len(batch)
        total += sum(row[-1] for row in batch)
    Path(folder, str(ctx.executor_id)).write_text(json.dumps([rows, total]))


def keep_columns(folder, ctx):
    """The same by next_columns."""
    feed = ctx.get_data_feed()
    rows, total = 0, 0
    columns = feed.next_columns(BATCH_ROWS)
    while columns:
        rows += len(columns["i0"])
        total += int(columns["i19"].sum(dtype="int64"))
        columns = feed.next_columns(BATCH_ROWS)
    Path(folder, str(ctx.executor_id)).write_text(json.dumps([rows, total]))


def nothing(args, ctx):
    """A program that ends at once."""


def drop(batches):
    """For mapInArrow."""
    for _ in batches:
        pass
    return iter(())


class Driver:
    def __init__(self, spark, folder, clicks_model):
        self.spark, self.folder, self.clicks_model = spark, Path(folder), clicks_model

    def table(self, rows):
        number = functions.col("id")
        floats = [(number * 0.5 + i).cast("float").alias(f"f{i}") for i in range(FLOATS)]
        ints = [(number + i).cast("int").alias(f"i{i}") for i in range(INTS)]
        return self.spark.range(0, rows, 1, WORKERS).select(*floats, *ints)

    # Feeding: each is [rows, warm rows]. The nodes' programs have summed up column i19.

    def map_in_arrow(self, rows, warm_rows):
        def work(count):
            self.table(count).mapInArrow(drop, "nothing int").collect()

        work(warm_rows)
        return measured(lambda: work(rows))

    def feed_columns(self, rows, warm_rows):
        return self.feed(self.tfcluster("muster.tfos"), keep_columns, self.table, rows, warm_rows)

    def feed_batches(self, rows, warm_rows):
        return self.feed(self.tfcluster("muster.tfos"), keep_rows, self.table, rows, warm_rows)

    def feed_rdd(self, module, rows, warm_rows):
        return self.feed(
            self.tfcluster(module), keep_rows, lambda count: self.table(count).rdd, rows, warm_rows
        )

    def tfcluster(self, module):
        return __import__(f"{module}.TFCluster", fromlist=["TFCluster"])

    def feed(self, tfcluster, program, source, rows, warm_rows):
        kept = self.folder / f"kept-{uuid.uuid4().hex}"
        kept.mkdir()
        cluster = tfcluster.run(
            self.spark.sparkContext, program, str(kept), WORKERS, 0,
            input_mode=tfcluster.InputMode.SPARK,
        )  # fmt: skip
        cluster.train(source(warm_rows), 1)
        cost = measured(lambda: cluster.train(source(rows), 1))
        cluster.shutdown()
        found = [json.loads(path.read_text()) for path in kept.iterdir()]
        expected = [sum(n + INTS - 1 for n in range(count)) for count in (rows, warm_rows)]
        assert sum(count for count, _ in found) == rows + warm_rows, found
        assert sum(total for _, total in found) == sum(expected), (found, expected)
        return cost

    def start(self, module):
        """From TFCluster.run of programs that end at once to the end of shutdown."""
        tfcluster = self.tfcluster(module)

        def work():
            tfcluster.run(
                self.spark.sparkContext, nothing, {}, WORKERS, 0,
                input_mode=tfcluster.InputMode.TENSORFLOW,
            ).shutdown()  # fmt: skip

        return measured(work)

    # Clicks, of which the table `name` is a folder of Parquet files.

    def make_clicks(self, csv, name, partitions):
        table = self.spark.read.csv(csv, header=True, inferSchema=True)
        numbers = [c for c in table.columns if c.startswith("I")]
        table = table.select("label", *(functions.col(c).cast("float") for c in numbers),
                             *(c for c in table.columns if c.startswith("C")))  # fmt: skip
        table = table.na.fill(0.0).na.fill("none").repartition(partitions)
        table.write.mode("overwrite").parquet(str(self.folder / name))

    def clicks(self, name):
        return self.spark.read.parquet(str(self.folder / name))

    def write_ours(self, name, out):
        from muster.spark import write_tfrecords

        return measured(lambda: write_tfrecords(self.clicks(name), out).rows)

    def write_hadoop(self, name, out):
        from tensorflowonspark import dfutil

        return measured(lambda: dfutil.saveAsTFRecords(self.clicks(name), out))

    def fit_ours(self, name, model_dir):
        from muster.spark import MusterEstimator

        estimator = MusterEstimator(
            model=self.clicks_model, epochs=1, seed=1, threads=1, staging=str(self.folder), modelDir=model_dir
        )
        return measured(lambda: bool(estimator.fit(self.clicks(name))))

    def write_parquet(self, name, out):
        return measured(lambda: self.clicks(name).write.parquet(out))

    # Scoring: the probability of a click, summed up.

    def score_ours(self, name, model_dir, kept):
        from muster.spark.estimator import MusterModel

        model = MusterModel(folder=model_dir).setPredictionCol("").setProbabilityCol("").setRawPredictionCol("")
        model.setOutputCols(["logistic"]).setKeptCols(kept)
        return self.score(lambda: model.transform(self.clicks(name)), "logistic")

    def export_again(self, export_dir, out):
        export_again(export_dir, out)

    def score_tfmodel(self, name, export_dir):
        from tensorflowonspark.pipeline import TFModel

        columns = self.feature_columns(name)
        model = TFModel({}).setExportDir(export_dir).setTagSet("serve").setBatchSize(TFMODEL_ROWS)
        model.setSignatureDefKey("serving_default").setInputMapping({c: c.lower() for c in columns})
        model.setOutputMapping({"logistic": "logistic"})
        return self.score(lambda: model.transform(self.clicks(name)), "logistic[0]")

    def score_udf(self, name, export_dir):
        columns = self.feature_columns(name)

        @functions.pandas_udf("float")
        def predict(*series: pandas.Series) -> pandas.Series:
            return predict_series(export_dir, columns, series)

        return self.score(lambda: self.clicks(name).withColumn("logistic", predict(*columns)), "logistic")

    def read_clicks(self, name):
        """What Spark alone needs for the rows."""
        return measured(lambda: self.clicks(name).write.format("noop").mode("overwrite").save())

    def drop_clicks(self, name):
        """What it needs to bring them to a Python worker, which throws them away."""
        return measured(lambda: self.clicks(name).mapInArrow(drop, "nothing int").collect())

    # Scoring by a Keras model, of rows of ids.

    def make_ids(self, rows):
        ids = [functions.expr(f"cast(pow(rand({i}), 3) * 1000 as bigint) as {name}") for i, name in enumerate(IDS)]
        self.spark.range(0, rows, 1, WORKERS).select(*ids).write.parquet(str(self.folder / "ids"))

    def score_keras_ours(self, model_dir, kept):
        from muster.spark.estimator import MusterModel

        model = MusterModel(folder=model_dir).setKeptCols(kept)
        return self.score(lambda: model.transform(self.clicks("ids")), "prediction")

    def score_keras_udf(self, export_dir):
        @functions.pandas_udf("float")
        def predict(*series: pandas.Series) -> pandas.Series:
            return predict_keras(export_dir, IDS, series)

        return self.score(lambda: self.clicks("ids").withColumn("prediction", predict(*IDS)), "prediction")

    def feature_columns(self, name):
        return [c for c in self.clicks(name).columns if c != "label"]

    def score(self, make, column):
        def work():
            added = functions.sum(functions.expr(column).cast("double"))
            return make().select(added).collect()[0][0]

        return measured(work)


def main():
    settings = json.loads(sys.argv[1])
    adopt_orphans()
    folder = Path(settings["folder"])
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer
    cluster = SparkCluster(folder / "cluster", WORKERS)
    (folder / "cluster").mkdir()
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    try:
        cluster.start()
        builder = SparkSession.builder.master(cluster.master).appName("bench/run spark")
        for name, value in {
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.memory": "1g",
            "spark.executor.memory": "1g",
            "spark.jars": settings["jars"],
        }.items():
            builder = builder.config(name, value)
        spark = builder.getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
        driver = Driver(spark, folder, settings["clicks_model"])
        for line in sys.stdin:
            name, *arguments = json.loads(line)
            print(json.dumps(getattr(driver, name)(*arguments)), file=out, flush=True)
        spark.stop()
    finally:
        cluster.stop()


if __name__ == "__main__":
    main()
