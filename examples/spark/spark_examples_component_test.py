"""The programs of this folder, as spark-submit runs them."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import re

from testbed.muster import Muster
from testbed.spark import sessions

CLICKS = "examples/clicks/clicks.yaml"


def submit(repository: pathlib.Path, program: str, *arguments: object) -> str:
    spark_submit = pathlib.Path(sys.executable).with_name("spark-submit")
    done = subprocess.run(
        [str(spark_submit), "--master", sessions.RETRYING, "--driver-memory", "768m",
         "--conf", "spark.ui.enabled=false", f"examples/spark/{program}", *map(str, arguments)],
        cwd=repository, capture_output=True, text=True, timeout=500,
        env={**os.environ, "PYSPARK_DRIVER_PYTHON": sys.executable},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_page(muster: Muster, repository: pathlib.Path, tmp_path: pathlib.Path) -> None:
    table = tmp_path / "clicks.csv"
    muster.run("sample", "clicks", "--rows", 8000, "--out", table)
    said = submit(repository, "wide_deep.py", CLICKS, table, tmp_path / "scores")
    found = re.search(r"AUC of the test rows: ([\d.]+)", said)
    assert found and float(found[1]) > 0.7
    assert list((tmp_path / "scores").glob("*.parquet"))

    said = submit(repository, "tfrecords.py", CLICKS, table, tmp_path / "data")
    assert "wrote 8000 rows to 4 files" in said
    counts = dict(re.findall(r"\|\s+([01])\|\s+(\d+)\|", said))
    assert sum(map(int, counts.values())) == 8000
    muster.run("train", repository / CLICKS, "--train", f"{tmp_path}/data/part-*",
               "--model-dir", tmp_path / "model", "--max-steps", 20)  # fmt: skip
