"""Every Keras model that muster.keras.export takes, through the engine: the gradients are Python's."""

from __future__ import annotations

import os
import pathlib
import subprocess

import pytest

from testbed import keras_checks
from testbed.exported_graphs import ExportedGraph

PROGRAM = keras_checks.ROOT / "testbed/programs/export_keras.py"


@pytest.fixture(scope="module")
def exports(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("exports")
    python = os.environ["MUSTER_PYTHON_TENSORFLOW"]
    done = subprocess.run([python, str(PROGRAM), str(folder)], env=keras_checks.environment(),
                          capture_output=True, text=True, timeout=keras_checks.DEADLINE)  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    return folder


@pytest.mark.parametrize("name", keras_checks.keys("accepted.py", "CASES"))
def test_gradients_are_pythons(name: str, exports: pathlib.Path) -> None:
    graph = ExportedGraph(exports / name)
    graph.run("results", 2)
    assert graph.compare("results", 2, absolute=1e-6) > 0
