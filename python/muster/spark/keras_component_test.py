"""Exported Keras models in MusterEstimator and MusterModel. The executors find TensorFlow by MUSTER_TENSORFLOW."""

from __future__ import annotations

import json
import os
import pathlib
from typing import Any, Iterator

import pytest
from pyspark.ml.evaluation import BinaryClassificationEvaluator

from muster.spark import MusterEstimator, MusterModel
from testbed import keras_checks
from testbed.spark import sessions

PROGRAM = "keras_for_spark.py"


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    tensorflow = os.environ.get("MUSTER_PYTHON_TENSORFLOW")
    if not tensorflow:
        pytest.skip("needs MUSTER_PYTHON_TENSORFLOW, a Python with TensorFlow 2.16 or later")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MUSTER_TENSORFLOW", tensorflow)  # for fit()
        yield from sessions.running(spark__executorEnv__MUSTER_TENSORFLOW=tensorflow)


@pytest.fixture(scope="module")
def exported(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("keras") / "export"
    keras_checks.run_program(PROGRAM, "export", folder)
    return str(folder)


@pytest.fixture(scope="module")
def rows(spark: Any) -> Any:
    return spark.range(0, 600, 1, 3).selectExpr(
        "id", "array(float(id % 7) / 7, float(id % 5) / 5) as xs", "substr('abcd', id % 4 + 1, 1) as word",
        "id % 10 as number", "int(id % 4 = 1) as y",
    )  # fmt: skip


@pytest.fixture(scope="module")
def model(exported: str, rows: Any) -> MusterModel:
    return MusterEstimator(model=exported, epochs=20, batchSize=30, seed=1, outputCols=["hidden"]).fit(rows)


def test_rows_are_scored_as_keras_does(model: MusterModel, rows: Any, tmp_path: pathlib.Path) -> None:
    scored = model.transform(rows)
    assert dict(scored.dtypes[5:]) == {"prediction": "double", "hidden": "array<float>"}
    found = scored.collect()
    assert [row.id for row in found] == list(range(600))
    model.export(str(tmp_path / "model"))
    (tmp_path / "rows.json").write_text(json.dumps([row.asDict() for row in rows.collect()]))
    keras_checks.run_program(PROGRAM, "predict", tmp_path / "model", tmp_path / "rows.json", tmp_path / "out.json")
    theirs = json.loads((tmp_path / "out.json").read_text())
    assert [row.prediction for row in found] == pytest.approx([one for one, in theirs["score"]], abs=1e-5)
    for row, hidden in zip(found, theirs["hidden"]):
        assert row.hidden == pytest.approx(hidden, abs=1e-5)
    judge = BinaryClassificationEvaluator(labelCol="y", rawPredictionCol="prediction")
    assert judge.evaluate(scored) > 0.95


def test_executors_train_an_exported_model(exported: str, rows: Any) -> None:
    model = MusterEstimator(model=exported, epochs=20, batchSize=15, seed=1, workers=2, onExecutors=True).fit(rows)
    judge = BinaryClassificationEvaluator(labelCol="y", rawPredictionCol="prediction")
    assert judge.evaluate(model.transform(rows)) > 0.95


def test_a_model_that_was_saved(model: MusterModel, rows: Any, tmp_path: pathlib.Path) -> None:
    model.write().save(str(tmp_path / "saved"))
    again = MusterModel.load(str(tmp_path / "saved"))
    assert again.transform(rows).collect() == model.transform(rows).collect()


def test_an_executor_without_tensorflow(
    model: MusterModel, rows: Any, spark: Any, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(spark.sparkContext.environment, "MUSTER_TENSORFLOW", str(tmp_path))
    with pytest.raises(Exception, match=f"MUSTER_TENSORFLOW {tmp_path}: no libtensorflow_cc.so.2 there"):
        model.transform(rows).collect()
