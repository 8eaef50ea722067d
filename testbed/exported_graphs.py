"""Exported models of testbed/programs/export_graph.py, and the program that runs the engine on
them."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
from typing import Any

import numpy as np

from testbed import keras_checks

PROGRAM = "export_graph.py"


class ExportedGraph:
    """A folder with an export and batches; `run` returns the engine's results for them."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.export = folder / "export"

    @staticmethod
    def make(kind: str, folder: pathlib.Path) -> ExportedGraph:
        return ExportedGraph(keras_checks.make(PROGRAM, folder, kind))

    @staticmethod
    def program(name: str) -> pathlib.Path:
        return pathlib.Path(os.environ["MUSTER_BINARY"]).with_name(f"muster-tensorflow-{name}")

    def command(self, results: str, *arguments: object) -> list[str]:
        return [str(self.program("probe")), str(self.export), str(self.folder / "batches"),
                str(self.folder / results), *map(str, arguments)]

    def environment(self, **changes: str) -> dict[str, str]:
        return {**os.environ, "MUSTER_TENSORFLOW": os.environ["MUSTER_PYTHON_TENSORFLOW"],
                **changes}

    def run(self, results: str, *arguments: object, **changes: str) -> dict[str, Any]:
        done = subprocess.run(self.command(results, *arguments), env=self.environment(**changes),
                              capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        said: dict[str, Any] = json.loads(done.stdout)
        return said

    def fail(self, *arguments: object, **changes: str) -> str:
        done = subprocess.run(self.command("none", *arguments), env=self.environment(**changes),
                              capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 1, f"exit {done.returncode}: {done.stderr}"
        return done.stderr

    def tensors(self, bundle: str) -> dict[str, Any]:
        import tensorflow as tf

        reader = tf.train.load_checkpoint(str(self.folder / bundle))
        return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}

    def bytes_of(self, results: str) -> bytes:
        return (self.folder / f"{results}.data-00000-of-00001").read_bytes()

    def variables(self) -> list[dict[str, Any]]:
        manifest = json.loads((self.export / "model.json").read_text(encoding="utf-8"))
        variables: list[dict[str, Any]] = manifest["variables"]
        return variables

    def compare(self, results: str, batches: int, absolute: float) -> int:
        """Compares the engine's results for the batches with Python's: the relative difference must
        be below 1e-5, or the absolute one below `absolute` times the largest value. Returns how
        many were compared."""
        given, expected = self.tensors(results), self.tensors("batches")
        compared = 0
        for n in range(batches):
            losses = [expected[f"expected/{n}/step/{name}"] for name in ("loss", "data_loss")]
            np.testing.assert_allclose(given[f"step/{n}/losses"], losses, rtol=1e-5, atol=1e-7)
            for i, variable in enumerate(self.variables()):
                name, key = variable["name"], f"expected/{n}/step/%s_{i:03d}"
                if variable["kind"] == "state":
                    want = expected[key % "new"]
                elif not variable["trainable"]:
                    assert f"step/{n}/gradient/{name}" not in given
                    continue
                elif variable["kind"] == "table":
                    values = expected[key % "grad"].astype("float64")
                    rows, want = summed(expected[key % "rows"], values)
                    np.testing.assert_array_equal(given[f"step/{n}/rows/{name}"], rows)
                    _, squares = summed(expected[key % "rows"], values**2)
                    got = given[f"step/{n}/squares/{name}"].reshape(squares.shape)
                    np.testing.assert_allclose(got, squares, rtol=1e-4, atol=1e-9)
                else:
                    want = expected[key % "grad"]
                got = given[f"step/{n}/gradient/{name}"].reshape(want.shape)
                close = absolute * max(1.0, float(np.abs(want).max(initial=0)))
                np.testing.assert_allclose(got, want, err_msg=name, rtol=1e-5, atol=close)
                compared += 1
        return compared


def summed(rows: Any, values: Any) -> tuple[Any, Any]:
    """Returns the rows in order of first appearance, and the sum of each one's values."""
    order = list(dict.fromkeys(rows.tolist()))
    sums = np.zeros([len(order), values.shape[1]], "float64")
    for row, value in zip(rows, values):
        sums[order.index(row)] += value
    return np.array(order), sums
