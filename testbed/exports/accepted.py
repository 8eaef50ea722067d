"""Keras models that muster.keras.export accepts: each function returns a Case."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from muster.keras import Field
from testbed.exports.case import Case
from testbed.exports.own_losses import (
    in_batch_softmax,
    only_added_losses,
    part_of_a_loss,
    regularized_embedding,
    retrieval,
    summed_softmax,
    weighted_steps,
)
from testbed.exports.preprocessing import (
    adapted_text,
    feature_space,
    lookup_layers,
    words_that_must_be_known,
)

L = keras.layers


class WideDeep(keras.Model):
    """Has tables for columns of one input, so that ids are computed."""

    def __init__(self, columns=4, rows=50, normalized=False):
        super().__init__()
        self.deep = [L.Embedding(rows, 4, name=f"deep{i}") for i in range(columns)]
        self.wide = [L.Embedding(rows, 1, name=f"wide{i}") for i in range(columns)]
        self.hidden = [L.Dense(n, activation="relu") for n in (16, 8)]
        self.norm = L.BatchNormalization() if normalized else None
        self.drop = L.Dropout(0.2, seed=3) if normalized else None
        self.out = L.Dense(1)

    def call(self, ids, training=False):
        x = tf.concat([table(ids[:, i]) for i, table in enumerate(self.deep)], 1)
        wide = tf.add_n([table(ids[:, i]) for i, table in enumerate(self.wide)])
        if self.norm is not None:
            x = self.drop(self.norm(x, training=training), training=training)
        for layer in self.hidden:
            x = layer(x)
        return self.out(x) + wide


def wide_deep(optimizer: Any = "adagrad", normalized=False) -> Case:
    model = WideDeep(normalized=normalized)
    model(np.zeros((2, 4), np.int32))
    random = np.random.default_rng(3)
    example = (random.integers(0, 6, (40, 4)), random.integers(0, 2, 40))
    return Case(
        model,
        optimizer,
        keras.losses.BinaryCrossentropy(from_logits=True),
        {"inputs": Field("ids", "int64", [4]), "label": "clicked", "example": example},
    )


def wide_deep_normalized() -> Case:
    return wide_deep(normalized=True)


def ids_as_inputs() -> Case:
    """Three inputs of several types; the ids are a list, with a mask."""
    item, age = L.Input((), dtype="int64", name="item"), L.Input((1,), name="age")
    words = L.Input((None,), dtype="int32", name="words")
    pooled = L.GlobalAveragePooling1D()(L.Embedding(60, 4, mask_zero=True)(words))
    x = L.Concatenate()([L.Embedding(30, 8)(item), pooled, age])
    model = keras.Model([item, words, age], L.Dense(1, activation="sigmoid")(x))
    options = {"metrics": ["accuracy", "AUC"]}
    return Case(model, keras.optimizers.Adam(0.01), "binary_crossentropy", options)


def shared_embedding() -> Case:
    a, b = L.Input((), dtype="int32", name="a"), L.Input((3,), dtype="int32", name="b")
    table = L.Embedding(20, 4)
    x = L.Concatenate()([table(a), L.Flatten()(table(b))])
    return Case(keras.Model([a, b], L.Dense(1)(x)), keras.optimizers.SGD(0.1, momentum=0.9))


def frozen_embedding() -> Case:
    table = L.Embedding(20, 4, trainable=False)
    layers = [L.Input((3,), dtype="int32", name="x"), table, L.Flatten(), L.Dense(2, "softmax")]
    return Case(keras.Sequential(layers), "adam", "sparse_categorical_crossentropy")


def tied_embedding() -> Case:
    """The table is also read as a whole, so that it counts as dense."""

    class Tied(keras.Model):
        def __init__(self):
            super().__init__()
            self.table = L.Embedding(12, 4)

        def call(self, ids):
            x = tf.reduce_mean(self.table(ids), 1)
            return tf.matmul(x, self.table.embeddings, transpose_b=True)

    model = Tied()
    model(np.zeros((2, 3), np.int32))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    return Case(model, "adam", loss, {"inputs": Field("ids", "int32", [3])})


def text_lstm() -> Case:
    layers = [
        L.Input((None,), dtype="int32", name="words"),
        L.Embedding(50, 8, mask_zero=True),
        L.LSTM(8, dropout=0.1, recurrent_dropout=0.1),
        L.Dense(3, activation="softmax"),
    ]
    return Case(
        keras.Sequential(layers), "rmsprop", "sparse_categorical_crossentropy",
        {"metrics": ["accuracy"]},
    )  # fmt: skip


def text_conv() -> Case:
    layers = [
        L.Input((12,), dtype="int32", name="x"),
        L.Embedding(50, 8),
        L.Conv1D(6, 3, activation="relu"),
        L.GlobalMaxPooling1D(),
        L.Dense(1),
    ]
    loss = keras.losses.BinaryCrossentropy(from_logits=True)
    return Case(keras.Sequential(layers), "ftrl", loss)


def bidirectional_gru() -> Case:
    layers = [L.Input((6, 3), name="x"), L.Bidirectional(L.GRU(4)), L.Dense(1)]
    return Case(keras.Sequential(layers), "adam", "huber")


def cnn() -> Case:
    layers = [
        L.Input((14, 14, 1), name="x"),
        L.Conv2D(4, 3),
        L.BatchNormalization(),
        L.ReLU(),
        L.MaxPooling2D(),
        L.Flatten(),
        L.Dropout(0.3),
        L.Dense(10, kernel_regularizer="l2"),
    ]
    return Case(
        keras.Sequential(layers),
        keras.optimizers.Adam(keras.optimizers.schedules.ExponentialDecay(0.01, 100, 0.9)),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        {"metrics": ["accuracy"], "sample_weight": "weight"},
    )


def image_from_bytes() -> Case:
    image = L.Input((6, 6, 3), name="image")
    x = L.Dense(1)(L.Flatten()(L.Rescaling(1 / 255)(image)))
    inputs = {"image": Field("jpg", "uint8", [6, 6, 3], decode="png")}
    return Case(keras.Model(image, x), options={"inputs": inputs})


def raw_bytes() -> Case:
    layers = [L.Input((8,), name="x"), L.Dense(1)]
    inputs = {"x": Field("x", "float32", [8], decode="raw")}
    return Case(keras.Sequential(layers), options={"inputs": inputs})


def two_outputs() -> Case:
    x = L.Input((5,), name="x")
    h = L.Dense(8, activation="relu")(x)
    outputs = {"click": L.Dense(1, activation="sigmoid")(h), "price": L.Dense(2)(h)}
    return Case(
        keras.Model(x, outputs),
        keras.optimizers.AdamW(0.01, weight_decay=0.01),
        {"click": "binary_crossentropy", "price": "mae"},
        {
            "label": {"click": "clicked", "price": "price"},
            "loss_weights": {"click": 1.0, "price": 0.5},
            "metrics": {"click": ["accuracy"], "price": ["mse"]},
        },
    )


def custom_loss() -> Case:
    def pinball(y, z):
        y = tf.reshape(y, tf.shape(z))
        return tf.reduce_mean(tf.maximum(0.9 * (y - z), 0.1 * (z - y)), -1)

    layers = [L.Input((3,), name="x"), L.Dense(4, "tanh"), L.Dense(1)]
    return Case(keras.Sequential(layers), keras.optimizers.SGD(0.1, clipnorm=0.1), pinball)


def loss_as_sum() -> Case:
    loss = keras.losses.MeanSquaredError(reduction="sum")
    return Case(keras.Sequential([L.Input((3,), name="x"), L.Dense(1)]), "sgd", loss)


def added_losses() -> Case:
    layers = [L.Input((3,), name="x"), L.Dense(4, activity_regularizer="l2"), L.Dense(1)]
    optimizer = keras.optimizers.RMSprop(0.01, momentum=0.5, centered=True)
    return Case(keras.Sequential(layers), optimizer)


def bfloat16() -> Case:
    with_policy = {"dtype": "mixed_bfloat16"}
    layers = [
        L.Input((3,), dtype="int32", name="x"),
        L.Embedding(20, 8, **with_policy),
        L.Flatten(**with_policy),
        L.Dense(8, "relu", **with_policy),
        L.Dense(1, dtype="float32"),
    ]
    return Case(keras.Sequential(layers), "adam")


def bfloat16_to_the_end() -> Case:
    """Its predictions are written as float32."""
    layers = [L.Input((3,), name="x"), *(L.Dense(n, dtype="mixed_bfloat16") for n in (8, 1))]
    return Case(keras.Sequential(layers), "adam")


def float16_scaled() -> Case:
    layers = [L.Input((4,), name="x"), L.Dense(8, "relu", dtype="mixed_float16")]
    model = keras.Sequential([*layers, L.Dense(1, dtype="float32")])
    return Case(model, keras.optimizers.SGD(0.1, loss_scale_factor=1024))


def attention() -> Case:
    """A block of a transformer, with embeddings of positions, which no input provides."""

    class Positions(L.Layer):
        def __init__(self, **options):
            super().__init__(**options)
            self.table = L.Embedding(6, 8)

        def build(self, shape):
            self.table.build()

        def call(self, x):
            return x + self.table(keras.ops.arange(x.shape[1]))

    words = L.Input((6,), dtype="int32", name="words")
    x = Positions()(L.Embedding(30, 8)(words))
    x = L.LayerNormalization()(x + L.MultiHeadAttention(2, 4, dropout=0.1)(x, x))
    model = keras.Model(words, L.Dense(2)(L.GlobalAveragePooling1D()(x)))
    return Case(model, keras.optimizers.Adam(0.001, global_clipnorm=0.01))


def sequence_labels() -> Case:
    """A label at each step, masked: the mean is over the steps that exist."""
    words = L.Input((None,), dtype="int32", name="words")
    x = L.LSTM(4, return_sequences=True)(L.Embedding(20, 4, mask_zero=True)(words))
    model = keras.Model(words, L.Dense(3, activation="softmax")(x))
    return Case(model, "adam", "sparse_categorical_crossentropy")


def own_schedule() -> Case:
    class Steps(keras.optimizers.schedules.LearningRateSchedule):
        def __call__(self, step):
            return 0.1 / (1.0 + tf.cast(step, tf.float32)) ** 0.5

        def get_config(self):
            return {}

    layers = [L.Input((3,), name="x"), L.Dense(1)]
    return Case(keras.Sequential(layers), keras.optimizers.SGD(Steps(), clipvalue=0.01))


def own_optimizer() -> Case:
    """Nadam has no rule in Muster; the model has a table whose ids repeat."""
    layers = [L.Input((4,), dtype="int32", name="x"), L.Embedding(3, 4), L.Flatten(), L.Dense(1)]
    schedule = keras.optimizers.schedules.CosineDecay(0.01, 10)
    return Case(keras.Sequential(layers), keras.optimizers.Nadam(schedule))


def constrained() -> Case:
    layers = [L.Input((3,), name="x"), L.Dense(4, kernel_constraint="max_norm"), L.Dense(1)]
    return Case(keras.Sequential(layers), "lion")


def by_name_of_weights() -> Case:
    """Muon treats weights by their names and shapes."""
    layers = [L.Input((3,), dtype="int32", name="x"), L.Embedding(5, 4), L.Flatten(), L.Dense(2)]
    return Case(keras.Sequential(layers), keras.optimizers.Muon(0.01))


def unnamed_inputs() -> Case:
    a, b = L.Input((2,)), L.Input((), dtype="int32")
    model = keras.Model([a, b], L.Dense(1)(L.Concatenate()([a, L.Embedding(4, 2)(b)])))
    return Case(model, options={"inputs": ["size", Field("kind", "int64")]})


def unused_weight() -> Case:
    class Unused(keras.Model):
        def __init__(self):
            super().__init__()
            self.out, self.other = L.Dense(1), L.Dense(1)

        def call(self, inputs):
            self.other(inputs["x"])
            return {"y": self.out(inputs["x"])}

    model = Unused()
    model({"x": np.zeros((2, 3), np.float32)})
    options = {"inputs": {"x": Field("features", "float32", [3])}, "label": {"y": "y"}}
    return Case(model, "adam", {"y": "mse"}, options)


def own_gather() -> Case:
    """Looks up rows without an Embedding layer: only possible if repeated rows may be added up."""

    class Rows(L.Layer):
        def build(self, shape):
            self.table = self.add_weight(shape=(9, 4), name="table")

        def call(self, ids):
            return tf.gather(self.table, ids)

    layers = [L.Input((3,), dtype="int32", name="x"), Rows(), L.Flatten(), L.Dense(1)]
    return Case(keras.Sequential(layers), keras.optimizers.SGD(0.1, momentum=0.9))


CASES = {
    f.__name__: f
    for f in (
        wide_deep, wide_deep_normalized, ids_as_inputs, shared_embedding, frozen_embedding,
        tied_embedding, text_lstm, text_conv, bidirectional_gru, cnn, image_from_bytes, raw_bytes,
        two_outputs, custom_loss, loss_as_sum, added_losses, bfloat16, float16_scaled,
        bfloat16_to_the_end, words_that_must_be_known, regularized_embedding, retrieval,
        in_batch_softmax, summed_softmax, part_of_a_loss, only_added_losses, weighted_steps,
        lookup_layers, adapted_text, feature_space, attention, sequence_labels, own_schedule, own_optimizer,
        by_name_of_weights, unnamed_inputs, constrained, unused_weight, own_gather,
    )
}  # fmt: skip

# The number of tables of each model; models that are not listed have none.
TABLES = {
    "wide_deep": 8, "wide_deep_normalized": 8, "ids_as_inputs": 2, "shared_embedding": 1,
    "frozen_embedding": 1, "text_lstm": 1, "text_conv": 1, "bfloat16": 1, "lookup_layers": 2,
    "adapted_text": 1, "attention": 2, "sequence_labels": 1, "own_optimizer": 1,
    "words_that_must_be_known": 1, "retrieval": 2, "in_batch_softmax": 1, "summed_softmax": 1,
    "weighted_steps": 1,
    "by_name_of_weights": 1, "unnamed_inputs": 1,
}  # fmt: skip
