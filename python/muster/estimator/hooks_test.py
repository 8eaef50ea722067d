"""Tests hooks of tf.estimator programs with the program that MUSTER_BINARY names; no TensorFlow."""

from __future__ import annotations

import logging

import pytest

from muster import estimator, feature_column
from muster.estimator import hooks as hooks_module
from testbed.linear_classifier import batches, endless, make


def steps_saved(folder) -> set:
    return {int(path.stem.rsplit("-", 1)[1]) for path in folder.glob("model.ckpt-*.index")}


def test_stop_at_step(tmp_path) -> None:
    model = make(tmp_path)
    model.train(endless, hooks=[estimator.StopAtStepHook(num_steps=7)])
    assert model.evaluate(batches)["global_step"] == 7
    model.train(endless, hooks=[estimator.StopAtStepHook(num_steps=3)], max_steps=50)
    assert model.evaluate(batches)["global_step"] == 10
    model.train(endless, hooks=[estimator.StopAtStepHook(last_step=12)], steps=100)
    assert model.evaluate(batches)["global_step"] == 12
    stop = estimator.StopAtStepHook(last_step=15)
    metrics, _ = estimator.train_and_evaluate(
        model, estimator.TrainSpec(endless, hooks=[stop]), estimator.EvalSpec(batches)
    )
    assert metrics["global_step"] == 15


def test_a_checkpoint_saver_takes_the_place_of_run_config(tmp_path) -> None:
    saver = estimator.CheckpointSaverHook(str(tmp_path), save_steps=4)
    make(tmp_path, save_checkpoints_secs=600).train(endless, hooks=[saver], steps=10)
    assert steps_saved(tmp_path) == {0, 4, 8, 10}


def test_the_loss_is_logged(tmp_path, caplog) -> None:
    caplog.set_level(logging.INFO, "muster")
    hook = estimator.LoggingTensorHook({"loss": "anything"}, every_n_iter=4, at_end=True)
    make(tmp_path).train(endless, hooks=[hook], steps=10)
    lines = [record.getMessage() for record in caplog.records]
    told = [line.split(":")[0] for line in lines if ": loss = " in line]
    assert told == ["step 4", "step 8", "step 10"]


def test_summaries_rates_and_timelines_have_their_steps(tmp_path) -> None:
    hooks = [
        estimator.SummarySaverHook(save_steps=5, summary_op=object()),
        estimator.StepCounterHook(every_n_steps=4),
        estimator.ProfilerHook(save_steps=6, output_dir=str(tmp_path)),
    ]
    asked = hooks_module.ask(hooks, str(tmp_path), 0)
    assert asked.config == {"save_summary_steps": 5, "log_step_count_steps": 4}
    make(tmp_path).train(endless, hooks=hooks, steps=10)
    assert {path.name for path in tmp_path.glob("timeline-*")} == {
        "timeline-1.json",
        "timeline-7.json",
    }


def wild():
    for features, labels in endless():
        yield {"x": [1e30 * value for value in features["x"]]}, labels


def test_a_nan_loss_can_end_without_an_error(tmp_path) -> None:
    columns = [feature_column.numeric_column("x")]

    def diverging(folder) -> estimator.LinearRegressor:
        steep = estimator.optimizers.SGD(1.0)
        return estimator.LinearRegressor(columns, model_dir=folder, optimizer=steep)

    with pytest.raises(estimator.core.binary.MusterError, match="loss is"):
        diverging(tmp_path / "a").train(wild, steps=50)
    hook = estimator.NanTensorHook("loss", fail_on_nan_loss=False)
    model = diverging(tmp_path / "b").train(wild, hooks=[hook], steps=50)
    (step,) = steps_saved(tmp_path / "b") - {0}
    assert step < 50 and model.latest_checkpoint() == str(tmp_path / f"b/model.ckpt-{step}")


class Louder(estimator.LoggingTensorHook):
    def after_run(self, context, values) -> None:
        raise AssertionError("never called")


@pytest.mark.parametrize(
    "make_hook, says",
    [
        (lambda: Louder(["loss"], 1), "Louder: LoggingTensorHook, .*derive it from SessionRunHook"),
        (lambda: estimator.StopAtStepHook(), "One of num_steps or last_step must be specified"),
        (lambda: estimator.StopAtStepHook(1, 2), "Only one of num_steps or last_step"),
        (lambda: estimator.LoggingTensorHook(["loss"]), "at_end and/or exactly one of"),
        (lambda: estimator.LoggingTensorHook(["loss"], 1, 2), "at_end and/or exactly one of"),
        (lambda: estimator.LoggingTensorHook({"a": "dense/kernel"}, 1), "knows the loss"),
        (lambda: estimator.CheckpointSaverHook("x"), "Either save_steps or save_secs"),
        (lambda: estimator.CheckpointSaverHook("x", save_steps=3), "checkpoint_dir 'x'.*leave it"),
        (lambda: estimator.SummarySaverHook(save_steps=1), "Exactly one of scaffold or summary_op"),
        (
            lambda: estimator.SummarySaverHook(save_secs=1, summary_op=1),
            "counts steps here, not seconds: give save_steps=N",
        ),
        (lambda: estimator.StepCounterHook(None, 3), "give every_n_steps=N"),
    ],
)
def test_what_cannot_be_done_says_what_to_do(make_hook, says, tmp_path) -> None:
    with pytest.raises(ValueError, match=says):
        make(tmp_path).train(batches, hooks=[make_hook()])
    assert not (tmp_path / "model.yaml").exists()
