"""Which module of Python's standard library is a line of code from? An LSTM, exported for muster.

    python examples/text_classifier/text_classifier.py exported data
"""

import importlib
import inspect
import os
import random
import re
import sys

import keras
import tensorflow as tf

import muster.keras

MODULES = ["argparse", "asyncio.base_events", "decimal", "email.message", "inspect", "tarfile"]
WORDS, VOCABULARY, TEST_PART = 20, 4000, 5


def lines():
    """(words of a line, number of its module), in a random order that is always the same."""
    found = []
    for number, name in enumerate(MODULES):
        source = inspect.getsource(importlib.import_module(name))
        for line in dict.fromkeys(source.splitlines()):
            words = re.findall(r"\w+|[^\w\s]", line)
            if len(words) >= 4:
                found.append((" ".join(words), number))
    random.Random(1).shuffle(found)
    return found


def write_records(rows, path):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with tf.io.TFRecordWriter(path) as file:
        for text, number in rows:
            feature = {
                "text": tf.train.Feature(bytes_list=tf.train.BytesList(value=[text.encode()])),
                "module": tf.train.Feature(int64_list=tf.train.Int64List(value=[number])),
            }
            example = tf.train.Example(features=tf.train.Features(feature=feature))
            file.write(example.SerializeToString())


def build(texts):
    layers = keras.layers
    vectorize = layers.TextVectorization(
        VOCABULARY, standardize="lower", output_sequence_length=WORDS
    )
    vectorize.adapt(texts)
    text = layers.Input((), dtype="string", name="text")
    x = layers.Embedding(VOCABULARY, 32, mask_zero=True)(vectorize(text))
    x = layers.LSTM(32)(layers.SpatialDropout1D(0.2)(x))
    return keras.Model(text, layers.Dense(len(MODULES), activation="softmax", name="module")(x))


if __name__ == "__main__":
    exported, data = sys.argv[1:]
    rows = lines()
    train = [row for i, row in enumerate(rows) if i % TEST_PART]
    for part in range(3):
        write_records(train[part::3], f"{data}/train/part-{part}-of-3")
    write_records(rows[::TEST_PART], f"{data}/test/part-0-of-1")
    muster.keras.export(
        build([text for text, _ in train]),
        keras.optimizers.Adam(0.003), "sparse_categorical_crossentropy", exported,
        label="module", metrics=["accuracy"],
    )  # fmt: skip
