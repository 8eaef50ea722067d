"""TensorFlowOnSpark's own tests, unedited, on muster.tfos and a standalone cluster of Spark.

They are those of a checkout of its release v2.2.5 that MUSTER_TENSORFLOWONSPARK names; nothing of it lies in
this repository. docs/tensorflowonspark.md has the list.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from typing import Iterator

import pytest

from testbed import daemons
from testbed.spark import sessions
from testbed.spark.cluster import SparkCluster

DEADLINE = 500.0
TESTS = {  # how many tests each file has
    "test": 1,
    "test_TFCluster": 6,
    "test_TFNode": 2,
    "test_TFParallel": 3,
    "test_TFSparkNode": 9,
    "test_dfutil": 1,
    "test_pipeline": 3,
    "test_reservation": 9,
}
# Its program says Adam(lr=0.2), and Keras has ignored lr since TensorFlow 2.11.
OF_OLDER_TENSORFLOW = ["test_spark_saved_model"]
# The first line is all that the tests need.
RUN = """
import muster.tfos.as_tensorflowonspark
import json, sys, unittest

tests = unittest.defaultTestLoader.loadTestsFromName(sys.argv[1])
done = unittest.TextTestRunner(verbosity=2).run(tests)
failed = [test.id().rpartition(".")[2] for test, _ in done.failures + done.errors]
print(json.dumps({"run": done.testsRun, "skipped": len(done.skipped), "failed": failed}))
"""


@pytest.fixture(scope="module")
def checkout() -> pathlib.Path:
    found = os.environ.get("MUSTER_TENSORFLOWONSPARK")
    if not found:
        pytest.skip("needs a checkout of TensorFlowOnSpark v2.2.5 (MUSTER_TENSORFLOWONSPARK)")
    return pathlib.Path(found)


@pytest.fixture(scope="module")
def cluster(checkout: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    yield from daemons.run(SparkCluster(tmp_path_factory.mktemp("spark")))


@pytest.mark.parametrize("name", TESTS)
def test_own_tests(name: str, checkout: pathlib.Path, cluster: SparkCluster, tmp_path: pathlib.Path) -> None:
    paths = sessions.path_with_tensorflow()
    (tmp_path / "spark-defaults.conf").write_text(
        f"spark.executorEnv.PYTHONPATH {paths}\nspark.driver.host 127.0.0.1\nspark.ui.enabled false\n"
        "spark.driver.memory 768m\nspark.executor.memory 512m\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", RUN, name], cwd=tmp_path, timeout=DEADLINE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join((str(checkout / "tests"), paths)),
            "SPARK_CONF_DIR": str(tmp_path),
            "SPARK_CLASSPATH": str(checkout / "lib/tensorflow-hadoop-1.0-SNAPSHOT.jar"),
            "SPARK_WORKER_INSTANCES": str(cluster.workers),
            "MASTER": cluster.master,
        },
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    result = json.loads(done.stdout.splitlines()[-1])
    expected = [test for test in OF_OLDER_TENSORFLOW if name == "test_pipeline"]
    assert result == {"run": TESTS[name], "skipped": 0, "failed": expected}, done.stderr[-8000:]
