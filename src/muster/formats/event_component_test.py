"""TensorBoard's reader on the event files of a training."""

from __future__ import annotations

SPEC = """
inputs: {x: float, y: int}
label: y
columns: {x: {numeric: x}}
model: {type: dnn, dnn: {columns: [x], hidden_units: [4]}}
train: {batch_size: 4}
"""


def test_tensorboard_reads_loss_and_metrics(muster, tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    (tmp_path / "spec.yaml").write_text(SPEC)
    rows = tmp_path / "rows.csv"
    rows.write_text("x,y\n" + "".join(f"{i / 7},{i % 2}\n" for i in range(40)))
    muster.run("train", tmp_path / "spec.yaml", "--train", rows, "--eval", rows,
               "--model-dir", tmp_path / "m", "--steps", 20, "--summary-steps", 5, "--quiet")

    training = EventAccumulator(str(tmp_path / "m")).Reload()
    losses = training.Scalars("loss")
    assert [event.step for event in losses] == [5, 10, 15, 20]
    assert all(0 < event.value < 10 for event in losses)
    assert losses[0].wall_time > 1.7e9
    assert training.file_version == 2
    evaluation = EventAccumulator(str(tmp_path / "m" / "eval")).Reload()
    assert {"auc", "accuracy", "average_loss"} <= set(evaluation.Tags()["scalars"])
    assert evaluation.Scalars("auc")[-1].step == 20
