"""MusterEstimator and MusterModel in a SparkSession of this process."""

from __future__ import annotations

import json
import pathlib
from typing import Any, Callable, Iterator

import pytest
from pyspark.ml import Pipeline, PipelineModel
from pyspark.ml.evaluation import BinaryClassificationEvaluator, RegressionEvaluator
from pyspark.ml.feature import VectorAssembler
from pyspark.ml.tuning import CrossValidator, ParamGridBuilder
from pyspark.sql import functions as F

from muster.binary import MusterError
from muster.spark import MusterEstimator, MusterModel
from testbed.muster import Muster
from testbed.spark.fixtures import spark

__all__ = ["spark"]
CLICKS = "examples/clicks/clicks.yaml"
LINE = """
inputs: {xs: {type: float, list: true}, word: {type: string}, id: int, y: float}
label: y
key: id
columns: {xs: {numeric: xs, shape: 2}, word: {vocabulary: word, words: [a, b]}}
head: regression
model: {type: linear, linear: {columns: [xs, word], optimizer: {sgd: {learning_rate: 0.3}}}}
train: {batch_size: 20, epochs: 40}
"""
PAIR = """
inputs: {x: float, y: int}
label: y
columns: {x: {numeric: x}}
model: {type: linear, linear: {columns: [x], optimizer: {adagrad: {learning_rate: 0.5}}}}
train: {batch_size: 16, epochs: 3}
"""


@pytest.fixture(scope="module")
def clicks(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("clicks")
    Muster().run("sample", "clicks", "--rows", 6000, "--seed", 3, "--out", folder / "clicks.csv")
    return spark.read.csv(str(folder / "clicks.csv"), header=True, inferSchema=True).repartition(3)


@pytest.fixture(scope="module")
def pairs(spark: Any) -> Any:
    return spark.range(0, 400, 1, 2).selectExpr("id", "(id % 20) / 10D - 1 as x", "int(id % 20 > 9) as y")


def auc(df: Any, label: str = "label") -> float:
    return BinaryClassificationEvaluator(labelCol=label).evaluate(df)


def test_fit_and_transform_clicks(clicks: Any, spark: Any) -> None:
    model = MusterEstimator(model=CLICKS, epochs=2, seed=1, outputCols=["classes"]).fit(clicks)
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", 700)
    numbered = clicks.withColumn("row", F.monotonically_increasing_id()).cache()
    scored = model.transform(numbered)
    added = {name: kind for name, kind in scored.dtypes if name not in numbered.columns}
    assert added == {
        "prediction": "double", "probability": "vector", "rawPrediction": "vector",
        "classes": "array<string>" if added["classes"] != "string" else "string",
    }  # fmt: skip
    rows = scored.select("row", "I1", "prediction", "probability", "rawPrediction").collect()
    assert [(r.row, r.I1) for r in rows] == [(r.row, r.I1) for r in numbered.select("row", "I1").collect()]
    for row in rows[:50]:
        assert row.prediction == float(row.probability[1] > 0.5)
        assert sum(row.probability) == pytest.approx(1)
        assert row.rawPrediction[0] == -row.rawPrediction[1]
    assert auc(scored) > 0.7


def test_the_same_model_and_predictions_as_the_command_line(
    clicks: Any, muster: Muster, tmp_path: pathlib.Path
) -> None:
    from muster.spark import write_tfrecords

    one = clicks.coalesce(1)
    write_tfrecords(one, tmp_path / "data", model=CLICKS)
    muster.run("train", CLICKS, "--train", f"{tmp_path}/data/part-*", "--model-dir", tmp_path / "theirs")
    model = MusterEstimator(model=CLICKS, modelDir=str(tmp_path / "ours")).fit(one)
    ours, theirs = (muster.json("inspect", tmp_path / name, "--verify") for name in ("ours", "theirs"))
    assert ours == theirs
    muster.run("predict", tmp_path / "theirs", "--data", f"{tmp_path}/data/part-*", "--out", tmp_path / "p.jsonl")
    wanted = [json.loads(line)["logits"][0] for line in (tmp_path / "p.jsonl").read_text().splitlines()]
    found = [row.rawPrediction[1] for row in model.transform(one).collect()]
    assert found == pytest.approx(wanted, rel=1e-6)
    same = MusterModel(folder=str(tmp_path / "ours"))
    assert [row.rawPrediction[1] for row in same.transform(one).collect()] == found


def test_passengers(
    spark: Any, real_data: Callable[[str], pathlib.Path]
) -> None:
    table = str(real_data("titanic/train.csv"))
    df = spark.read.csv(table, header=True, inferSchema=True, escape='"')
    model = MusterEstimator(model="examples/titanic/titanic.yaml", seed=2).fit(df)
    assert auc(model.transform(df), "Survived") > 0.85


def test_workers_train_together(pairs: Any) -> None:
    model = MusterEstimator(model=PAIR, workers=2, epochs=2).fit(pairs)
    assert auc(model.transform(pairs), "y") == pytest.approx(1)


def test_executors_train_to_the_same_bytes(pairs: Any, tmp_path: pathlib.Path) -> None:
    models = [
        MusterEstimator(model=PAIR, workers=2, epochs=2, onExecutors=there).fit(pairs)
        for there in (False, True)
    ]
    weights = [{k: v for k, v in one.files.items() if k.startswith("model.ckpt")} for one in models]
    assert weights[0] and weights[0] == weights[1]
    assert auc(models[1].transform(pairs), "y") == pytest.approx(1)
    kept = MusterEstimator(
        model=PAIR, workers=2, epochs=2, onExecutors=True, staging=str(tmp_path / "staging"),
        modelDir=str(tmp_path / "model"),
    ).fit(pairs)  # fmt: skip
    assert auc(kept.transform(pairs), "y") == pytest.approx(1)
    assert [*(tmp_path / "staging").iterdir()] == []


def test_more_workers_than_slots_are_refused_with_both_numbers(pairs: Any) -> None:
    with pytest.raises(ValueError, match="3 .*2|2 .*3"):
        MusterEstimator(model=PAIR, workers=3, onExecutors=True).fit(pairs)


def test_regression_from_a_vector_with_other_names(spark: Any) -> None:
    df = spark.range(200).selectExpr(
        "id % 7 / 7D as a", "id % 5 / 5D as b", "if(id % 2 = 0, 'a', 'b') as word",
        "id % 7 / 7D - 2 * (id % 5 / 5D) + id % 2 as wanted",
    )  # fmt: skip
    pipeline = Pipeline(stages=[
        VectorAssembler(inputCols=["a", "b"], outputCol="xs"),
        MusterEstimator(model=LINE, label="wanted", predictionCol="guess"),
    ])  # fmt: skip
    # The key, id, is no column of the DataFrame: it is needed by files only.
    scored = pipeline.fit(df.withColumn("id", F.lit(1))).transform(df)
    assert scored.columns == ["a", "b", "word", "wanted", "xs", "guess"]
    rmse = RegressionEvaluator(predictionCol="guess", labelCol="wanted").evaluate(scored)
    assert rmse < 0.05


def test_saved_and_loaded(pairs: Any, tmp_path: pathlib.Path) -> None:
    estimator = MusterEstimator(model=PAIR, label="y", epochs=2, settings={"train.batch_size": 8})
    estimator.write().save(str(tmp_path / "estimator"))
    loaded = MusterEstimator.load(str(tmp_path / "estimator"))
    assert loaded.extractParamMap() == {
        loaded.getParam(p.name): v for p, v in estimator.extractParamMap().items()
    }
    fitted = Pipeline(stages=[loaded]).fit(pairs)
    fitted.write().overwrite().save(str(tmp_path / "pipeline"))
    again = PipelineModel.load(str(tmp_path / "pipeline"))
    assert isinstance(again.stages[0], MusterModel)
    assert again.stages[0].uid == fitted.stages[0].uid
    assert again.transform(pairs).collect() == fitted.transform(pairs).collect()
    again.stages[0].export(str(tmp_path / "folder"))
    assert Muster().json("inspect", tmp_path / "folder")


def test_copies_have_their_own_parameters(pairs: Any) -> None:
    estimator = MusterEstimator(model=PAIR)
    other = estimator.copy({estimator.predictionCol: "guess"})
    assert (estimator.getPredictionCol(), other.getPredictionCol()) == ("prediction", "guess")
    model = estimator.fit(pairs, {estimator.probabilityCol: "", estimator.rawPredictionCol: ""})
    assert model.transform(pairs).columns == ["id", "x", "y", "prediction"]


def test_cross_validation(pairs: Any) -> None:
    estimator = MusterEstimator(model=PAIR)
    grid = ParamGridBuilder().addGrid(estimator.epochs, [1, 4]).build()
    search = CrossValidator(
        estimator=estimator, estimatorParamMaps=grid, numFolds=2, seed=1, parallelism=2,
        evaluator=BinaryClassificationEvaluator(labelCol="y"),
    )  # fmt: skip
    found = search.fit(pairs)
    assert len(found.avgMetrics) == 2 and max(found.avgMetrics) > 0.9
    assert auc(found.transform(pairs), "y") > 0.9


def test_transform_keeps_rows_of_all_types_and_a_stream(
    spark: Any, pairs: Any, tmp_path: pathlib.Path
) -> None:
    model = MusterEstimator(model=PAIR).fit(pairs)
    rich = pairs.withColumn("map", F.create_map(F.lit("a"), F.col("id"))).withColumn(
        "deep", F.struct(F.col("id"), F.array(F.struct(F.col("x")))))  # fmt: skip
    scored = model.transform(rich.repartition(5))
    assert {r.id: r.map for r in scored.collect()} == {i: {"a": i} for i in range(400)}
    pairs.write.parquet(str(tmp_path / "in"))
    stream = spark.readStream.schema(pairs.schema).parquet(str(tmp_path / "in"))
    query = model.transform(stream).writeStream.format("memory").queryName("scored").trigger(availableNow=True)
    query.option("checkpointLocation", str(tmp_path / "state")).start().awaitTermination(120)
    assert spark.table("scored").count() == 400
    assert spark.table("scored").exceptAll(model.transform(pairs)).count() == 0


def test_columns_that_are_kept(pairs: Any) -> None:
    model = MusterEstimator(model=PAIR, keptCols=["id"]).fit(pairs)
    whole = model.copy({model.keptCols: ["*"]}).transform(pairs).collect()
    some = model.transform(pairs)
    assert some.columns == ["id", "prediction", "probability", "rawPrediction"]
    assert [tuple(r) for r in some.collect()] == [(r.id, r.prediction, r[4], r[5]) for r in whole]
    scores = model.setKeptCols([]).transform(pairs.withColumn("prediction", F.lit("free")))
    assert [tuple(r) for r in scores.collect()] == [tuple(r)[3:] for r in whole]
    with pytest.raises(ValueError, match="keptCols: the DataFrame has no column 'key'; it has: id, x, y"):
        model.setKeptCols(["key"]).transform(pairs)


@pytest.fixture
def started(spark: Any, tmp_path: pathlib.Path) -> Iterator[Callable[[], int]]:
    """How many programs that score the Python workers have started since the last call."""
    log, program = tmp_path / "started", tmp_path / "muster"
    program.write_text(f'#!/bin/sh\necho "$1" >>{log}\nexec {Muster().binary} "$@"\n')
    program.chmod(0o755)
    log.touch()
    environment = spark.sparkContext.environment
    environment["MUSTER_BINARY"] = str(program)

    def count() -> int:
        found = log.read_text().split()
        log.write_text("")
        return found.count("predict")

    yield count
    del environment["MUSTER_BINARY"]


def test_a_python_worker_keeps_its_scorer(
    started: Callable[[], int], pairs: Any, tmp_path: pathlib.Path
) -> None:
    estimator = MusterEstimator(model=PAIR, modelDir=str(tmp_path / "model"))
    model, many = estimator.fit(pairs), pairs.repartition(9)
    first = model.transform(many).orderBy("id").collect()
    assert 1 <= started() <= 2  # there are two workers
    assert model.transform(many).orderBy("id").collect() == first
    assert started() <= 1
    assert len(model.transform(pairs.coalesce(1)).limit(3).collect()) == 3
    assert model.transform(many).orderBy("id").collect() == first
    started()
    bad = many.withColumn("x", F.expr("if(id = 77, null, x)"))
    with pytest.raises(Exception, match="column 'x' has no value, and no default in the model file"):
        model.transform(bad).collect()
    assert model.transform(many).orderBy("id").collect() == first
    started()
    estimator.setParams(epochs=9).fit(pairs)  # into the same folder
    again = model.transform(many).orderBy("id").collect()
    assert [row.id for row in again] == list(range(400)) and again != first
    assert 1 <= started() <= 2
    kept = MusterEstimator(model=PAIR).fit(pairs)
    assert kept.transform(many).count() == kept.transform(many.drop("y")).count() == 400
    assert 1 <= started() <= 2


def test_rows_that_come_slowly_are_answered(spark: Any, pairs: Any) -> None:
    def slowly(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            for row in range(batch.num_rows):
                yield batch.slice(row, 1)

    model = MusterEstimator(model=PAIR).fit(pairs)
    few = pairs.limit(50).coalesce(1).mapInArrow(slowly, pairs.schema)
    assert model.transform(few).count() == 50
    assert model.transform(pairs.limit(0)).collect() == []


@pytest.mark.parametrize("frame, arguments, said", [
    (["id"], {"model": PAIR}, "the DataFrame has no column 'y', which the model needs; it has: id"),
    (["1 as y"], {"model": PAIR}, "the DataFrame has no column 'x'"),
    (["id as x", "1 as y"], {"model": PAIR, "label": "clicked"}, "has no column 'clicked'"),
    (["map('a', id) as x", "1 as y"], {"model": PAIR}, "'x' is map<string,bigint>, which no feature"),
    (["if(id = 3, null, 1) as x", "1 as y"], {"model": PAIR}, "'x' has no value, and no default"),
    (["if(id = 3, double('nan'), 1) as x", "1 as y"], {"model": PAIR}, "row of partition 0 of the DataFrame: column 'x'"),
    (["id as x", "1 as clicks"], {"model": PAIR, "label": "click"}, "which label= names (did you mean 'clicks'?)"),
    (["id as x", "id as x", "1 as y"], {"model": PAIR}, "2 columns that Spark takes for 'x': x, x"),
    (["id as x", "1 as z", "1 as z"], {"model": PAIR, "label": "z"}, "2 columns that Spark takes for 'z': z, z"),
    (["id as x", "1 as y"], {}, "MusterEstimator has no model"),
    (["id as x", "1 as y"], {"model": "nothing.yaml"}, "nothing.yaml"),
    (["id as x", "1 as y"], {"model": PAIR.replace("linear: {c", "lineal: {c")}, "lineal"),
    (["id as x", "7 as y"], {"model": PAIR}, "7"),
])  # fmt: skip
def test_what_cannot_be_trained_is_one_line(
    frame: list[str], arguments: dict[str, Any], said: str, spark: Any
) -> None:
    df = spark.range(0, 10, 1, 2).selectExpr(*frame)
    with pytest.raises((ValueError, MusterError)) as caught:
        MusterEstimator(**arguments).fit(df)
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_what_is_no_dataframe() -> None:
    with pytest.raises(TypeError, match="a DataFrame of Spark is wanted, not a builtins.list"):
        MusterEstimator(model=PAIR).fit([1, 2])


def test_no_rows(spark: Any, pairs: Any) -> None:
    with pytest.raises(ValueError, match="no rows to train on"):
        MusterEstimator(model=PAIR).fit(pairs.limit(0))


def test_what_cannot_be_scored(pairs: Any) -> None:
    model = MusterEstimator(model=PAIR).fit(pairs)
    with pytest.raises(ValueError, match="no column 'x'"):
        model.transform(pairs.drop("x"))
    with pytest.raises(ValueError, match=r"no column 'x', which the model needs \(did you mean 'X'\?\); it has: "):
        model.transform(pairs.withColumnRenamed("x", "X"))
    with pytest.raises(ValueError, match="2 columns that Spark takes for 'id': id, id"):
        model.transform(pairs.select("*", "id"))
    with pytest.raises(ValueError, match="a column 'prediction' already"):
        model.transform(pairs.withColumn("prediction", F.lit(1)))
    with pytest.raises(ValueError, match="no output 'score'; it has: .*logits"):
        model.copy({model.outputCols: ["score"]}).transform(pairs)
    nothing = {model.keptCols: [], model.predictionCol: "", model.probabilityCol: "", model.rawPredictionCol: ""}
    with pytest.raises(ValueError, match="transform would give no column"):
        model.copy(nothing).transform(pairs)
    with pytest.raises(Exception, match="column 'x' has no value, and no default in the model file"):
        model.transform(pairs.withColumn("x", F.expr("if(id = 77, null, x)"))).collect()
