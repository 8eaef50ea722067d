"""Experiments in tf-yarn's form, which tasks import: they fit the line y = 3 x + 1."""

from __future__ import annotations

from muster.yarn import Experiment, KerasExperiment

STEPS, BATCH = 60, 32


def line(tf, repeat=True):
    """A dataset of points on the line."""
    x = tf.reshape(tf.linspace(-1.0, 1.0, 64), [64, 1])
    data = tf.data.Dataset.from_tensor_slices((x, 3.0 * x + 1.0)).batch(BATCH)
    return data.repeat() if repeat else data


def make_estimator(model_dir: str) -> Experiment:
    import tensorflow as tf

    def input_fn():
        return line(tf).map(lambda x, y: ({"x": x}, y))

    estimator = tf.estimator.LinearRegressor(
        [tf.feature_column.numeric_column("x")], model_dir=model_dir,
        config=tf.estimator.RunConfig(save_checkpoints_steps=STEPS),
    )  # fmt: skip
    return Experiment(
        estimator,
        tf.estimator.TrainSpec(input_fn, max_steps=STEPS),
        tf.estimator.EvalSpec(input_fn, steps=2, start_delay_secs=0, throttle_secs=1),
    )


def make_keras(model_dir: str) -> KerasExperiment:
    import tensorflow as tf

    model = tf.keras.Sequential([tf.keras.layers.Input([1]), tf.keras.layers.Dense(1)])
    model.compile(tf.keras.optimizers.SGD(0.2), "mse")
    save = tf.keras.callbacks.ModelCheckpoint(f"{model_dir}/model")
    return KerasExperiment(
        model=model, model_dir=model_dir,
        train_params={"steps_per_epoch": STEPS, "epochs": 2, "callbacks": [save], "verbose": 2},
        input_data_fn=lambda: line(tf), target_data_fn=None,
        validation_data_fn=lambda: line(tf, repeat=False),
    )  # fmt: skip
