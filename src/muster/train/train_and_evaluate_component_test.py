"""`muster train --eval`: evaluations, exports that TensorFlow loads, early stopping, TF_CONFIG."""

from __future__ import annotations

import json
import os
import pathlib
import random
import re

import pytest

SPEC = """
inputs: {id: int, x: float, color: string, y: int}
label: y
key: id
columns:
  x: {numeric: x}
  color: {vocabulary: color, words: [red, green, blue]}
model:
  type: linear
  linear: {columns: [x, color]}
train: {batch_size: 20, epochs: 5, seed: 3}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("train")
    rng = random.Random(1)
    rows = ["id,x,color,y"]
    for i in range(400):
        x, color = rng.gauss(0, 1), rng.choice(["red", "green", "blue"])
        rows.append(f"{i},{x:.4f},{color},{int(2 * x + (color == 'red') + rng.gauss(0, 1) > 0)}")
    (folder / "rows.csv").write_text("\n".join(rows) + "\n")
    (folder / "spec.yaml").write_text(SPEC)
    return folder


def arguments(folder: pathlib.Path, model: str, *more: object) -> list[object]:
    return ["train", folder / "spec.yaml", "--train", folder / "rows.csv", "--eval",
            folder / "rows.csv", "--model-dir", folder / model, "--eval-start-delay-secs", 0,
            "--eval-throttle-secs", 0, "--save-steps", 10, *more]  # fmt: skip


def test_bad_records_of_evaluations_are_left_out_and_counted(muster, folder):
    rows = (folder / "rows.csv").read_text()
    (folder / "bad.csv").write_text(rows + "400,much,red,0\n401,1,red,7\n")
    command = arguments(folder, "lenient", "--eval", folder / "bad.csv", "--max-bad-records")
    assert "7 is not 0 or 1" in muster.fail(*command, 1)
    assert not (folder / "lenient").exists()  # it was found before the training
    events = muster.json(*command, 2)
    assert {e["bad_records"] for e in events if e["event"] == "evaluated"} == {2}
    text = muster.run(*arguments(folder, "lenient", "--eval", folder / "bad.csv"),
                      "--max-bad-records", 2)  # fmt: skip
    assert "left out 2 bad records" in text


def test_best_exports_load_in_tensorflow(muster, folder):
    import tensorflow as tf

    events = muster.json(*arguments(folder, "best", "--exporter", "best", "--exporter", "final",
                                    "--exports-to-keep", 2))  # fmt: skip
    evaluated = [e for e in events if e["event"] == "evaluated"]
    assert [e["global_step"] for e in evaluated] == list(range(10, 101, 10))
    best = min(evaluated, key=lambda e: e["loss"])
    exports = sorted(p for p in (folder / "best" / "export" / "best").iterdir())
    assert len(exports) == 2 and all(re.fullmatch(r"\d{10}", p.name) for p in exports)
    assert [e for e in events if e["event"] == "exported"][-1]["saved_model"].find("/final/") > 0
    loaded = tf.saved_model.load(str(exports[-1]))
    logits = {}
    for kind, place in (("best", exports[-1]),):
        predict = loaded.signatures["serving_default"]
        x, color = tf.constant([0.5, -1.0]), tf.constant(["red", "blue"])
        logits[kind] = predict(x=x, color=color)["logits"].numpy()
    # The newest of "best" is the model of the best evaluation: compare with its checkpoint if kept.
    checkpoint = folder / "best" / f"model.ckpt-{best['global_step']}"
    if checkpoint.with_suffix(checkpoint.suffix + ".index").exists():
        reader = tf.train.load_checkpoint(str(checkpoint))
        weights = reader.get_tensor("linear/linear_model/color/weights")[:, 0]
        w = reader.get_tensor("linear/linear_model/x/weights")[0, 0]
        bias = reader.get_tensor("linear/linear_model/bias_weights")[0]
        expected = [0.5 * w + weights[0] + bias, -w + weights[2] + bias]
        assert logits["best"][:, 0] == pytest.approx(expected, abs=1e-6)


def test_evaluation_events_are_read_by_tensorflow(muster, folder):
    import tensorflow as tf

    muster.run(*arguments(folder, "events", "--max-steps", 30, "--quiet"))
    found = {}
    for path in sorted((folder / "events" / "eval").glob("*tfevents*")):
        for event in tf.compat.v1.train.summary_iterator(str(path)):
            for value in event.summary.value:
                if value.tag == "loss":
                    found[event.step] = value.simple_value
    assert sorted(found) == [10, 20, 30]


def test_early_stopping_ends_the_run(muster, folder):
    trained = muster.event("trained", *arguments(folder, "early", "--early-stop",
                                                 "accuracy:higher:0.1"))  # fmt: skip
    assert trained["step"] == 10
    assert "metric 'accuracy'" in trained["stop_reason"]


def test_steps_are_more_and_max_steps_are_all(muster, folder):
    plain = [a for a in arguments(folder, "steps")]
    assert muster.event("trained", *plain, "--steps", 7)["step"] == 7
    assert muster.event("trained", *plain, "--steps", 7)["step"] == 14
    assert muster.event("trained", *plain, "--max-steps", 14)["examples"] == 0
    both = muster.call(*plain, "--steps", 1, "--max-steps", 1)
    assert both.returncode == 2 and "--max-steps" in both.stderr
    skipped = muster.call(*plain, "--max-steps", 14)
    assert "Skipping training since max_steps has already saved" in skipped.stderr


@pytest.mark.parametrize(
    "config, message",
    [
        ({"cluster": {"worker": ["w:1"]}, "task": {"type": "worker", "index": 0}},
         'it must have one "chief" node'),
        ({"cluster": {"chief": ["localhost:1"], "ps": ["127.0.0.1:2"]},
          "task": {"type": "ps", "index": 0}}, "MUSTER_KEY_FILE"),
        ({"model_dir": "/elsewhere"}, "model_dir is '/elsewhere'"),
    ],
)  # fmt: skip
def test_tf_config_is_read(muster, folder, config, message):
    environment = {**os.environ, "TF_CONFIG": json.dumps(config)}
    result = muster.call(*arguments(folder, "cluster"), env=environment)
    assert result.returncode == 1
    assert message in result.stderr


def test_wrong_rules_are_refused(muster, folder):
    for flags, message in [
        (("--exporter", "lastest"), "unknown exporter 'lastest' (did you mean 'latest'?)"),
        (("--exporter", "best:auc"), "write best, best:METRIC:higher or best:METRIC:lower"),
        (("--early-stop", "auc:up:3"), "unknown direction 'up'"),
    ]:
        assert message in muster.refuse(*arguments(folder, "wrong", *flags))
    unmeasured = muster.refuse(*arguments(folder, "wrong", "--exporter", "best:acu:higher"))
    assert "no metric 'acu'" in unmeasured


def test_a_profile_is_a_chrome_trace(muster, folder):
    muster.run(*arguments(folder, "profile", "--profile-steps", 50, "--quiet"))
    profiles = sorted(p.name for p in (folder / "profile").glob("timeline-*.json"))
    assert profiles == ["timeline-1.json", "timeline-51.json"]
    trace = json.loads((folder / "profile" / "timeline-51.json").read_text())
    names = {e["name"] for e in trace["traceEvents"] if e["ph"] == "X"}
    assert names == {"input wait", "forward-backward", "update"}
    assert all(e["dur"] >= 0 for e in trace["traceEvents"] if e["ph"] == "X")
