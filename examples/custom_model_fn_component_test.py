"""The ways for a program with a model_fn, which muster.estimator's refusal names."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys

import pytest

from muster import estimator
from testbed import keras_checks
from testbed.muster import Muster

HERE = pathlib.Path(__file__).parent
REPOSITORY = HERE.parent


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> Muster:
    monkeypatch.setenv("MUSTER_TENSORFLOW", os.environ["MUSTER_PYTHON_TENSORFLOW"])
    monkeypatch.setenv("MUSTER_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "3")
    return Muster()


def test_the_refusal_names_three_ways_that_are_there() -> None:
    with pytest.raises(ValueError) as caught:
        estimator.Estimator(lambda features, labels, mode: None, "model")
    says = str(caught.value)
    assert f"muster run --chief --workers 2 --ps 1 --evaluator -- python {sys.argv[0]}" in says
    assert "muster.keras.export(" in says and "muster train exported" in says
    with pytest.raises(AttributeError, match=re.escape(says[says.index("a model_fn") :])):
        estimator.EstimatorSpec  # noqa: B018
    named = re.findall(r"(?:docs|examples)/[\w/.]+\w", says)
    assert len(named) >= 4
    for path in named:
        assert (REPOSITORY / path).exists(), path


def test_unchanged_with_its_tensorflow(job: Muster, tmp_path: pathlib.Path) -> None:
    model = tmp_path / "model"
    program = (sys.executable, HERE / "custom_model_fn/program.py", model)
    job.run("run", "--chief", "--workers", 1, "--ps", 1, "--", *program)
    state = (model / "checkpoint").read_text()
    found = re.search(r'^model_checkpoint_path: "model.ckpt-(\d+)"', state)
    assert found is not None and int(found.group(1)) >= 300


def test_its_model_as_keras(job: Muster, tmp_path: pathlib.Path) -> None:
    done = subprocess.run(
        [os.environ["MUSTER_PYTHON_TENSORFLOW"], HERE / "custom_model_fn/as_keras.py", "exported",
         "rows.tfrecord"],
        cwd=tmp_path, env=keras_checks.environment(), capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    model, rows = tmp_path / "model", tmp_path / "rows.tfrecord"
    job.run("train", tmp_path / "exported", "--train", rows, "--model-dir", model, "--batch-size",
            20, "--max-steps", 300, "--workers", 2)  # fmt: skip
    said = job.event("evaluated", "evaluate", "--model-dir", model, "--data", rows)
    assert said["global_step"] == 300 and said["loss"] < 0.05
