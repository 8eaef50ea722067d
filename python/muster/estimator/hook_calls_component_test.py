"""Hooks and listeners are called in tf.estimator's order, at its steps, with TensorFlow's base
classes and its ways to get the global step."""

from __future__ import annotations

import numpy as np
import pytest

from muster import estimator, feature_column

BATCH, BATCHES = 8, 6


def recorder(base, calls, name):
    """Makes a hook or listener of `base` that records its calls with the global step."""
    import tensorflow as tf

    class Recorder(base):
        def begin(self) -> None:
            self.step = tf.compat.v1.train.get_global_step()
            calls.append(f"{name}begin")

        def after_create_session(self, session, coord) -> None:
            calls.append(f"{name}create {session.run(self.step)}")

        def before_run(self, run_context):
            calls.append(f"{name}before_run {run_context.session.run(self.step)}")
            return tf.estimator.SessionRunArgs({"step": self.step})

        def after_run(self, run_context, run_values) -> None:
            assert set(run_values.results) == {"step"}
            calls.append(f"{name}after_run {run_context.session.run(self.step)}")

        def before_save(self, session, global_step_value) -> None:
            calls.append(f"{name}before_save {global_step_value}")

        def after_save(self, session, global_step_value) -> None:
            calls.append(f"{name}after_save {global_step_value}")

        def end(self, session, global_step_value=None) -> None:
            calls.append(f"{name}end {session.run(self.step)}")

    return Recorder()


def data():
    import tensorflow as tf

    x = np.linspace(-1, 1, BATCH * BATCHES, dtype=np.float32)
    labels = (x > 0).astype(np.int64)
    return tf.data.Dataset.from_tensor_slices(({"x": x}, labels)).batch(BATCH)


def runs(module, columns, folder, data_steps):
    """Returns all calls of trainings, an evaluation and a prediction with the estimator of
    `module`."""
    import tensorflow as tf

    calls = []
    config = module.RunConfig(save_checkpoints_steps=2)
    model = module.LinearClassifier(columns, model_dir=str(folder), config=config)

    def hook(name):
        return recorder(tf.estimator.SessionRunHook, calls, name)

    listener = recorder(tf.estimator.CheckpointSaverListener, calls, "L.")
    stop = None if data_steps else 3
    model.train(data, hooks=[hook("A."), hook("B.")], max_steps=stop, saving_listeners=[listener])
    model.evaluate(data, steps=stop, hooks=[hook("E.")])
    for row in model.predict(data, hooks=[hook("P.")]):
        calls.append(f"row {row['class_ids'].shape}")
    return calls


@pytest.mark.parametrize("data_steps", [False, True], ids=["steps", "to the end of the data"])
def test_the_order_of_calls_is_tf_estimators(tmp_path, data_steps) -> None:
    import tensorflow as tf

    theirs = runs(
        tf.estimator, [tf.feature_column.numeric_column("x")], tmp_path / "theirs", data_steps
    )
    ours = runs(
        estimator, [feature_column.numeric_column("x")], tmp_path / "ours", data_steps
    )
    assert len(theirs) > 60
    assert ours == theirs


def evaluated_runs(module, columns, folder):
    import tensorflow as tf

    calls = []
    config = module.RunConfig(save_checkpoints_steps=2)
    model = module.LinearClassifier(columns, model_dir=str(folder), config=config)
    hooks = {name: recorder(tf.estimator.SessionRunHook, calls, f"{name}.") for name in "TE"}
    listener = recorder(tf.estimator.CheckpointSaverListener, calls, "L.")
    train = module.TrainSpec(data, 5, hooks=[hooks["T"]], saving_listeners=[listener])
    evaluate = module.EvalSpec(
        data, steps=2, hooks=[hooks["E"]], start_delay_secs=0, throttle_secs=0
    )
    module.train_and_evaluate(model, train, evaluate)
    return calls


def test_train_and_evaluate_calls_as_tf_estimator(tmp_path) -> None:
    import tensorflow as tf

    columns = [tf.feature_column.numeric_column("x")]
    theirs = evaluated_runs(tf.estimator, columns, tmp_path / "theirs")
    columns = [feature_column.numeric_column("x")]
    assert "E.after_run 4" in theirs
    assert evaluated_runs(estimator, columns, tmp_path / "ours") == theirs


def test_a_graph_that_a_hook_makes_is_refused_by_the_tensors_name(tmp_path) -> None:
    import tensorflow as tf

    class Own(tf.compat.v1.train.SessionRunHook):
        def begin(self) -> None:
            self.twice = tf.constant(2, name="twice")

        def before_run(self, run_context):
            return tf.compat.v1.train.SessionRunArgs([self.twice])

    class Louder(tf.estimator.LoggingTensorHook):
        pass

    model = estimator.LinearClassifier([feature_column.numeric_column("x")], model_dir=tmp_path)
    with pytest.raises(ValueError, match="Own.before_run asks for 'twice:0': there is no"):
        model.train(data, hooks=[Own()])
    with pytest.raises(ValueError, match="Louder: LoggingTensorHook, which it is derived from"):
        model.train(data, hooks=[Louder(["loss"], 1)])
    for hook in (tf.estimator.FinalOpsHook(None), tf.estimator.FeedFnHook(dict)):
        says = f"{type(hook).__name__} does nothing in evaluate: it works on a TensorFlow graph"
        with pytest.raises(ValueError, match=says):
            model.evaluate(data, hooks=[hook])
