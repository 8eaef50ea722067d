"""The text classifier, as spark-submit runs it, with a real Kafka."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys

from testbed.kafka.cluster import Kafka
from testbed.kafka.fixtures import kafka
from testbed.spark import sessions

__all__ = ["kafka"]


def test_the_text_classifier(kafka: Kafka, repository: pathlib.Path, tmp_path: pathlib.Path) -> None:
    spark_submit = pathlib.Path(sys.executable).with_name("spark-submit")
    done = subprocess.run(
        [str(spark_submit), "--master", sessions.RETRYING, "--driver-memory", "768m",
         "--driver-java-options", sessions.JAVA_FLAGS, "--conf", "spark.ui.enabled=false",
         "examples/spark/text_estimator.py", kafka.brokers, str(tmp_path / "model"), str(tmp_path / "scores")],
        cwd=repository, capture_output=True, text=True, timeout=500,
        env={**os.environ, "PYSPARK_DRIVER_PYTHON": sys.executable},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    tried = [float(found) for found in re.findall(r"accuracy ([\d.]+) with", done.stdout)]
    assert len(tried) == 3 and max(tried) > min(tried)
    tested = re.search(r"accuracy of the test rows: ([\d.]+)", done.stdout)
    assert tested and float(tested[1]) > 0.4  # one in six by chance
    assert (tmp_path / "model" / "weights.npz").exists()
    assert list((tmp_path / "scores").glob("*.parquet"))
    topics = kafka.admin().list_topics(timeout=30).topics
    assert [name for name in topics if name.startswith("lines_")] == []
