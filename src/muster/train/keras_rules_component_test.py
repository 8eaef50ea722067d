"""Exported Keras models trained by their own optimizers, alone and as two replicas, against Keras."""

from __future__ import annotations

import os
import pathlib
import subprocess

import numpy as np
import pytest

from testbed import keras_checks

STEPS = 100


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return keras_checks.make("train_keras.py", tmp_path_factory.mktemp("trained"))


def train(folder: pathlib.Path, batches: str, replicas: int, weights: str) -> None:
    program = pathlib.Path(os.environ["MUSTER_BINARY"]).with_name("muster-tensorflow-train")
    command = [program, folder / "export", folder / batches, folder / weights, STEPS, replicas]
    environment = {**os.environ, "MUSTER_TENSORFLOW": os.environ["MUSTER_PYTHON_TENSORFLOW"]}
    done = subprocess.run(list(map(str, command)), env=environment, capture_output=True, text=True,
                          timeout=300, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("name", keras_checks.keys("../programs/train_keras.py", "OPTIMIZERS"))
def test_weights_are_keras(name: str, replicas: int, trained: pathlib.Path) -> None:
    import tensorflow as tf

    folder = trained / name
    ours = f"ours_{replicas}"
    again = f"again_{replicas}"
    for weights in (ours, again):
        train(folder, "whole" if replicas == 1 else "halves", replicas, weights)
    data = "data-00000-of-00001"
    assert (folder / f"{ours}.{data}").read_bytes() == (folder / f"{again}.{data}").read_bytes()
    given, expected, initial = (
        tf.train.load_checkpoint(str(folder / bundle))
        for bundle in (ours, "expected", "export/weights")
    )
    compared = moved = 0
    for variable in given.get_variable_to_shape_map():
        want = expected.get_tensor(variable)
        got = given.get_tensor(variable).reshape(want.shape)
        largest = float(np.abs(want).max())
        error = float(np.abs(got - want).max())
        print(f"{variable}: {error / max(largest, 1e-30):.1e} of {largest:.2g}")
        # Both compute the gradients too, each in its own order, for 100 steps. A small weight is a sum
        # of larger terms that cancel and keeps their rounding (1e-7 is a float32 step near 1).
        assert error <= 2e-6 * max(largest, 0.05), variable
        moved += not np.array_equal(want, initial.get_tensor(variable))
        compared += 1
    # A bias whose gradient is cut goes to and fro.
    assert moved >= compared - 1 > 10
