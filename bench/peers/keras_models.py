"""The Keras models of `bench/run keras`, their data, and their export for muster.

    keras_models.py records KIND FOLDER      made-up rows: FOLDER/train, FOLDER/test
    keras_models.py export KIND FOLDER
"""

import sys

import keras
import numpy as np
import tensorflow as tf

LISTS, VOCABULARY, COLUMNS, UNITS = 8, 1000, 8, (100, 75, 50, 25)
TRAIN_ROWS, TEST_ROWS = 50_000, 10_000
FIELDS = {"label": tf.io.FixedLenFeature([], tf.int64)}


class WideDeep:
    """Eight ids a row, each with a table of its own for the wide and for the deep side: as eight
    columns, or (`listed`) as one list, from which the model takes them."""

    def __init__(self, listed):
        self.listed = listed
        names = ["ids"] if listed else [f"c{i}" for i in range(LISTS)]
        shape = [LISTS] if listed else []
        self.fields = {name: tf.io.FixedLenFeature(shape, tf.int64) for name in names}
        self.loss = keras.losses.BinaryCrossentropy(from_logits=True)

    def model(self):
        layers = keras.layers
        inputs = {n: layers.Input(f.shape, dtype="int64", name=n) for n, f in self.fields.items()}
        ids = [*inputs.values()]
        if self.listed:
            ids = [inputs["ids"][:, i] for i in range(LISTS)]
        deep = [layers.Embedding(VOCABULARY, COLUMNS)(each) for each in ids]
        wide = [layers.Embedding(VOCABULARY, 1, embeddings_initializer="zeros")(each) for each in ids]
        x = layers.Concatenate()(deep)
        for units in UNITS:
            x = layers.Dense(units, activation="relu")(x)
        return keras.Model(inputs, layers.Add(name="logits")([layers.Dense(1)(x), *wide]))

    def optimizer(self):
        return keras.optimizers.Adagrad(0.05)

    def parsed(self, examples):
        found = tf.io.parse_example(examples, {**self.fields, **FIELDS})
        label = tf.cast(found.pop("label"), tf.float32)[:, None]
        return found, label

    def export_options(self):
        return {}

    def write(self, folder):
        random = np.random.default_rng(1)
        weights = random.normal(size=(LISTS, VOCABULARY))
        for name, rows in (("train", TRAIN_ROWS), ("test", TEST_ROWS)):
            # Some come often, as words do, so that something is learnt in few steps.
            ids = (VOCABULARY * random.random((rows, LISTS)) ** 3).astype(int)
            labels = weights[np.arange(LISTS), ids].sum(1) > 0
            with tf.io.TFRecordWriter(f"{folder}/{name}") as file:
                for row, label in zip(ids, labels):
                    values = {"ids": row} if self.listed else {f"c{i}": [v] for i, v in enumerate(row)}
                    file.write(example({**values, "label": [int(label)]}))


class Digits:
    """MNIST, from the records of `muster records from-idx`."""

    fields = {"image": tf.io.FixedLenFeature([], tf.string)}
    loss = keras.losses.SparseCategoricalCrossentropy()

    def model(self):
        layers = keras.layers
        return keras.Sequential(
            [
                layers.Input((28, 28, 1), dtype="uint8", name="image"),
                layers.Rescaling(1 / 255),
                layers.Conv2D(32, 3, activation="relu"),
                layers.MaxPooling2D(),
                layers.Conv2D(64, 3, activation="relu"),
                layers.MaxPooling2D(),
                layers.Flatten(),
                layers.Dense(128, activation="relu"),
                layers.Dense(10, activation="softmax"),
            ]
        )

    def optimizer(self):
        return keras.optimizers.Adam(0.001)

    def parsed(self, examples):
        found = tf.io.parse_example(examples, {**self.fields, **FIELDS})
        pixels = tf.io.decode_raw(found["image"], tf.uint8)
        return tf.reshape(pixels, [-1, 28, 28, 1]), found["label"]

    def export_options(self):
        import muster.keras

        return {"inputs": {"image": muster.keras.Field("image", "uint8", [28, 28, 1], decode="raw")}}


class DigitsWide(Digits):
    """The same digits, by layers that are worth a GPU: 4.1 million weights."""

    def model(self):
        layers = keras.layers
        return keras.Sequential(
            [
                layers.Input((28, 28, 1), dtype="uint8", name="image"),
                layers.Rescaling(1 / 255),
                *(layers.Conv2D(128, 3, padding="same", activation="relu") for _ in range(2)),
                layers.MaxPooling2D(),
                *(layers.Conv2D(256, 3, padding="same", activation="relu") for _ in range(2)),
                layers.MaxPooling2D(),
                layers.Flatten(),
                layers.Dense(256, activation="relu"),
                layers.Dense(10, activation="softmax"),
            ]
        )


KINDS = {
    "wide-deep": WideDeep(False),
    "wide-deep-list": WideDeep(True),
    "mnist": Digits(),
    "digits-wide": DigitsWide(),
}


def example(values):
    features = {
        name: tf.train.Feature(int64_list=tf.train.Int64List(value=value))
        for name, value in values.items()
    }
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


def build(kind):
    """The model of that seed, its optimizer and its loss."""
    keras.utils.set_random_seed(7)
    return KINDS[kind].model(), KINDS[kind].optimizer(), KINDS[kind].loss


def batches(kind, path, batch, part=0, parts=1, ordered=False):
    """Batches without end: records shuffled, batched, then parsed, which is the cheapest order;
    `ordered`: as they stand, with a short batch at the end of each pass, as muster has it."""
    data = tf.data.TFRecordDataset(sorted(tf.io.gfile.glob(path))).shard(parts, part)
    if ordered:
        data = data.batch(batch).repeat()
    else:
        data = data.shuffle(TRAIN_ROWS // parts, seed=1).repeat().batch(batch)
    options = tf.data.Options()
    options.threading.private_threadpool_size = 1
    return data.map(KINDS[kind].parsed).prefetch(2).with_options(options)


def export(kind, folder):
    import muster.keras

    model, optimizer, loss = build(kind)
    muster.keras.export(model, optimizer, loss, folder, **KINDS[kind].export_options())


def main():
    what, kind, folder = sys.argv[1:]
    if what == "records":
        KINDS[kind].write(folder)
    else:
        export(kind, folder)


if __name__ == "__main__":
    main()
