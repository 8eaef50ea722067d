"""muster explain: permutation importance, against scikit-learn's on the same model's predictions."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.inspection import permutation_importance
from sklearn.metrics import log_loss, roc_auc_score

SPEC = """
inputs: {a: float, b: float, c: float, word: string, unused: float, y: int}
label: y
columns:
  a: {numeric: a}
  b: {numeric: b}
  c: {numeric: c}
  word: {vocabulary: word, words: [red, green]}
model: {type: linear, linear: {columns: [a, b, c, word], optimizer: {ftrl: {learning_rate: 0.3}}}}
train: {batch_size: 64, epochs: 5}
"""
ROWS, REPEATS = 3000, 20


class Muster(ClassifierMixin, BaseEstimator):
    """The trained linear model as scikit-learn takes it: its weights were read from its logits."""

    def __init__(self, weights: np.ndarray, bias: float):
        self.weights, self.bias = weights, bias

    def fit(self, _x, _y):
        return self

    def predict_proba(self, x: np.ndarray) -> np.ndarray:
        p = 1 / (1 + np.exp(-(x @ self.weights + self.bias)))
        return np.stack([1 - p, p], axis=1)


@pytest.fixture(scope="module")
def place(muster, tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("explain")
    draw = np.random.default_rng(11)
    numbers = draw.normal(0, 1, (ROWS, 3)).round(3)
    word = draw.integers(0, 2, ROWS)
    logit = 2 * numbers[:, 0] + 0.7 * numbers[:, 1] + 1.2 * word - 0.6
    y = (draw.random(ROWS) < 1 / (1 + np.exp(-logit))).astype(int)
    lines = [
        f"{a},{b},{c},{'green' if w else 'red'},0,{label}"
        for (a, b, c), w, label in zip(numbers, word, y, strict=True)
    ]
    (folder / "rows.csv").write_text("\n".join(["a,b,c,word,unused,y", *lines]) + "\n")
    unit = ["a,b,c,word,unused,y", *(f"{a},{b},{c},{w},0,0" for a, b, c, w in
            [(0, 0, 0, "red"), (1, 0, 0, "red"), (0, 1, 0, "red"), (0, 0, 1, "red"), (0, 0, 0, "green")])]  # fmt: skip
    (folder / "unit.csv").write_text("\n".join(unit) + "\n")
    (folder / "spec.yaml").write_text(SPEC)
    muster.run("train", folder / "spec.yaml", folder / "model", "--train", folder / "rows.csv")
    np.savez(folder / "rows.npz", x=np.column_stack([numbers, word]), y=y)
    return folder


def as_estimator(muster, place) -> Muster:
    import json

    out = place / "unit.jsonl"
    muster.run("predict", place / "model", "--data", place / "unit.csv", "--out", out)
    logits = np.array([json.loads(line)["logits"][0] for line in out.read_text().splitlines()])
    return Muster(logits[1:] - logits[0], logits[0]).fit(None, None)


@pytest.mark.parametrize(
    "metric, score",
    [
        ("auc", lambda model, x, y: roc_auc_score(y, model.predict_proba(x)[:, 1])),
        ("average_loss", lambda model, x, y: -log_loss(y, model.predict_proba(x))),
    ],
)
def test_importances_are_scikit_learns(metric, score, muster, place) -> None:
    found = muster.event("explained", "explain", place / "model", "--data", place / "rows.csv",
                         "--metric", metric, "--repeats", REPEATS)  # fmt: skip
    rows = np.load(place / "rows.npz")
    model = as_estimator(muster, place)
    expected = permutation_importance(
        model, rows["x"], rows["y"], scoring=score, n_repeats=REPEATS, random_state=0
    )
    assert found["examples"] == ROWS and found["metric"] == metric
    sign = -1 if metric == "average_loss" else 1
    assert found["value"] == pytest.approx(sign * score(model, rows["x"], rows["y"]), rel=1e-4)
    by_input = {row["input"]: row for row in found["inputs"]}
    assert by_input.keys() == {"a", "b", "c", "word"}, "neither the label nor what is not read"
    for i, name in enumerate(["a", "b", "c", "word"]):
        ours, theirs = by_input[name], expected.importances_mean[i]
        # Other permutations: the means agree within five of their standard errors.
        deviation = max(ours["deviation"], expected.importances_std[i])
        assert abs(ours["mean"] - theirs) <= 5 * deviation * np.sqrt(2 / REPEATS) + 1e-6, name
        assert ours["deviation"] == pytest.approx(expected.importances_std[i], rel=1, abs=1e-5)
        assert ours["mean"] == pytest.approx(np.mean(ours["losses"]), abs=1e-12)
        assert ours["deviation"] == pytest.approx(np.std(ours["losses"]), abs=1e-12)
    means = [row["mean"] for row in found["inputs"]]
    assert means == sorted(means, reverse=True) and found["inputs"][0]["input"] == "a"


def test_the_seed_decides(muster, place) -> None:
    command = ("explain", place / "model", "--data", place / "rows.csv", "--repeats", 2)
    first = muster.event("explained", *command)
    assert muster.event("explained", *command) == first
    other = muster.event("explained", *command, "--seed", 9)
    assert other["value"] == first["value"] and other["inputs"] != first["inputs"]
    some = muster.event("explained", *command, "--rows", 100)
    assert some["examples"] == 100


def test_the_table_lines_up(muster, place) -> None:
    lines = muster.run("explain", place / "model", "--data", place / "rows.csv").splitlines()
    assert lines[0].startswith("auc 0.") and "3,000 examples" in lines[0]
    assert len({len(line) for line in lines[2:]}) == 1
    assert [line.split()[0] for line in lines[3:]] [:1] == ["a"]


def test_what_cannot_be_is_said(muster, place) -> None:
    command = ("explain", place / "model", "--data", place / "rows.csv")
    assert "does not say how good" in muster.fail(*command, "--metric", "label/mean")
    assert "the model has accuracy" in muster.fail(*command, "--metric", "auk")
    one_class = [line for line in (place / "rows.csv").read_text().splitlines() if line[-1] != "1"]
    (place / "zeros.csv").write_text("\n".join(one_class) + "\n")
    failed = muster.fail("explain", place / "model", "--data", place / "zeros.csv")
    assert "needs both classes" in failed
