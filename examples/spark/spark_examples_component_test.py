"""The programs of this folder, as spark-submit runs them."""

from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
from typing import Callable

import pytest
from pyarrow import dataset

from testbed.muster import Muster
from testbed.spark import notebooks, sessions

CLICKS = "examples/clicks/clicks.yaml"


def submit(folder: pathlib.Path, *arguments: object) -> str:
    spark_submit = pathlib.Path(sys.executable).with_name("spark-submit")
    done = subprocess.run(
        [str(spark_submit), "--master", sessions.RETRYING, "--driver-memory", "768m",
         "--driver-java-options", sessions.JAVA_FLAGS, "--conf", "spark.ui.enabled=false", *map(str, arguments)],
        cwd=folder, capture_output=True, text=True, timeout=500,
        env={**os.environ, "PYSPARK_DRIVER_PYTHON": sys.executable},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_page(muster: Muster, repository: pathlib.Path, tmp_path: pathlib.Path) -> None:
    table = tmp_path / "clicks.csv"
    muster.run("sample", "clicks", "--rows", 8000, "--out", table)
    said = submit(repository, "examples/spark/wide_deep.py", CLICKS, table, tmp_path / "scores")
    found = re.search(r"AUC of the test rows: ([\d.]+)", said)
    assert found and float(found[1]) > 0.7
    assert list((tmp_path / "scores").glob("*.parquet"))

    said = submit(repository, "examples/spark/tfrecords.py", CLICKS, table, tmp_path / "data")
    assert "wrote 8000 rows to 4 files" in said
    counts = dict(re.findall(r"\|\s+([01])\|\s+(\d+)\|", said))
    assert sum(map(int, counts.values())) == 8000
    muster.run("train", repository / CLICKS, "--train", f"{tmp_path}/data/part-*",
               "--model-dir", tmp_path / "model", "--max-steps", 20)  # fmt: skip


def test_a_search_that_continues(muster: Muster, repository: pathlib.Path, tmp_path: pathlib.Path) -> None:
    muster.run("sample", "clicks", "--rows", 4000, "--out", tmp_path / "clicks.csv")
    for _ in range(2):
        said = submit(repository, "examples/spark/search.py", CLICKS, tmp_path / "clicks.csv", tmp_path / "study")
        found = re.search(r"best of 6 trials: AUC ([\d.]+)", said)
        assert found and float(found[1]) > 0.55
    assert len(list((tmp_path / "study/trials").iterdir())) == 6


# Tables as others have made them, with Hive's metastore in this folder, and then the example in the same session.
WITH_TABLES = """
import runpy, sys
from pyspark.sql import SparkSession

program, sys.argv = sys.argv[1], sys.argv[1:]
spark = SparkSession.builder.enableHiveSupport().getOrCreate()
columns = "PassengerId INT, Survived INT, Pclass INT, Name STRING, Sex STRING, Age DOUBLE, SibSp INT, Parch INT, "
columns += "Ticket STRING, Fare DOUBLE, Cabin STRING, Embarked STRING"
rows = spark.read.csv("train.csv", header=True, schema=columns)
for name, chosen in (("passengers", "PassengerId % 4 > 0"), ("new_passengers", "PassengerId % 4 = 0")):
    spark.sql(f"CREATE TABLE {name} ({columns}) STORED AS ORC")
    rows.filter(chosen).repartition(2).write.insertInto(name)
runpy.run_path(program, run_name="__main__")
"""


def test_a_hive_table(
    repository: pathlib.Path, real_data: Callable[[str], pathlib.Path], tmp_path: pathlib.Path
) -> None:
    shutil.copy(real_data("titanic/train.csv"), tmp_path)
    (tmp_path / "with_tables.py").write_text(WITH_TABLES)
    said = submit(
        tmp_path, "--conf", f"spark.sql.warehouse.dir={tmp_path}/warehouse", "with_tables.py",
        repository / "examples/spark/hive_table.py", repository / "examples/titanic/titanic.yaml",
        "passengers", "new_passengers", "scores",
    )  # fmt: skip
    assert "scored 222 rows" in said
    assert (tmp_path / "metastore_db").is_dir()
    scores = dataset.dataset(tmp_path / "warehouse/scores", format="orc").to_table().to_pandas()
    assert len(scores) == 222 and set(scores["PassengerId"] % 4) == {0}
    assert (scores["prediction"] == scores["Survived"]).mean() > 0.75


def test_the_notebook_of_clicks(muster: Muster, repository: pathlib.Path, tmp_path: pathlib.Path) -> None:
    muster.run("sample", "clicks", "--rows", 8000, "--out", tmp_path / "clicks.csv")
    shutil.copy(repository / CLICKS, tmp_path)
    said = notebooks.run(repository / "examples/spark/clicks.ipynb", tmp_path)
    found = re.search(r"AUC of the test rows: ([\d.]+)", said)
    assert found and float(found[1]) > 0.7


def test_the_notebook_of_columns(repository: pathlib.Path, tmp_path: pathlib.Path) -> None:
    said = notebooks.run(repository / "examples/spark/columns.ipynb", tmp_path)
    assert "weights: 2.000 -1.000 0.500" in said


@pytest.mark.parametrize("name", ["clicks", "columns"])
def test_a_notebook_holds_no_results(name: str, repository: pathlib.Path) -> None:
    made = json.loads((repository / f"examples/spark/{name}.ipynb").read_text())
    assert made["nbformat"] == 4
    cells = [cell for cell in made["cells"] if cell["cell_type"] == "code"]
    assert cells and all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells)
