"""Spark: feeding, writing, training and scoring, beside TensorFlowOnSpark in the same session."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from bench.context import CannotRun, Context, python_path
from bench.measure import CommandFailed, Series, interleave, run
from bench.report import Report, Row, in_unit

COLUMN_ROWS, BATCH_ROWS, RDD_ROWS, PEER_ROWS = 3_000_000, 500_000, 50_000, 10_000
FEW_CLICKS, MORE_CLICKS, CLICKS, IDS = 20_000, 200_000, 1_000_000, 200_000
TABLES = {"few": FEW_CLICKS, "more": MORE_CLICKS, "clicks": CLICKS}
FEED, FEED_SHARE, FEED_BATCH, START, FIT = 50.0, 0.8, 5.0, 0.25, 1 / 1.5  # goals
SCORING, SCORING_UDF, SCORING_KERAS, WRITING = 10.0, 5.0, 1.0, 5.0
METHOD = f"""
A standalone cluster of Spark 3.5.9 on this machine, two workers with a core each, Python 3.11, TensorFlow 2.15.1;
both sides in one session, each cluster of TFCluster.run with two nodes. CPU seconds are those of all processes:
driver, executors, Python workers, nodes and programs that they start. Wall seconds are used only where it says so.

- Feeding: rows of 20 floats and 20 ints that Spark computes from their number. A program counts them and adds up
  one column, in batches of 10,000. "Columns": `cluster.train(df)` and `next_columns` ({COLUMN_ROWS:,} rows); "rows":
  `cluster.train(df)` and `next_batch` ({BATCH_ROWS:,}); "an RDD's rows": `cluster.train(df.rdd)` and `next_batch`
  ({RDD_ROWS:,}). The peer is TensorFlowOnSpark 2.2.5 with `cluster.train(df.rdd)` and `next_batch` ({PEER_ROWS:,}),
  or `df.mapInArrow` with a function that drops all batches ({COLUMN_ROWS:,}). A twentieth of these rows is fed first.
- Clicks are rows of `muster sample clicks` (13 floats, 26 texts, the label), without nulls, in two Parquet files.
- Writing: `write_tfrecords` of {MORE_CLICKS:,} clicks; TensorFlowOnSpark's `dfutil.saveAsTFRecords` of {FEW_CLICKS:,},
  which makes a record of each row of an RDD in Python and writes them by `tensorflow-hadoop` 1.15.0 from Maven.
- Scoring by `examples/clicks/clicks.yaml`, the probability alone: `MusterModel.transform` of {CLICKS:,} clicks, and
  of {MORE_CLICKS:,}, with all columns kept (40, as by default) and with none (`keptCols=[]`); of {MORE_CLICKS:,}
  TensorFlowOnSpark's `TFModel.transform` on the exported SavedModel with batches of 1,000, whose result has no other
  columns; and of both numbers a pandas UDF that calls it with Spark's batches of 10,000, of whose result Spark computes
  only what is summed up. The Python workers of all sides have scored with the model before. The goals are for
  {CLICKS:,} rows; of {MORE_CLICKS:,} the start of Muster's programs is a half of the time. "Reading": what Spark
  needs for these rows before anybody scores them (`write.format("noop")`); `mapInArrow` into nothing: what it needs to
  bring them to a Python worker that drops them. No program that Spark gives the rows can be faster.
- Scoring by a Keras model, the "wide & deep" of 8 ids of [keras.md](keras.md): {IDS:,} rows each by `transform`
  (TensorFlow 2.21), and by a pandas UDF that calls the exported SavedModel (2.15).
- Fitting {CLICKS:,} clicks, one epoch, one thread, wall seconds: `MusterEstimator.fit`; `df.write.parquet`, then
  `muster train` on the result.
- Starting, wall seconds: `TFCluster.run` of two programs that end at once, with `shutdown`; InputMode.TENSORFLOW.
"""


class Driver:
    """The process of bench/peers/spark_driver.py."""

    def __init__(self, context: Context, folder: Path, jars: Path) -> None:
        root = context.root
        paths = [root / "python", root, root / "bench/peers"]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            "MUSTER_BINARY": str(context.muster),
            "MUSTER_TENSORFLOW": str(context.peer_python("tensorflow")),
            "CUDA_VISIBLE_DEVICES": "",
            "TF_CPP_MIN_LOG_LEVEL": "3",
        }
        settings = {
            "folder": str(folder),
            "jars": ",".join(map(str, sorted(jars.glob("*.jar")))),
            "clicks_model": str(root / "examples/clicks/clicks.yaml"),
        }
        python = context.peer_python("tensorflowonspark")
        environment["PYSPARK_PYTHON"] = str(python)
        self._log = folder / "driver.log"
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(
                [python, context.peer_script("spark_driver.py"), json.dumps(settings)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, env=environment,
                cwd=folder,
            )  # fmt: skip

    def ask(self, name: str, *arguments: object) -> Any:
        assert self._process.stdin is not None and self._process.stdout is not None
        words = json.dumps([name, *(str(a) if isinstance(a, Path) else a for a in arguments)])
        try:
            self._process.stdin.write(words + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # the log says why
        answer = self._process.stdout.readline()
        if not answer:
            tail = self._log.read_text(encoding="utf-8", errors="replace")[-4000:]
            raise CommandFailed(f"{words}\n{tail}")
        return json.loads(answer)

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class Sides:
    """What is measured, by name of the side."""

    def __init__(self, context: Context, folder: Path, driver: Driver) -> None:
        self.context, self.folder, self.driver = context, folder, driver
        self.spec = context.root / "examples/clicks/clicks.yaml"
        self.sums: dict[str, float] = {}  # of the scores of a few clicks, by side
        self.keras_sums: dict[str, float] = {}

    def prepare(self) -> None:
        for name, rows in TABLES.items():
            csv = self.folder / f"{name}.csv"
            run([self.context.muster, "sample", "clicks", "--rows", str(rows), "--out", csv])
            self.driver.ask("make_clicks", csv, name, 2)
            csv.unlink()
        run([self.context.muster, "train", self.spec, "--train", self.parquet("few"), "--model-dir",
             self.folder / "model", "--epochs", "1", "--quiet"], **self.python())  # fmt: skip
        run([self.context.muster, "export", self.folder / "model", "--out", self.folder / "exported"])
        self.driver.ask("export_again", self.folder / "exported", self.folder / "exported-again")
        self.prepare_keras()
        # Python workers load the models, too.
        self.sums = {side: self.ask_score(side, "few")["result"] for side in ("all", "none", "tfmodel", "udf")}
        self.keras_sums = {side: self.ask_keras(side)["result"] for side in ("all", "none", "udf")}
        for sums, rows in ((self.sums, FEW_CLICKS), (self.keras_sums, IDS)):
            if max(sums.values()) - min(sums.values()) > 1e-4 * rows:
                raise CannotRun(f"the sides score differently: {sums}")
        sizes = {self.write(side, "few")[1] for side in ("ours", "hadoop")}
        if len(sizes) > 1:
            raise CannotRun(f"the sides write different records: {sizes} bytes")

    def prepare_keras(self) -> None:
        python, script = self.context.peer_python("tensorflow"), self.context.peer_script("keras_models.py")
        tensorflow = {"CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3", "MUSTER_TENSORFLOW": str(python),
                      "PYTHONPATH": python_path(self.context.root / "python")}  # fmt: skip
        keras = self.folder / "keras"
        keras.mkdir()
        run([python, script, "export", "wide-deep", keras / "export"], **tensorflow)
        run([python, script, "records", "wide-deep", keras], **tensorflow)
        run([self.context.muster, "train", keras / "export", "--train", keras / "train", "--model-dir",
             keras / "model", "--epochs", "1", "--quiet"], **tensorflow)  # fmt: skip
        run([self.context.muster, "export", keras / "model", "--out", keras / "served"], **tensorflow)
        self.driver.ask("make_ids", IDS)

    def parquet(self, name: str) -> str:
        return f"{self.folder / name}/*.parquet"

    def python(self) -> dict[str, str]:
        return {"MUSTER_PARQUET_PYTHON": str(self.context.peer_python("tensorflowonspark"))}

    def feed(self, name: str, rows: int, *arguments: object) -> float:
        return float(rows / self.driver.ask(name, *arguments, rows, rows // 20)["cpu"])

    def write(self, side: str, table: str) -> tuple[float, int]:
        """Rows a CPU second, and how many bytes the records have."""
        out = self.folder / f"records-{side}"
        shutil.rmtree(out, ignore_errors=True)
        cost = self.driver.ask(f"write_{side}", table, out)
        return TABLES[table] / cost["cpu"], sum(file.stat().st_size for file in out.glob("part-*"))

    def score(self, side: str, table: str) -> float:
        return float(TABLES[table] / self.ask_score(side, table)["cpu"])

    def ask_score(self, side: str, table: str) -> Any:
        """side: "all" or "none", which says what columns ours keeps, or a peer's name."""
        if side in ("all", "none"):
            return self.driver.ask("score_ours", table, self.folder / "model", kept_columns(side))
        return self.driver.ask(f"score_{side}", table, self.folder / "exported-again")

    def score_keras(self, side: str) -> float:
        return float(IDS / self.ask_keras(side)["cpu"])

    def ask_keras(self, side: str) -> Any:
        keras = self.folder / "keras"
        if side == "udf":
            return self.driver.ask("score_keras_udf", keras / "served")
        return self.driver.ask("score_keras_ours", keras / "model", kept_columns(side))

    def fit(self) -> float:
        model = self.context.fresh_folder("spark-fit") / "model"
        return float(CLICKS / self.driver.ask("fit_ours", "clicks", model)["wall"])

    def fit_by_parquet(self) -> float:
        out = self.folder / "copied"
        shutil.rmtree(out, ignore_errors=True)
        wall = self.driver.ask("write_parquet", "clicks", out)["wall"]
        model = self.context.fresh_folder("spark-fit") / "model"
        trained = run([self.context.muster, "train", self.spec, "--train", self.parquet("copied"),
                       "--model-dir", model, "--epochs", "1", "--seed", "1", "--threads", "1",
                       "--quiet"], **self.python())  # fmt: skip
        return float(CLICKS / (wall + trained.wall_seconds))

    def start(self, module: str) -> float:
        return float(self.driver.ask("start", module)["wall"])


def kept_columns(side: str) -> list[str]:
    return ["*"] if side == "all" else []


def hadoop_jars(context: Context) -> Path:
    script = context.root / "testbed/maven_jars.sh"
    pom = context.root / "bench/peers/tensorflow_hadoop/pom.xml"
    return Path(run([script, pom]).output.strip())


def measure(context: Context, name: str) -> Report:
    folder = context.fresh_folder("spark")
    driver = Driver(context, folder, hadoop_jars(context))
    try:
        sides = Sides(context, folder, driver)
        sides.prepare()
        feeding = interleave(
            {
                "columns": lambda: sides.feed("feed_columns", COLUMN_ROWS),
                "mapInArrow": lambda: sides.feed("map_in_arrow", COLUMN_ROWS),
                "batches": lambda: sides.feed("feed_batches", BATCH_ROWS),
                "rdd": lambda: sides.feed("feed_rdd", RDD_ROWS, "muster.tfos"),
                "peer": lambda: sides.feed("feed_rdd", PEER_ROWS, "tensorflowonspark"),
            },
            context.rounds,
        )
        writing = interleave(
            {
                "ours": lambda: sides.write("ours", "more")[0],
                "hadoop": lambda: sides.write("hadoop", "few")[0],
            },
            context.rounds,
        )
        scoring = measure_scoring(sides, context.rounds)
        fitting = interleave({"ours": sides.fit, "parquet": sides.fit_by_parquet}, context.rounds)
        starting = interleave(
            {
                "ours": lambda: sides.start("muster.tfos"),
                "peer": lambda: sides.start("tensorflowonspark"),
            },
            context.rounds,
        )
    finally:
        driver.close()
    return Report(
        name=name,
        title="Spark, against TensorFlowOnSpark",
        method=METHOD,
        peer="TensorFlowOnSpark, or what the row says",
        unit="rows a CPU second",
        rows=[*rows_of_feeding(feeding), *rows_of_the_rest(writing, scoring, fitting, starting)],
        same=[
            "Each program that was fed has counted all rows and found the sum of its column. Of "
            f"{FEW_CLICKS:,} clicks both sides write the same number of bytes, and the sum of the scores is "
            f"{sides.sums['all']:.1f}, {sides.sums['tfmodel']:.1f} and {sides.sums['udf']:.1f}; of the {IDS:,} rows "
            f"of ids it is {sides.keras_sums['all']:.1f} and {sides.keras_sums['udf']:.1f}.",
            "Where the time of feeding columns goes, by samples of the whole machine while 20,000,000 rows were fed: 67% "
            "in the executors' JVMs, which compute the rows and write Arrow's batches, 8% in Spark's Python workers, "
            "which pass them on, and 19% in the programs. The JVMs alone take a little more than all of `mapInArrow` "
            "into nothing does, since four processes share the caches of two cores: 0.8 of it would leave 25% for all else.",
        ],
    )


def measure_scoring(sides: Sides, rounds: int) -> dict[str, Series]:
    return interleave(
        {
            "tfmodel": lambda: sides.score("tfmodel", "more"),
            **{
                f"{side}, {table}": lambda side=side, table=table: sides.score(side, table)
                for side in ("all", "none", "udf") for table in ("clicks", "more")
            },
            "read": lambda: CLICKS / sides.driver.ask("read_clicks", "clicks")["cpu"],
            "drop": lambda: CLICKS / sides.driver.ask("drop_clicks", "clicks")["cpu"],
            "keras, all": lambda: sides.score_keras("all"),
            "keras, none": lambda: sides.score_keras("none"),
            "keras, udf": lambda: sides.score_keras("udf"),
        },
        rounds,
    )


def rows_of_scoring(scoring: dict[str, Series]) -> list[Row]:
    rows = []
    for table, goals in (("clicks", (SCORING, SCORING_UDF)), ("more", (None, None))):
        for side, kept in (("none", "no"), ("all", "all")):
            what, ours = f"scoring {TABLES[table]:,} rows, {kept} columns kept", scoring[f"{side}, {table}"]
            rows.append(Row(f"{what}; `TFModel.transform`", ours, scoring["tfmodel"], goals[0]))
            rows.append(Row(f"{what}; a pandas UDF", ours, scoring[f"udf, {table}"], goals[1]))
    keras, udf = scoring["keras, udf"], scoring["udf, clicks"]
    return [
        *rows,
        Row(f"reading {CLICKS:,} rows, nothing else; a pandas UDF", scoring["read"], udf),
        Row(f"`mapInArrow` of {CLICKS:,} rows into nothing; a pandas UDF", scoring["drop"], udf),
        Row("scoring by a Keras model, no columns kept; a pandas UDF", scoring["keras, none"], keras, SCORING_KERAS),
        Row("scoring by a Keras model, all columns kept; a pandas UDF", scoring["keras, all"], keras, SCORING_KERAS),
    ]


def rows_of_feeding(feeding: dict[str, Series]) -> list[Row]:
    peer = feeding["peer"]
    return [
        Row("feeding, columns", feeding["columns"], peer, FEED),
        Row("feeding, columns; `mapInArrow` into nothing", feeding["columns"], feeding["mapInArrow"], FEED_SHARE),
        Row("feeding, rows", feeding["batches"], peer, FEED_BATCH),
        Row("feeding, an RDD's rows", feeding["rdd"], peer),
    ]


def rows_of_the_rest(
    writing: dict[str, Series],
    scoring: dict[str, Series],
    fitting: dict[str, Series],
    starting: dict[str, Series],
) -> list[Row]:
    seconds = in_unit("s", 1)
    ours, peer = starting["ours"], starting["peer"]
    return [
        Row("writing TFRecord files", writing["ours"], writing["hadoop"], WRITING),
        *rows_of_scoring(scoring),
        Row("fitting, rows a second; `write.parquet` and `muster train`", fitting["ours"], fitting["parquet"], FIT),
        Row("starting and ending a cluster, wall time", ours, form=seconds),
        Row("... TensorFlowOnSpark's", peer, form=seconds),
        Row("... ours over that", ours.over(peer), goal=START, form=in_unit("", 2)),
    ]
