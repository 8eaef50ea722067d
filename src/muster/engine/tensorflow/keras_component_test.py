"""Every Keras model that muster.keras.export takes, through the engine: the gradients are Python's."""

from __future__ import annotations

import pathlib

import pytest

from testbed import keras_checks
from testbed.exported_graphs import ExportedGraph


@pytest.fixture(scope="module")
def exports(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return keras_checks.make("export_keras.py", tmp_path_factory.mktemp("exports"))


@pytest.mark.parametrize("name", keras_checks.keys("accepted.py", "CASES"))
def test_gradients_are_pythons(name: str, exports: pathlib.Path) -> None:
    graph = ExportedGraph(exports / name)
    graph.run("results", 2)
    assert graph.compare("results", 2, absolute=1e-6) > 0
