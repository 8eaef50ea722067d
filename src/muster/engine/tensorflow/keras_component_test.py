"""Every Keras model that muster.keras.export takes, through the engine: the gradients are Python's, and
the engine does what every engine must."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess

import pytest

from testbed import keras_checks
from testbed.exported_graphs import ExportedGraph


@pytest.fixture(scope="module")
def exports(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return keras_checks.make("export_keras.py", tmp_path_factory.mktemp("exports"))


OLDEST = "MUSTER_PYTHON_TENSORFLOW_OLDEST"
LAYERS = ("cnn", "text_lstm", "lookup_layers")


@pytest.fixture(scope="module")
def exports_of_the_oldest(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return keras_checks.make("export_keras.py", tmp_path_factory.mktemp("oldest"), *LAYERS, by=OLDEST)


@pytest.mark.parametrize("name", keras_checks.keys("accepted.py", "CASES"))
def test_gradients_are_pythons(name: str, exports: pathlib.Path) -> None:
    graph = ExportedGraph(exports / name)
    graph.run("results", 2)
    assert graph.compare("results", 2, absolute=1e-6) > 0


# What a model computes in 16 bits is not as precise.
PRECISION = {"bfloat16": 0.02, "bfloat16_to_the_end": 0.02, "float16_scaled": 0.002}


@pytest.mark.parametrize("name", keras_checks.keys("accepted.py", "CASES"))
def test_it_passes_the_suite_of_engines(name: str, exports: pathlib.Path) -> None:
    graph = ExportedGraph(exports / name)
    program = graph.program("conformance")
    command = [program, graph.export, graph.folder / "batches", PRECISION.get(name, 1e-5)]
    done = subprocess.run(list(map(str, command)), env=graph.environment(), capture_output=True,
                          text=True, timeout=300, check=False)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    passed = re.search(r"PASSED  \] (\d+) tests", done.stdout)
    assert passed and int(passed[1]) >= 20 and "SKIPPED" not in done.stdout, done.stdout


@pytest.mark.parametrize("exported_by", ["exports", "exports_of_the_oldest"])
@pytest.mark.parametrize("name", LAYERS)
def test_gradients_by_the_oldest_tensorflow_are_pythons(
    name: str, exported_by: str, request: pytest.FixtureRequest
) -> None:
    graph = ExportedGraph(request.getfixturevalue(exported_by) / name)
    graph.run("results_of_the_oldest", 2, MUSTER_TENSORFLOW=os.environ[OLDEST])
    assert graph.compare("results_of_the_oldest", 2, absolute=1e-6) > 0
