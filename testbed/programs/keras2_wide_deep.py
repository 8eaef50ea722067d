"""Converts a WideDeepModel of Keras 2 to a model folder, and writes its predictions before and
after an epoch.

keras2_wide_deep.py convert FOLDER [SOURCE]    # SOURCE: with the article's model.py
keras2_wide_deep.py refuse                     # prints the messages for models that do not fit

FOLDER gets rows.tfrecord, model (the model folder), before.npy and after.npy.
"""

from __future__ import annotations

import json
import pathlib
import sys
from typing import Any, Callable, Dict

import muster.keras
import numpy as np
import tensorflow as tf

ROWS, BATCH = 96, 32
TYPES = {"Pclass": tf.int64, "Sex": tf.string, "Age": tf.int64, "SibSp": tf.int64,
         "Parch": tf.int64, "Ticket": tf.string, "Fare": tf.float32, "Embarked": tf.string}  # fmt: skip
fc = tf.feature_column
layers = tf.keras.layers
optimizers = getattr(tf.keras.optimizers, "legacy", tf.keras.optimizers)


def make_rows() -> Dict[str, Any]:
    random = np.random.default_rng(5)
    return {
        "Pclass": random.integers(0, 4, ROWS),  # 0 is not in the vocabulary
        "Sex": random.choice(["male", "female", "?"], ROWS),
        "Age": random.integers(-1, 100, ROWS),
        "SibSp": random.integers(0, 5, ROWS),
        "Parch": random.integers(0, 5, ROWS),
        "Ticket": random.choice([f"A {i}" for i in range(30)], ROWS),
        "Fare": random.gamma(2, 20, ROWS).astype(np.float32),
        "Embarked": random.choice(["C", "Q", "S", ""], ROWS),
        "Survived": random.integers(0, 2, ROWS),
    }


def write(rows: Dict[str, Any], path: pathlib.Path) -> None:
    def feature(value: Any) -> Any:
        if isinstance(value, str):
            return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value.encode()]))
        if isinstance(value, np.floating):
            return tf.train.Feature(float_list=tf.train.FloatList(value=[value]))
        return tf.train.Feature(int64_list=tf.train.Int64List(value=[int(value)]))

    with tf.io.TFRecordWriter(str(path)) as file:
        for i in range(ROWS):
            features = {name: feature(values[i]) for name, values in rows.items()}
            example = tf.train.Example(features=tf.train.Features(feature=features))
            file.write(example.SerializeToString())


def inputs() -> Dict[str, Any]:
    return {name: tf.keras.Input((), name=name, dtype=dtype) for name, dtype in TYPES.items()}


def part(columns: Any, *after: Any, dense: Any = None) -> Any:
    given = inputs()
    output = layers.DenseFeatures(columns)(given)
    for layer in after:
        output = layer(output)
    last = dense or layers.Dense(1)
    return tf.keras.Model(list(given.values()), [last(output)])


def wide_and_deep(
    linear: Any = None, deep: Any = None, activation: str = "sigmoid", loss: Any = "mse",
    trained_by: Any = None,
) -> Any:  # fmt: skip
    fare = fc.numeric_column("Fare")
    model = tf.keras.experimental.WideDeepModel(
        linear or part([fare]), deep or part([fare], layers.Dense(3, "relu")), activation=activation
    )
    if trained_by != "none":
        given = trained_by or [optimizers.Ftrl(), optimizers.Adagrad()]
        model.compile(given, loss if loss != "mse" else "binary_crossentropy")
    return model


def of_all_layers() -> Any:
    """Returns a model with the article's columns, and with every layer that fits."""
    age = fc.bucketized_column(fc.numeric_column("Age"), [10, 20, 40])
    sex = fc.categorical_column_with_vocabulary_list("Sex", ["male", "female"])
    ticket = fc.categorical_column_with_hash_bucket("Ticket", 10)
    crossed = fc.crossed_column([age, "Sex"], 10)
    numbers = [fc.numeric_column(name) for name in ("SibSp", "Parch", "Fare")]
    linear = [age, *(fc.indicator_column(one) for one in (sex, ticket, crossed)), numbers[0]]
    deep = [*numbers, age, *(fc.embedding_column(one, 3) for one in (sex, ticket, crossed))]
    model = tf.keras.experimental.WideDeepModel(
        part(linear),
        part(deep, layers.BatchNormalization(), layers.Dense(8, "tanh"), layers.Dense(4, "tanh")),
        activation="sigmoid",
    )
    model.compile([optimizers.RMSprop(0.01, momentum=0.5), optimizers.Adam(0.01)],
                  tf.keras.losses.BinaryCrossentropy())  # fmt: skip
    return model


def articles(source: str) -> Any:
    sys.path.insert(0, source)
    from model import build_model

    model = build_model()
    if optimizers is not tf.keras.optimizers:  # 2.11 or later
        given = [optimizers.Ftrl(l1_regularization_strength=0.5), optimizers.Adagrad()]
        model.compile(given, tf.keras.losses.BinaryCrossentropy())
    return model


def convert(folder: pathlib.Path, source: str) -> None:
    tf.random.set_seed(3)
    rows = make_rows()
    write(rows, folder / "rows.tfrecord")
    model = articles(source) if source else of_all_layers()
    label = rows.pop("Survived")
    data = {name: tf.constant(values, TYPES[name]) for name, values in rows.items()}

    def train() -> None:
        model.fit(data, label, BATCH, shuffle=False, verbose=0)

    train()
    muster.keras.to_model_file(model, folder / "model", "Survived", BATCH)
    np.save(folder / "before.npy", model.predict(data))
    train()
    np.save(folder / "after.npy", model.predict(data))


def refuse() -> None:
    fare = fc.numeric_column("Fare")
    town = fc.categorical_column_with_vocabulary_list("Embarked", ["C", "S"])

    def deep(*after: Any, dense: Any = None) -> Any:
        return wide_and_deep(deep=part([fare], *after, dense=dense))

    cases: Dict[str, Callable[[], Any]] = {
        "another model": lambda: tf.keras.Sequential([layers.Dense(1)]),
        "not compiled": lambda: wide_and_deep(trained_by="none"),
        "embedding": lambda: wide_and_deep(linear=part([fc.embedding_column(town, 2)])),
        "deep linear": lambda: wide_and_deep(linear=part([fare], layers.Dense(2))),
        "layer": lambda: deep(layers.LayerNormalization()),
        "momentum": lambda: deep(layers.BatchNormalization(momentum=0.9)),
        "regularizer": lambda: deep(layers.Dense(3, "relu", kernel_regularizer="l2")),
        "bias": lambda: deep(layers.Dense(3, "relu", use_bias=False)),
        "last": lambda: deep(dense=layers.Dense(1, "relu")),
        "mixed": lambda: deep(layers.Dense(3, "relu"), layers.Dense(3, "tanh")),
        "activation": lambda: deep(layers.Dense(3, "elu")),
        "loss": lambda: wide_and_deep(loss="hinge"),
        "no activation": lambda: wide_and_deep(activation=None),
        "optimizer": lambda: wide_and_deep(trained_by=[optimizers.Ftrl(), optimizers.Nadam()]),
        "initializer": lambda: wide_and_deep(
            deep=part([fc.embedding_column(town, 2, initializer=tf.keras.initializers.Zeros())])
        ),
    }
    said = {}
    for name, make in cases.items():
        try:
            muster.keras.to_model_file(make(), "nowhere")
            said[name] = "accepted"
        except ValueError as error:
            said[name] = str(error)
    assert not pathlib.Path("nowhere").exists()
    print(json.dumps(said))


if __name__ == "__main__":
    if sys.argv[1] == "refuse":
        refuse()
    else:
        convert(pathlib.Path(sys.argv[2]), "".join(sys.argv[3:]))
