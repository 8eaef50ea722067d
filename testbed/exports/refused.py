"""Models that muster.keras.export refuses, and the message for each."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from muster.keras import Field
from testbed.exports.accepted import Case

L = keras.layers


def plain(*layers: Any, width: int = 3, **arguments: Any) -> Case:
    return Case(keras.Sequential([L.Input((width,), name="x"), *layers, L.Dense(1)]), **arguments)


def layer(call, **attributes: Any) -> Any:
    """Makes a layer that computes `call(self, x)`."""
    made = type("Odd", (L.Layer,), {"call": call})(name="odd")
    for name, value in attributes.items():
        setattr(made, name, value)
    return made


def unbuilt():
    return Case(keras.Sequential([L.Dense(1)]))


def raw_variable():
    return plain(layer(lambda self, x: x * self.scale, scale=tf.Variable(2.0, name="scale")))


OUTSIDE = tf.Variable(1.0, name="outside")


def variable_from_outside():
    return plain(layer(lambda self, x: x * OUTSIDE))


class KerasTwo:
    """Resembles tf_keras.Model."""

    __module__ = "tf_keras.src.engine.training"
    name = "old"


def py_function():
    def call(self, x):
        y = tf.py_function(lambda v: v * 2, [x], tf.float32)
        y.set_shape(x.shape)
        return y

    return plain(layer(call))


def numpy_function():
    def call(self, x):
        y = tf.numpy_function(lambda v: v * np.float32(2), [x], tf.float32)
        y.set_shape(x.shape)
        return y

    return plain(layer(call))


def trained_in_bfloat16():
    return plain(L.Dense(2, dtype="bfloat16"))


def trained_in_float64():
    return plain(L.Dense(2, dtype="float64"))


def float16_without_scale():
    return plain(L.Dense(2, dtype="mixed_float16"))


def stateful_lstm():
    layers = [L.Input(batch_shape=(4, 5, 3), name="x"), L.LSTM(2, stateful=True), L.Dense(1)]
    return Case(keras.Sequential(layers))


def fixed_batch():
    return Case(keras.Sequential([L.Input((3,), batch_size=4, name="x"), L.Dense(1)]))


def own(method: str) -> Any:
    """Makes a model with a custom `method`, which does what Keras's does."""

    def make():
        inherited = getattr(keras.Sequential, method)

        def does(self, *given):
            return inherited(self, *given)

        kind = type("Own", (keras.Sequential,), {method: does})
        return Case(kind([L.Input((3,), name="x"), L.Dense(1)]))

    return make


def trained_optimizer():
    case = plain(optimizer=keras.optimizers.Adam())
    case.model.compile(case.optimizer, case.loss)
    case.model.train_on_batch(np.ones((4, 3)), np.ones((4, 1)))
    return case


def resumed_optimizer():
    """Its schedule would begin again."""
    optimizer = keras.optimizers.Adam()
    optimizer.iterations.assign(40)
    return plain(optimizer=optimizer)


def output_without_label():
    x = L.Input((3,), name="x")
    model = keras.Model(x, {"a": L.Dense(1)(x), "b": L.Dense(1)(x)})
    options = {"label": {"a": "a"}, "metrics": {"b": ["mae"]}}
    return Case(model, "sgd", {"a": "mse"}, options)


def numbers_of_classes():
    x = L.Input((3,), name="x")
    metrics = [keras.metrics.F1Score()]
    return Case(keras.Model(x, L.Dense(2, "softmax")(x)), "sgd", "categorical_crossentropy",
                {"metrics": metrics})  # fmt: skip


class Shuffling(keras.metrics.Mean):
    """A metric of rankings, which puts ties in random order."""

    def update_state(self, y, z, sample_weight=None):
        super().update_state(keras.random.shuffle(z))


def ids_computed_from_labels():
    class Pairs(keras.Model):
        def __init__(self):
            super().__init__()
            self.items = L.Embedding(5, 2)

        def call(self, x):
            return self.items(x)

        def compute_loss(self, x, y, y_pred, sample_weight):
            return keras.ops.mean((self.items(4 - y) - y_pred) ** 2)

    model = Pairs()
    model(np.zeros(2, np.int32))
    options = {"inputs": Field("x", "int32"), "label": Field("y", "int32")}
    return Case(model, "adam", None, options)


def global_seed():
    return plain(layer(lambda self, x: keras.random.dropout(x, 0.5)))


def random_without_seed():
    return plain(layer(lambda self, x: x + tf.random.uniform(tf.shape(x))))


def synchronized_norm():
    return plain(L.BatchNormalization(synchronized=True))


def counter():
    class Counter(L.Layer):
        def build(self, shape):
            self.calls = self.add_weight(
                shape=(), dtype="int32", initializer="zeros", trainable=False, name="calls"
            )

        def call(self, x):
            self.calls.assign(self.calls + 1)
            return x

    return plain(Counter())


def python_state():
    def call(self, x):
        self.times.append(1)
        return x * len(self.times)

    return plain(layer(call, times=[]))


def own_gather():
    class Rows(L.Layer):
        def build(self, shape):
            self.table = self.add_weight(shape=(9, 4), name="table")

        def call(self, ids):
            return tf.gather(self.table, ids)

    layers = [L.Input((3,), dtype="int32", name="x"), Rows(), L.Flatten(), L.Dense(1)]
    return Case(keras.Sequential(layers), "adagrad")


def ids_from_weights():
    """The second lookup depends on what the first part of the network chooses."""
    x = L.Input((3,), name="x")
    chosen = keras.ops.argmax(L.Dense(5)(x), axis=-1)
    return Case(keras.Model(x, L.Dense(1)(L.Embedding(5, 2)(chosen))), "adam")


def sparse_input():
    x = L.Input((5,), sparse=True, name="x")
    return Case(keras.Model(x, L.Dense(1)(x)))


def unnamed_input():
    return Case(keras.Sequential([L.Input((3,)), L.Dense(1)]))


def changed_and_trained():
    return plain(L.SpectralNormalization(L.Dense(2)))


def subclassed_without_inputs():
    class Own(keras.Model):
        def __init__(self):
            super().__init__()
            self.out = L.Dense(1)

        def call(self, x):
            return self.out(x)

    model = Own()
    model(np.zeros((2, 3), np.float32))
    return Case(model)


def outputs_without_labels():
    x = L.Input((3,), name="x")
    model = keras.Model(x, {"a": L.Dense(1)(x), "b": L.Dense(1)(x)})
    return Case(model, loss={"a": "mse", "b": "mse"})


def ids_beyond_table():
    table = L.Embedding(5, 2, name="small")
    layers = [L.Input((1,), dtype="int32", name="x"), table, L.Flatten(), L.Dense(1)]
    example = (np.array([[4], [5]]), np.zeros(2))
    return Case(keras.Sequential(layers), options={"example": example})


def largest_error():
    class Largest(keras.metrics.Metric):
        def __init__(self):
            super().__init__(name="largest")
            self.seen = self.add_variable((), "zeros", name="seen")

        def update_state(self, y, z, sample_weight=None):
            z = tf.reshape(z, tf.shape(y))
            self.seen.assign(tf.maximum(self.seen, tf.reduce_max(tf.abs(y - z))))

        def result(self):
            return self.seen

    return plain(options={"metrics": [Largest()]})


def wrong_example():
    return plain(options={"example": (np.zeros((4, 2)), np.zeros(4))})


def no_weights():
    return Case(keras.Sequential([L.Input((3,), name="x"), L.ReLU()]))


def loss_a_row():
    return plain(loss=keras.losses.MeanSquaredError(reduction="none"))


def sum_with_regularizer():
    loss = keras.losses.MeanSquaredError(reduction="sum")
    return plain(L.Dense(2, kernel_regularizer="l2"), loss=loss)


def optimizer_of_tf1():
    return plain(optimizer=tf.compat.v1.train.GradientDescentOptimizer(0.1))


def with_options(**options: Any):
    return lambda: plain(options=options)


def with_optimizer(make):
    return lambda: plain(optimizer=make())


O = keras.optimizers
CASES = {
    "unbuilt": (unbuilt, "not built: call it once on a batch"),
    "raw_variable": (raw_variable, "layer 'odd'.*'scale' is a tf.Variable.*add_weight"),
    "variable_from_outside": (variable_from_outside, "reads the variable 'outside.*add_weight"),
    "keras_two": (lambda: Case(KerasTwo()), "Keras 2 .tf_keras.*Keras 3"),
    "no_model": (lambda: Case(tf.Module()), "a Keras model is wanted, not Module"),
    "no_weights": (no_weights, "no trainable"),
    "py_function": (py_function, "calls Python in '.*odd"),
    "numpy_function": (numpy_function, "calls Python in '.*odd"),
    "trained_in_bfloat16": (trained_in_bfloat16, "trained in bfloat16.*mixed_bfloat16"),
    "trained_in_float64": (trained_in_float64, "trained in float64"),
    "float16_without_scale": (float16_without_scale, "float16.*loss_scale_factor"),
    "stateful_lstm": (stateful_lstm, "stateful=True"),
    "fixed_batch": (fixed_batch, "fixed batch size of 4"),
    "own_train_step": (own("train_step"), "its own train_step"),
    "own_test_step": (own("test_step"), "its own test_step.*metrics="),
    "own_predict_step": (own("predict_step"), "its own predict_step.*the model's call"),
    "own_compute_metrics": (own("compute_metrics"), "its own compute_metrics.*metrics="),
    "trained_optimizer": (trained_optimizer, "Adam has trained 1 steps.*from_config"),
    "resumed_optimizer": (resumed_optimizer, "Adam has trained 40 steps.*from_config"),
    "output_without_label": (output_without_label, "output 'b' has no label of its name.*'a'"),
    "unknown_output": (with_options(metrics={"other": ["mae"]}), "no output 'other', only"),
    "numbers_of_classes": (numbers_of_classes, "'f1_score' gives more.*average='macro'"),
    "shuffling": (lambda: plain(options={"metrics": [Shuffling(name="odd")]}),
                  "metric 'odd' draws random numbers with.*SeedGenerator"),
    "flat_labels": (lambda: plain(options={"metrics": [keras.metrics.F1Score(average="macro")]}),
                    r"'f1_score' cannot be computed of labels \[8\] and predictions \[8, 1\]"),
    "ids_computed_from_labels": (ids_computed_from_labels, "is read by row.*labels as they are"),
    "metrics_without_label": (lambda: plain(L.Dense(2, activity_regularizer="l2"), loss=None,
                                            options={"label": None, "metrics": ["mae"]}),
                              "metrics: there is no label"),
    "global_seed": (global_seed, "global seed.*SeedGenerator"),
    "random_without_seed": (random_without_seed, "numbers in '.*odd.*RandomUniform.*SeedGenerator"),
    "synchronized_norm": (synchronized_norm, "synchronized=True"),
    "counter": (counter, "calls' .int32. is changed by each step"),
    "python_state": (python_state, "loss at step 1.*state in its call"),
    "own_gather": (own_gather, "table' is read by row.*keras.layers.Embedding"),
    "ids_from_weights": (ids_from_weights, "embeddings' is read by row"),
    "sparse_input": (sparse_input, "input 'x' is sparse"),
    "unnamed_input": (unnamed_input, "one without a name: say keras.Input"),
    "changed_and_trained": (changed_and_trained, "kernel' is trained, and changed by its layer"),
    "subclassed_without_inputs": (subclassed_without_inputs, "inputs: .*muster.keras.Field"),
    "outputs_without_labels": (outputs_without_labels, "label: .*several outputs"),
    "ids_beyond_table": (ids_beyond_table, "'small'.*4 to 5.*5 rows|cannot predict"),
    "largest_error": (largest_error, "'largest' cannot be added up"),
    "wrong_example": (wrong_example, r"example: .*shape \[4, 2\]"),
    "unknown_input": (with_options(inputs={"z": "x"}), "no input 'z'"),
    "no_label": (with_options(label=None), "label: the record field"),
    "wide_weight": (with_options(sample_weight=Field("w", "float32", [2])), "cannot be computed"),
    "counted_weight": (with_options(sample_weight=Field("w", "int64")), "field of floats"),
    "no_loss": (lambda: plain(loss=None), "loss: there is none.*add_loss"),
    "loss_a_row": (loss_a_row, "no number to minimise"),
    "sum_with_regularizer": (sum_with_regularizer, "each replica would add"),
    "moving_average": (with_optimizer(lambda: O.SGD(use_ema=True)), "use_ema"),
    "accumulation": (with_optimizer(lambda: O.SGD(gradient_accumulation_steps=2)), "larger batch"),
    "changing_scale": (with_optimizer(lambda: O.LossScaleOptimizer(O.SGD())), "LossScaleOptimizer"),
    "rate_by_function": (with_optimizer(lambda: O.SGD(lambda: 0.1)), "rate that is a function"),
    "optimizer_of_tf1": (optimizer_of_tf1, "Could not interpret|none of Keras 3"),
}  # fmt: skip
