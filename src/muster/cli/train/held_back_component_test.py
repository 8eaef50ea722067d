"""`muster train --eval 20%`: a share of the training data is held back, and the evaluations read it."""

from __future__ import annotations

import json
import pathlib
import random

import pytest

from testbed.held_back import is_held_back
from testbed.muster import Muster

MODEL = """
inputs: {a: float, b: float, y: int}
label: y
columns: {a: {numeric: a}, b: {numeric: b}}
model: {type: linear, linear: {columns: [a, b], optimizer: {adagrad: {learning_rate: 0.1}}}}
train: {batch_size: 32, epochs: 2, shuffle: false}
"""
ROWS = 3000


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("held-back")
    (folder / "model.yaml").write_text(MODEL)
    draw = random.Random(1)
    rows = []
    for _ in range(ROWS):
        a, b = draw.random(), draw.random()
        rows.append(f"{a:.4f},{b:.4f},{int(a + b + draw.random() > 1.5)}\n")
    (folder / "rows.csv").write_text("a,b,y\n" + "".join(rows))
    for part, wanted in (("rest.csv", False), ("held-back.csv", True)):
        chosen = (row for number, row in enumerate(rows) if is_held_back("rows.csv", number, 0.2) == wanted)
        (folder / part).write_text("a,b,y\n" + "".join(chosen))
    return folder


def train(muster: Muster, here: pathlib.Path, model: pathlib.Path, data: str, *flags: object) -> dict[str, object]:
    shown = muster.run("train", here / "model.yaml", "--train", here / data, "--model-dir", model, "--json", *flags)
    lines = [line.removeprefix("chief-0  | ") for line in shown.splitlines()]  # as a job prints it
    evaluated = [json.loads(line) for line in lines if '"event":"evaluated"' in line][-1]
    return {key: value for key, value in evaluated.items() if key != "checkpoint"}


def test_both_parts_are_what_their_own_files_would_be(
    muster: Muster, here: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    parts = train(muster, here, tmp_path / "parts", "rest.csv", "--eval", here / "held-back.csv")
    assert train(muster, here, tmp_path / "share", "rows.csv", "--eval", "20%") == parts
    scores = [muster.run("predict", tmp_path / name, "--data", here / "rows.csv", "--out", "-") for name in ("share", "parts")]
    assert scores[0] == scores[1]


def test_workers_hold_back_the_same_rows(muster: Muster, here: pathlib.Path, tmp_path: pathlib.Path) -> None:
    held_back = (here / "held-back.csv").read_text().count("\n") - 1
    result = train(muster, here, tmp_path / "model", "rows.csv", "--eval", "20%", "--workers", 2)
    assert result["trained_records"] == 2 * (ROWS - held_back)
    same = muster.event("evaluated", "evaluate", tmp_path / "model", "--data", here / "held-back.csv", "--batch-size", 1024)
    assert same["average_loss"] == pytest.approx(result["average_loss"], rel=1e-6)


def test_another_share_is_other_data(muster: Muster, here: pathlib.Path, tmp_path: pathlib.Path) -> None:
    command = ["train", here / "model.yaml", "--train", here / "rows.csv", "--model-dir", tmp_path / "model", "--eval"]
    muster.run(*command, "20%", "--max-steps", 20)
    assert "--fresh-data" in muster.fail(*command, "30%")
    muster.run(*command, "20%")


def test_trials_of_a_search_hold_back_a_share(muster: Muster, here: pathlib.Path, tmp_path: pathlib.Path) -> None:
    (tmp_path / "search.yaml").write_text(
        f"model: {here / 'model.yaml'}\ntrain: {here / 'rows.csv'}\neval: 20%\n"
        "space: {model.linear.optimizer.adagrad.learning_rate: {choice: [0.1]}}\n"
        "metric: {maximize: auc}\nbudget: {trials: 1}\n")  # fmt: skip
    shown = muster.run("tune", tmp_path / "search.yaml", tmp_path / "study")
    auc = train(muster, here, tmp_path / "model", "rows.csv", "--eval", "20%")["auc"]
    assert f"{auc:.6g}" in shown


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("--train", "rows.csv", "--eval", "0%"), "--eval 0%: a share lies between 0% and 100%"),
        (("--train", "rows.csv", "--eval", "100%"), "--eval 100%: a share lies between"),
        (("--train", "-", "--eval", "5%"), "--eval 5%: a stream of batches is read once"),
    ],
)
def test_shares_that_cannot_be(
    muster: Muster, here: pathlib.Path, tmp_path: pathlib.Path, flags: tuple[str, ...], says: str
) -> None:
    assert says in muster.refuse("train", here / "model.yaml", "--model-dir", tmp_path / "model", *flags)


def test_a_share_without_rows_is_told(muster: Muster, here: pathlib.Path, tmp_path: pathlib.Path) -> None:
    (tmp_path / "few.csv").write_text("a,b,y\n1,2,1\n1,3,0\n")
    errors = muster.fail("train", here / "model.yaml", "--train", tmp_path / "few.csv", "--model-dir",
                         tmp_path / "model", "--eval", "0.001%")  # fmt: skip
    assert "of 2 records none is held back for the evaluation" in errors
