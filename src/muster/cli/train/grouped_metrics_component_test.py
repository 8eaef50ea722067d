"""Grouped AUC and calibration by bins, against scikit-learn and numpy on the model's own predictions."""

from __future__ import annotations

import json
import pathlib

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

SPEC = """
inputs: {user: string, x: float, w: float, y: int}
label: y
weight: w
columns: {x: {numeric: x}}
model: {type: linear, linear: {columns: [x]}}
metrics: {group: user, calibration_buckets: 10}
"""
ROWS = 4000


@pytest.fixture(scope="module")
def place(muster, tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("grouped")
    draw = np.random.default_rng(3)
    user = draw.zipf(1.5, ROWS) % 300
    x = draw.normal(0, 1, ROWS).round(2)  # with ties
    y = (draw.random(ROWS) < 1 / (1 + np.exp(-x - (user % 5 - 2)))).astype(int)
    w = draw.integers(1, 4, ROWS)
    rows = [f"u{a},{b},{c},{d}" for a, b, c, d in zip(user, x, w, y, strict=True)]
    (folder / "rows.csv").write_text("\n".join(["user,x,w,y", *rows]) + "\n")
    (folder / "spec.yaml").write_text(SPEC)
    muster.run("train", folder / "spec.yaml", folder / "model", "--train", folder / "rows.csv")
    out = folder / "scores.jsonl"
    muster.run("predict", folder / "model", "--data", folder / "rows.csv", "--out", out)
    scores = [json.loads(line)["logistic"][0] for line in out.read_text().splitlines()]
    np.savez(folder / "rows.npz", user=user, y=y, w=w, p=np.array(scores, np.float32))
    return folder


@pytest.mark.parametrize("flags", [(), ("--workers", 2)])
def test_grouped_auc_is_scikit_learns_within_each_group(flags, muster, place) -> None:
    found = muster.event("evaluated", "evaluate", place / "model", "--data", place / "rows.csv", *flags)
    rows = np.load(place / "rows.npz")
    aucs, weights, left_out = [], [], 0
    for user in np.unique(rows["user"]):
        own = rows["user"] == user
        if len(np.unique(rows["y"][own])) < 2:
            left_out += 1
            continue
        aucs.append(roc_auc_score(rows["y"][own], rows["p"][own], sample_weight=rows["w"][own]))
        weights.append(rows["w"][own].sum())
    assert found["gauc"] == pytest.approx(np.average(aucs, weights=weights), rel=1e-12)
    assert found["gauc/groups"] == len(aucs) > 10
    assert found["gauc/groups_left_out"] == left_out > 10


def test_calibration_is_numpys(muster, place) -> None:
    command = ("evaluate", place / "model", "--data", place / "rows.csv")
    found = muster.event("evaluated", *command)
    rows = np.load(place / "rows.npz")
    bucket = np.minimum((rows["p"] * 10).astype(int), 9)
    error, table = 0.0, found["calibration/buckets"]
    assert len(table) == 10
    for i, row in enumerate(table):
        own = bucket == i
        assert row["from"] == i / 10 and row["to"] == (i + 1) / 10
        assert row["weight"] == rows["w"][own].sum()
        if not own.any():
            assert row["label_mean"] is None
            continue
        observed = np.average(rows["y"][own], weights=rows["w"][own])
        predicted = np.average(rows["p"][own].astype(float), weights=rows["w"][own])
        assert row["label_mean"] == pytest.approx(observed, rel=1e-12)
        assert row["prediction_mean"] == pytest.approx(predicted, rel=1e-9)
        error += abs(observed - predicted) * rows["w"][own].sum() / rows["w"].sum()
    assert found["calibration/error"] == pytest.approx(error, rel=1e-9)
    lines = muster.run(*command).splitlines()
    head = next(i for i, line in enumerate(lines) if "observed" in line)
    shown = lines[head + 1 :]
    assert len(shown) == sum(row["weight"] > 0 for row in table)
    assert len({len(line) for line in lines[head:]}) == 1, "the lines line up"
    assert not any("bucket_" in line for line in lines)


def test_a_flag_names_the_group(muster, place) -> None:
    command = ("evaluate", place / "model", "--data", place / "rows.csv")
    by_x = muster.event("evaluated", *command, "--group", "x")
    assert by_x["gauc"] == 0.5, "rows of one x have one prediction"
    assert "'town' is not an input of the model file" in muster.refuse(*command, "--group", "town")
