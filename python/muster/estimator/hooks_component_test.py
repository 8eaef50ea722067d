"""TensorFlow's hooks request the same of the muster program as Muster's hooks of those names."""

from __future__ import annotations

import pytest

from muster import estimator
from muster.estimator import hooks

CASES = {
    "StopAtStepHook": {"num_steps": 5},
    "StopAtStepHook last": {"last_step": 30},
    "LoggingTensorHook": {"tensors": {"loss": "head/loss:0"}, "every_n_iter": 7, "at_end": True},
    "LoggingTensorHook secs": {"tensors": ["loss"], "every_n_secs": 3},
    "LoggingTensorHook end": {"tensors": ["loss"], "at_end": True},
    "NanTensorHook": {"loss_tensor": "loss", "fail_on_nan_loss": False},
    "CheckpointSaverHook": {"checkpoint_dir": "FOLDER", "save_steps": 4},
    "CheckpointSaverHook secs": {"checkpoint_dir": "FOLDER", "save_secs": 60},
    "StepCounterHook": {"every_n_steps": 9},
    "SummarySaverHook": {"save_steps": 6, "output_dir": "FOLDER", "summary_op": "x"},
    "ProfilerHook": {"save_steps": 8, "output_dir": "FOLDER"},
}


@pytest.mark.parametrize("case", CASES)
def test_tensorflows_hook_asks_for_the_same(case, tmp_path) -> None:
    import tensorflow as tf

    name, folder = case.split()[0], str(tmp_path)
    options = {key: folder if value == "FOLDER" else value for key, value in CASES[case].items()}
    with tf.Graph().as_default():
        theirs = getattr(tf.estimator, name)(**options)
    ours = getattr(estimator, name)(**options)
    asked = hooks.ask([ours], folder, 20)
    assert asked != hooks.Asked()
    assert hooks.ask([theirs], folder, 20) == asked


def test_what_tensorflow_has_besides_is_refused_by_name(tmp_path) -> None:
    import tensorflow as tf

    for hook in (tf.estimator.FinalOpsHook(None), tf.estimator.FeedFnHook(dict)):
        with pytest.raises(ValueError, match=f"{type(hook).__name__}: the muster program has no"):
            hooks.ask([hook], str(tmp_path), 0)
