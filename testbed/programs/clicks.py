"""Random clicks, and a wide & deep model of tf.estimator for them."""

import numpy as np
import tensorflow as tf

from gate import Gate

ROWS, BATCH = 256, 32
CITIES, JOBS = ["bern", "oslo", "rome"], ["cook", "smith"]


def input_fn(repeat: bool) -> tf.data.Dataset:
    random = np.random.default_rng(1)
    decades = random.uniform(2, 7, ROWS).astype(np.float32)
    city, job = random.choice(CITIES, ROWS), random.choice(JOBS, ROWS)
    clicked = ((decades > 4.5) ^ (city == "oslo")).astype(np.int32)
    features = {"decades": decades, "city": city, "job": job}
    rows = tf.data.Dataset.from_tensor_slices((features, clicked))
    rows = rows.batch(BATCH)
    return rows.repeat() if repeat else rows


def wide_deep(config: tf.estimator.RunConfig) -> tf.estimator.Estimator:
    columns = tf.feature_column
    city = columns.categorical_column_with_vocabulary_list("city", CITIES)
    job = columns.categorical_column_with_hash_bucket("job", 10)
    return tf.estimator.DNNLinearCombinedClassifier(
        linear_feature_columns=[city, job, columns.crossed_column(["city", "job"], 20)],
        dnn_feature_columns=[columns.numeric_column("decades"), columns.embedding_column(city, 2)],
        dnn_hidden_units=[4],
        linear_optimizer="Ftrl",
        dnn_optimizer="Adagrad",
        config=config,
    )


class GateHook(tf.estimator.SessionRunHook):
    """Makes each task of the training wait before it takes the step after `at`."""

    def __init__(self, path: str, at: int):
        self.gate = Gate(path, at)

    def begin(self) -> None:
        self.step = tf.compat.v1.train.get_global_step()

    def before_run(self, run_context) -> tf.compat.v1.train.SessionRunArgs:
        return tf.compat.v1.train.SessionRunArgs(self.step)

    def after_run(self, run_context, run_values) -> None:
        self.gate.pass_through(int(run_values.results))
