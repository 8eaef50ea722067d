"""Models that muster.keras.export accepts, with layers that turn words into numbers, and scale
numbers."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

from testbed.exports.case import Case

L = keras.layers


def lookup_layers() -> Case:
    """Words, integers, hashes and bins; some are read from tables, some become vectors."""
    word = L.Input((), dtype="string", name="word")
    number = L.Input((), dtype="int64", name="number")
    value = L.Input((1,), name="value")
    by_word = L.Embedding(4, 3)(L.StringLookup(vocabulary=["a", "b"])(word))
    by_number = L.IntegerLookup(vocabulary=[1, 5, 7], output_mode="one_hot")(number)
    hashed = L.Embedding(8, 3)(L.Hashing(8)(word))
    norm = L.Normalization(mean=1.5, variance=2.0)(value)
    bins = L.CategoryEncoding(3, output_mode="one_hot")(L.Discretization([-1.0, 1.0])(value))
    x = L.Concatenate()([by_word, by_number, hashed, norm, bins])
    return Case(keras.Model([word, number, value], L.Dense(1)(x)), "adagrad")


def adapted_text() -> Case:
    vectorize = L.TextVectorization(max_tokens=20, output_sequence_length=4)
    vectorize.adapt(["the cat sat", "the dog ran"])
    normalize = L.Normalization()
    normalize.adapt(np.arange(10, dtype=np.float32).reshape(5, 2))
    text, x = L.Input((), dtype="string", name="text"), L.Input((2,), name="x")
    words = L.GlobalAveragePooling1D()(L.Embedding(20, 4, mask_zero=True)(vectorize(text)))
    model = keras.Model([text, x], L.Dense(1)(L.Concatenate()([words, normalize(x)])))
    random = np.random.default_rng(5)
    texts = np.array([b"The cat", b"the dog RAN", b"mat", b"a cat sat on the mat"])
    example = ([texts, random.normal(size=(4, 2))], random.normal(size=4))
    return Case(model, "adam", "mse", {"example": example})


def feature_space() -> Case:
    """Has columns of keras.utils.FeatureSpace, and layers that are not trained."""
    space = keras.utils.FeatureSpace
    features = space(
        {"age": space.float_normalized(), "city": space.string_categorical(),
         "kind": space.integer_categorical()},
        crosses=[("city", "kind")], crossing_dim=8,
    )  # fmt: skip
    rows = {"age": [20.0, 30.0, 70.0], "city": ["a", "b", "a"], "kind": [1, 2, 2]}
    features.adapt(tf.data.Dataset.from_tensor_slices(rows))
    frozen = keras.Sequential([L.Dense(6, "relu"), L.BatchNormalization()], name="frozen")
    encoded = features.get_encoded_features()
    out = L.Dense(1, activation="sigmoid")(frozen(encoded, training=False))
    frozen.trainable = False
    return Case(keras.Model(features.get_inputs(), out), "adam", "binary_crossentropy")


def words_that_must_be_known() -> Case:
    """Has a lookup without an out-of-vocabulary index, and words weighted by how rare they are."""
    kind, text = (L.Input((), dtype="string", name=name) for name in ("kind", "text"))
    weigh = L.TextVectorization(max_tokens=8, output_mode="tf_idf")
    weigh.adapt(["the cat sat", "the dog ran"])
    known = L.StringLookup(vocabulary=["a", "b", "zz", "the cat"], num_oov_indices=0)
    x = L.Concatenate()([L.Embedding(4, 2)(known(kind)), weigh(text)])
    return Case(keras.Model([kind, text], L.Dense(1)(x)), "adam")
