"""Progress is shown when tf.estimator would show it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import sys
import muster.tensorflow as tf
if sys.argv[2] != "unset":
    tf.compat.v1.logging.set_verbosity(getattr(tf.compat.v1.logging, sys.argv[2]))
columns = [tf.feature_column.numeric_column("x")]
estimator = tf.estimator.LinearClassifier(columns, model_dir=sys.argv[1])
estimator.train(lambda: ({"x": [0.0, 1.0]}, [0, 1]), steps=3)
"""


@pytest.mark.parametrize("verbosity, shown", [("INFO", True), ("unset", False), ("ERROR", False)])
def test_progress_follows_tensorflows_verbosity(verbosity, shown, repository, tmp_path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, tmp_path / "model", verbosity], check=False,
        env={**os.environ, "PYTHONPATH": str(repository / "python")}, capture_output=True,
        text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    lines = [line for line in done.stderr.splitlines() if line.startswith("INFO:muster:")]
    assert any("step 3" in line for line in lines) == shown, done.stderr
