"""Training in bfloat16: as good as fp32, repeatable, and refused where it cannot be."""

from __future__ import annotations

import os
import pathlib

import pytest

from testbed.deep_model import deep_spec
from testbed.processor import needs_bf16

ROWS = 100_000


@pytest.fixture(scope="module")
def place(muster, tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("precision")
    for name, seed in (("train", 1), ("test", 2)):
        muster.run("sample", "clicks", "--rows", ROWS, "--seed", seed, "--out", folder / f"{name}.csv")
    (folder / "deep.yaml").write_text(deep_spec())
    (folder / "small.yaml").write_text(deep_spec(hidden=(64,), precision="bf16"))
    return folder


def train(muster, place, name: str, *flags: object) -> pathlib.Path:
    model = place / name
    muster.run("train", place / "deep.yaml", "--train", place / "train.csv", "--model-dir", model,
               "--quiet", *flags)  # fmt: skip
    return model


def test_scores_as_fp32_does(muster, place):
    needs_bf16()
    auc = {}
    for precision in ("fp32", "bf16"):
        model = train(muster, place, f"auc-{precision}", "--precision", precision)
        result = muster.event("evaluated", "evaluate", "--model-dir", model, "--data", place / "test.csv")
        auc[precision] = result["auc"]
    print(auc)
    assert auc["fp32"] > 0.7
    assert auc["bf16"] != auc["fp32"]
    assert abs(auc["bf16"] - auc["fp32"]) < 0.001


@pytest.mark.parametrize("threads", [1, 2])
def test_same_bytes_for_the_same_threads(muster, place, threads):
    needs_bf16()
    data = []
    for run in ("a", "b"):
        model = train(muster, place, f"same-{threads}-{run}", "--precision", "bf16", "--threads",
                      threads, "--steps", 20)  # fmt: skip
        data.append(next(model.glob("model.ckpt-20.data-*")).read_bytes())
    assert data[0] == data[1]


def test_refused_without_the_instructions(muster, place):
    small = ("train", place / "small.yaml", "--train", place / "train.csv", "--steps", 2,
             "--batch-size", 64, "--quiet", "--model-dir")  # fmt: skip
    older = {**os.environ, "MUSTER_INSTRUCTIONS": "avx2"}
    refused = muster.call(*small, place / "refused", env=older)
    assert refused.returncode == 1
    assert "precision bf16 needs a processor with AMX" in refused.stderr
    assert "use fp32 instead" in refused.stderr
    assert not (place / "refused").exists()
    # The flag overrides the model file; what was trained elsewhere is evaluated here.
    done = muster.call(*small, place / "allowed", "--precision", "fp32", env=older)
    assert done.returncode == 0, done.stderr
    score = ("evaluate", "--model-dir", place / "allowed", "--data", place / "train.csv", "--steps", 1)
    assert muster.call(*score, env=older).returncode == 0
    refused = muster.call(*score, "--precision", "bf16", env=older)
    assert "precision bf16 needs a processor with AMX" in refused.stderr


def test_refuses_an_unknown_instruction_set(muster):
    result = muster.call("inspect", env={**os.environ, "MUSTER_INSTRUCTIONS": "sse"})
    assert result.returncode == 2
    assert "MUSTER_INSTRUCTIONS=sse names no instruction set" in result.stderr


def test_a_linear_model_has_no_use_for_it(muster, place):
    spec = place / "linear.yaml"
    spec.write_text("inputs: {label: int, I1: {type: float, default: 0}}\nlabel: label\n"
                    "columns: {n: {numeric: I1}}\nmodel: {type: linear, linear: {columns: [n]}}\n"
                    "train: {precision: bf16}\n")  # fmt: skip
    errors = muster.fail("train", spec, "--train", place / "train.csv", "--model-dir", place / "m")
    assert "a linear model has none" in errors
    spec.write_text(spec.read_text().replace("bf16", "fp16"))
    errors = muster.fail("train", spec, "--train", place / "train.csv", "--model-dir", place / "m")
    assert "linear.yaml:5: train.precision: unknown precision 'fp16' (did you mean" in errors
