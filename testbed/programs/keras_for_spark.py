"""A Keras model for the tests of muster.spark.

keras_for_spark.py export FOLDER              exports it
keras_for_spark.py predict MODEL_DIR IN OUT   what Keras predicts of rows, in JSON, with the trained weights
"""

import json
import sys

import keras
import tensorflow as tf

import muster.keras

WORDS = ["a", "b", "c"]


def model():
    layers = keras.layers
    keras.utils.set_random_seed(3)
    xs = layers.Input((2,), name="xs")
    word = layers.Input((), dtype="string", name="word")
    number = layers.Input((), dtype="int64", name="number")
    both = layers.Concatenate()([
        layers.Dense(4, activation="relu")(xs),
        layers.Embedding(4, 3)(layers.StringLookup(vocabulary=WORDS)(word)),
        layers.Embedding(10, 2)(number),
    ])  # fmt: skip
    score = layers.Dense(1, activation="sigmoid", name="score")(both)
    return keras.Model({"xs": xs, "word": word, "number": number}, {"score": score, "hidden": both})


def main():
    if sys.argv[1] == "export":
        losses = {"score": "binary_crossentropy", "hidden": None}
        label = {"score": muster.keras.Field("y", "float32")}
        muster.keras.export(model(), keras.optimizers.Adam(0.05), losses, sys.argv[2], label=label)
        return
    loaded = model()
    muster.keras.load(sys.argv[2], loaded)
    rows = json.load(open(sys.argv[3]))
    given = {name: tf.constant([row[name] for row in rows]) for name in ("xs", "word", "number")}
    found = {name: values.numpy().tolist() for name, values in loaded(given).items()}
    json.dump(found, open(sys.argv[4], "w"))


if __name__ == "__main__":
    main()
