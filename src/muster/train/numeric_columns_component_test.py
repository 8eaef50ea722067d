"""Numbers that columns take from the training data: those of numpy, found once, the same for all tasks."""

from __future__ import annotations

import json
import pathlib
import re

import numpy as np
import pytest
import yaml

SPEC = """
inputs:
  income: {type: float, missing: ["?"]}
  visits: {type: int, missing: ["-1"]}
  y: int
label: y
columns:
  income: {numeric: income, normalize: auto, log1p: true, clip: [0, 1e5], impute: median, missing_flag: true}
  visits: {numeric: visits, normalize: auto, impute: mean}
model: {type: dnn, dnn: {columns: [income, visits], hidden_units: [8], optimizer: {adagrad: {learning_rate: 0.1}}}}
train: {batch_size: 32, epochs: 2}
"""
ROWS = 3000


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("numeric")
    draw = np.random.default_rng(7)
    income = np.exp(draw.normal(8, 3, ROWS)).round(2)
    visits = draw.poisson(20, ROWS)
    y = (np.log1p(income) / 8 + visits / 20 + draw.normal(0, 1, ROWS) > 2).astype(int)
    no_income, no_visits = draw.random(ROWS) < 0.1, draw.random(ROWS) < 0.2
    cells = zip(
        np.where(no_income, "?", income.astype(str)), np.where(no_visits, -1, visits), y, strict=True
    )
    lines = [f"{a},{b},{c}" for a, b, c in cells]
    (folder / "rows.csv").write_text("\n".join(["income,visits,y", *lines]) + "\n")
    (folder / "shifted.csv").write_text("\n".join(["income,visits,y", *lines[: ROWS // 2]]) + "\n")
    (folder / "auto.yaml").write_text(SPEC)
    np.savez(folder / "values.npz", income=income[~no_income], visits=visits[~no_visits])
    return folder


def columns_of(model: pathlib.Path) -> dict:
    return yaml.safe_load((model / "model.yaml").read_text())["columns"]


def train(muster, place, name, *flags, spec="auto.yaml", data="rows.csv"):
    result = muster.call("train", place / spec, place / name, "--train", place / data, *flags)
    assert result.returncode == 0, result.stderr
    return result.stderr


def test_the_numbers_are_numpys(muster, place) -> None:
    train(muster, place, "model")
    values = np.load(place / "values.npz")
    clipped = np.clip(values["income"].astype(np.float32), 0, 1e5)
    logarithms = np.log1p(clipped).astype(np.float64)
    found = columns_of(place / "model")
    assert found["income"]["normalize"] == "auto"
    np.testing.assert_allclose(found["income"]["mean"], logarithms.mean(), rtol=1e-6)
    np.testing.assert_allclose(found["income"]["stddev"], logarithms.std(), rtol=1e-6)
    np.testing.assert_allclose(found["income"]["imputed"], np.median(clipped), rtol=1e-7)
    visits = values["visits"].astype(np.float64)
    np.testing.assert_allclose(found["visits"]["mean"], visits.mean(), rtol=1e-12)
    np.testing.assert_allclose(found["visits"]["stddev"], visits.std(), rtol=1e-12)
    np.testing.assert_allclose(found["visits"]["imputed"], visits.mean(), rtol=1e-12)


def test_they_are_what_can_be_written_by_hand(muster, place) -> None:
    """A model file with the numbers in it trains to the same bytes."""
    train(muster, place, "auto")
    found = columns_of(place / "auto")
    spec = yaml.safe_load(SPEC)
    for name, column in spec["columns"].items():
        column.pop("normalize")
        column.update({key: found[name][key] for key in ("mean", "stddev")})
    spec["columns"]["income"]["impute"] = found["income"]["imputed"]
    spec["columns"]["visits"]["impute"] = round(found["visits"]["imputed"])
    (place / "by_hand.yaml").write_text(yaml.safe_dump(spec, sort_keys=False))
    assert "First pass" not in train(muster, place, "by_hand", spec="by_hand.yaml")

    def predict(model: str) -> bytes:
        out = place / f"{model}.jsonl"
        muster.run("predict", place / model, "--data", place / "rows.csv", "--out", out)
        return out.read_bytes()

    assert predict("auto") == predict("by_hand")


def test_one_pass_and_no_second_one(muster, place) -> None:
    first = train(muster, place, "once", "--max-steps", 3)
    assert len(re.findall("First pass over 3,000 rows", first)) == 1
    before = columns_of(place / "once")
    again = train(muster, place, "once", "--max-steps", 6, "--fresh-data", data="shifted.csv")
    assert "First pass" not in again
    assert columns_of(place / "once") == before


@pytest.mark.parametrize("flags", [["--workers", 2], ["--workers", 2, "--ps", 1], ["--evaluator"]])
def test_all_tasks_have_the_same_numbers(flags, muster, place) -> None:
    name = "job" + "".join(map(str, flags)).replace("--", "-")
    eval_flags = ["--eval", place / "rows.csv", "--eval-throttle-secs", 0]
    train(muster, place, "alone")
    train(muster, place, name, *flags, *(eval_flags if flags == ["--evaluator"] else []))
    assert columns_of(place / name) == columns_of(place / "alone")
    evaluated = muster.event("evaluated", "evaluate", place / name, "--data", place / "rows.csv")
    assert evaluated["auc"] > 0.6


def test_a_stream_is_refused_with_what_to_do(muster, place) -> None:
    failed = muster.call(
        "train", place / "auto.yaml", place / "stream", "--train", "-", stdin=open("/dev/null")
    )
    assert failed.returncode == 1
    assert "column 'income'" in failed.stderr and "give files" in failed.stderr
    assert not (place / "stream").exists()


def test_progress_for_a_program(muster, place) -> None:
    result = muster.call("train", place / "auto.yaml", place / "json", "--train", place / "rows.csv",
                         "--json")  # fmt: skip
    notes = [json.loads(line) for line in result.stdout.splitlines() + result.stderr.splitlines()]
    assert any("First pass" in note.get("text", "") for note in notes)
