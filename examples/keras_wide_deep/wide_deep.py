"""Who earns more than 50,000: wide & deep over words and numbers, exported for muster.

    python examples/keras_wide_deep/wide_deep.py exported data [adult.csv]

Writes the rows of the census table (UCI's "Adult", with a header), or without it made-up ones like
them, as TFRecord files: data/part-0 to data/part-4.
"""

import csv
import os
import random
import sys

import keras
import tensorflow as tf

import muster.keras

WORDS = {
    "relationship": ["Husband", "Wife", "Not-in-family", "Own-child", "Unmarried"],
    "workclass": ["Private", "Self-emp-not-inc", "Local-gov", "State-gov", "Federal-gov"],
    "education": ["HS-grad", "Some-college", "Bachelors", "Masters", "Doctorate", "11th"],
    "occupation": ["Craft-repair", "Exec-managerial", "Sales", "Adm-clerical", "Tech-support"],
}
# Mean and deviation of the census table.
NUMBERS = {
    "age": (38.6, 13.7), "education-num": (10.1, 2.6), "hours-per-week": (40.4, 12.4),
    "capital-gain": (1078, 7385),
}  # fmt: skip
PARTS, BUCKETS = 5, 1000


def made_up(count):
    chance = random.Random(1)
    for _ in range(count):
        row = {name: chance.choice(words) for name, words in WORDS.items()}
        row.update({name: max(1, round(chance.gauss(*at))) for name, at in NUMBERS.items()})
        rich = row["age"] / 20 + row["education-num"] / 3 + 2 * (row["occupation"] == "Sales")
        yield {**row, "income-per-year": ">50K" if rich + chance.gauss(0, 1) > 7 else "<=50K"}


def example(row):
    Feature, Features = tf.train.Feature, tf.train.Features
    rich = tf.train.Int64List(value=[int(row["income-per-year"] == ">50K")])
    features = {"rich": Feature(int64_list=rich)}
    for name in WORDS:
        features[name] = Feature(bytes_list=tf.train.BytesList(value=[row[name].encode()]))
    for name in NUMBERS:
        features[name] = Feature(float_list=tf.train.FloatList(value=[float(row[name])]))
    return tf.train.Example(features=Features(feature=features)).SerializeToString()


def build():
    layers = keras.layers
    words = {name: layers.Input((), dtype="string", name=name) for name in WORDS}
    numbers = {name: layers.Input((1,), name=name) for name in NUMBERS}
    ids = [layers.Hashing(BUCKETS)(value) for value in words.values()]
    crossed = layers.HashedCrossing(BUCKETS)((words["education"], words["occupation"]))
    wide = [layers.Embedding(BUCKETS, 1)(each) for each in [*ids, crossed]]
    deep = [layers.Embedding(BUCKETS, 8)(each) for each in ids]
    for name, (mean, deviation) in NUMBERS.items():
        deep.append(layers.Normalization(mean=mean, variance=deviation**2)(numbers[name]))
    x = layers.Concatenate()(deep)
    for units in (100, 75, 50, 25):
        x = layers.Dense(units, activation="relu")(x)
    rich = layers.Activation("sigmoid", name="rich")(layers.Add()([layers.Dense(1)(x), *wide]))
    return keras.Model([*words.values(), *numbers.values()], rich, name="wide_deep")


if __name__ == "__main__":
    exported, data, *table = sys.argv[1:]
    os.makedirs(data, exist_ok=True)
    rows = [*(csv.DictReader(open(table[0], newline="")) if table else made_up(20000))]
    for part in range(PARTS):
        with tf.io.TFRecordWriter(f"{data}/part-{part}") as file:
            for row in rows[part::PARTS]:
                file.write(example(row))
    muster.keras.export(build(), keras.optimizers.Adagrad(0.05), "binary_crossentropy", exported,
                        label="rich", metrics=["accuracy", "AUC"])  # fmt: skip
