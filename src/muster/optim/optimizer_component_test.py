"""TensorFlow still computes the numbers of testdata/, so that the unit tests beside it compare with it."""

import os
import pathlib
import runpy
import sys

import numpy as np
import pytest

from testbed import keras_checks, kept

FOLDER = pathlib.Path(__file__).parent


def test_decay_before_the_update_is_keras_adamw() -> None:
    """The parts that make_test_vectors.py puts together, beside the real one."""
    import tensorflow as tf

    make = runpy.run_path(str(FOLDER / "make_test_vectors.py"))
    spec = {"kind": "Adam", "learning_rate": 0.01, "weight_decay": 0.2}
    start = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
    ours, theirs = tf.Variable(start), tf.Variable(start)
    decaying, adam = make["make_decay"](spec, ours), make["make_optimizer"](spec)
    adamw = tf.keras.optimizers.AdamW(0.01, weight_decay=0.2, jit_compile=False)
    for step in range(30):
        values = tf.constant(np.sin(np.arange(6, dtype=np.float32) + step).reshape(2, 3))
        ids = tf.constant([step % 4, (step + 1) % 4])
        make["decay"](decaying, ours)
        for optimizer, variable in ((adam, ours), (adamw, theirs)):
            optimizer.apply_gradients([(tf.IndexedSlices(values, ids, (4, 3)), variable)])
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["updates.txt", "schedules.txt"])
def test_committed_vectors_are_tensorflows(name: str, tmp_path: pathlib.Path) -> None:
    def make(folder: pathlib.Path) -> bool:
        made = runpy.run_path(str(FOLDER / "make_test_vectors.py"))["FILES"][name]()
        (folder / name).write_text(made)
        return True

    programs = [FOLDER / "make_test_vectors.py"]
    made = kept.folder(tmp_path / "made", sys.executable, name, make=make, programs=programs)
    compare(name, (made / name).read_text(), labels=2 if name == "updates.txt" else 1)


def test_committed_vectors_are_keras_3s(tmp_path: pathlib.Path) -> None:
    python, name = os.environ["MUSTER_PYTHON_TENSORFLOW"], "keras_updates.txt"

    def make(folder: pathlib.Path) -> bool:
        done = keras_checks.run(python, FOLDER / "make_keras_vectors.py", folder / name)
        assert done.returncode == 0, done.stderr[-4000:]
        return True

    programs = [FOLDER / "make_keras_vectors.py"]
    made = kept.folder(tmp_path / "made", python, name, make=make, programs=programs)
    compare(name, (made / name).read_text(), labels=2)


def compare(name: str, made: str, labels: int) -> None:
    now = made.splitlines()
    committed = (FOLDER / "testdata" / name).read_text().splitlines()
    assert len(now) == len(committed) > 10
    for a, b in zip(now, committed):
        if not a[0].isdigit():
            assert a == b
            continue
        assert a.split()[:labels] == b.split()[:labels]
        ours, theirs = (np.array(line.split()[labels:], float) for line in (a, b))
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6, err_msg=a[:40])
