"""Tests which program an estimator runs, and that signals reach it."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from muster import MusterError, binary, estimator, feature_column


def make(model_dir) -> estimator.LinearRegressor:
    return estimator.LinearRegressor([feature_column.numeric_column("x")], model_dir)


def batches():
    yield {"x": [0.5, -0.5]}, [1.0, 0.0]


def test_a_missing_program_says_what_to_do(tmp_path, monkeypatch) -> None:
    model = make(tmp_path / "model")
    monkeypatch.delenv("MUSTER_BINARY")
    with pytest.raises(MusterError, match="pip install .*MUSTER_BINARY"):
        model.train(batches)
    monkeypatch.setenv("MUSTER_BINARY", str(tmp_path / "nothing"))
    with pytest.raises(MusterError, match="MUSTER_BINARY names no program"):
        model.train(batches)


def test_a_package_without_a_program_uses_the_one_in_path(tmp_path, monkeypatch) -> None:
    (tmp_path / "muster").symlink_to(os.environ["MUSTER_BINARY"])
    monkeypatch.delenv("MUSTER_BINARY")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert make(tmp_path / "model").train(batches).latest_checkpoint() is not None


ENDLESS = """
import itertools, sys
from muster import estimator, feature_column
batch = {"x": [0.5, -0.5]}, [1.0, 0.0]
model = estimator.LinearRegressor([feature_column.numeric_column("x")], sys.argv[1])
model.train(lambda: itertools.repeat(batch))
"""


def test_messages_name_arguments_instead_of_flags(tmp_path, monkeypatch, caplog) -> None:
    fake = tmp_path / "muster"
    says = "echo 'warning: give --seed' >&2; echo 'muster: --seed or --seed-x' >&2; exit 1"
    fake.write_text(f"#!/bin/sh\n{says}\n")
    fake.chmod(0o755)
    monkeypatch.setenv("MUSTER_BINARY", str(fake))
    for run in (binary.run, binary.call, lambda *given, names: list(binary.stream(*given, names=names))):
        caplog.clear()
        with pytest.raises(MusterError, match="^tf_random_seed or --seed-x$"):
            run(["train"], names={"--seed": "tf_random_seed"})
        assert caplog.messages == ["give tf_random_seed"]


def test_a_signal_to_end_is_the_programs_which_saves(tmp_path) -> None:
    model = tmp_path / "model"
    package = pathlib.Path(estimator.__file__).parents[2]
    process = subprocess.Popen(
        [sys.executable, "-c", ENDLESS, model], stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(package)},
    )  # fmt: skip
    deadline = time.monotonic() + 120
    while not (model / "model.ckpt-0.index").exists() and time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    said = process.communicate(timeout=120)[1]
    assert process.returncode == 143, said
