"""muster evaluate: settings of metrics and a named checkpoint, from the command line."""

from __future__ import annotations

import json
import pathlib
import random

import pytest

SPEC = """
inputs: {{x: float, y: int}}
label: y
columns:
  x: {{numeric: x}}
model:
  type: linear
  linear: {{columns: [x]}}
head: {head}
metrics: {metrics}
"""


@pytest.fixture
def place(tmp_path):
    draw = random.Random(4)
    lines = ["x,y"]
    for _ in range(200):
        x = draw.gauss(0, 1)
        lines.append(f"{x},{(x > -0.4) + (x > 0.5)}")
    (tmp_path / "three.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "two.csv").write_text("\n".join(line.replace(",2", ",1") for line in lines) + "\n")
    return tmp_path


def train(muster, place, name, data, head, metrics, *flags):
    spec = place / f"{name}.yaml"
    spec.write_text(SPEC.format(head=head, metrics=metrics))
    muster.run("train", spec, "--train", place / data, "--model-dir", place / name, *flags)
    return ["evaluate", "--model-dir", place / name, "--data", place / data]


def test_a_metric_that_is_no_number_is_null_with_a_warning(muster, place) -> None:
    plain = train(muster, place, "plain", "two.csv", "binary", "{}")
    (place / "one.csv").write_text("x,y\n0.5,1\n0.7,1\n")
    result = muster.call(*plain[:-1], place / "one.csv", "--json")
    evaluated = json.loads(result.stdout.splitlines()[-1])
    assert evaluated["auc"] is None and evaluated["accuracy"] is not None
    assert "warning: no number (null in JSON): auc, " in result.stderr
    assert "an AUC needs rows of both classes" in result.stderr


@pytest.mark.parametrize(
    "data, head, metrics, flags",
    [
        ("two.csv", "binary", "{thresholds: [0.3, 0.7], calibration_buckets: 4}",
         ["--thresholds", "0.3,0.7", "--calibration-buckets", 4]),
        ("three.csv", "{multi_class: 3}", "{top_k: [2], per_class: true}",
         ["--top-k", 2, "--per-class"]),
    ],
)  # fmt: skip
def test_flags_ask_for_what_the_model_file_can(data, head, metrics, flags, muster, place) -> None:
    whole = muster.event("evaluated", *train(muster, place, "whole", data, head, metrics))
    assert pathlib.Path(whole.pop("checkpoint")).parent.name == "whole"
    plain = train(muster, place, "plain", data, head, "{}")
    asked = muster.event("evaluated", *plain, *flags)
    assert pathlib.Path(asked.pop("checkpoint")).parent.name == "plain"
    assert asked == whole
    assert muster.event("evaluated", *plain).keys() - {"checkpoint"} < whole.keys()


def test_a_flag_takes_the_place_of_the_files(muster, place) -> None:
    command = train(muster, place, "m", "two.csv", "binary", "{thresholds: [0.3]}")
    found = muster.event("evaluated", *command, "--thresholds", 0.6)
    assert "accuracy/positive_threshold_0.6" in found
    assert "accuracy/positive_threshold_0.3" not in found
    assert "a binary head has none" in muster.refuse(*command, "--top-k", 2)


def test_a_named_checkpoint(muster, place) -> None:
    command = train(muster, place, "m", "two.csv", "binary", "{}", "--steps", 3)
    early = muster.event("evaluated", *command)
    muster.run("train", place / "m.yaml", "--train", place / "two.csv", "--model-dir", place / "m",
               "--steps", 4)  # fmt: skip
    assert muster.event("evaluated", *command)["global_step"] == 7
    named = muster.event("evaluated", *command, "--checkpoint", place / "m/model.ckpt-3")
    assert named == early and named["global_step"] == 3
    missing = muster.fail(*command, "--checkpoint", place / "m/model.ckpt-4")
    assert "no checkpoint" in missing and "model.ckpt-4.index" in missing


def test_early_stop_reads_the_named_evaluations(muster, place) -> None:
    spec = place / "early.yaml"
    spec.write_text(SPEC.format(head="binary", metrics="{}"))
    trained = muster.event(
        "trained", "train", spec, "--train", place / "two.csv", "--model-dir", place / "early",
        "--max-steps", 3000, "--save-steps", 10, "--eval", place / "two.csv", "--eval-name", "mine",
        "--eval-start-delay-secs", 0, "--eval-throttle-secs", 0, "--early-stop", "loss:lower:100",
    )  # fmt: skip
    assert trained["step"] < 3000
    assert (place / "early/eval_mine").exists() and not (place / "early/eval").exists()


def test_untrained_weights_do_not_stand_in_for_broken_ones(muster, place):
    command = train(muster, place, "broken", "two.csv", "binary", "{}", "--epochs", 5)
    (data,) = (path for path in (place / "broken").glob("model.ckpt-*.data-*") if "ckpt-0." not in path.name)
    data.write_bytes(bytes(byte ^ 255 for byte in data.read_bytes()))
    said = muster.fail(*command)
    assert "model.ckpt-0, whose weights are untrained, no checkpoint is intact" in said
