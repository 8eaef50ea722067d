"""Exports Keras models, writes their data as TFRecords, and trains them with Keras on the same
batches.

keras_trainings.py FOLDER [NAME...]     by the current TensorFlow, PYTHONPATH with the root and
python/

Writes FOLDER/NAME/export, FOLDER/NAME/data.tfrecord (and the same in two halves of each batch,
half-0.tfrecord and half-1.tfrecord), and Keras's results: FOLDER/NAME/trained.npz by the export's
names of variables, and FOLDER/NAME/evaluated.json and FOLDER/NAME/predicted.npy for the same data.
"""

from __future__ import annotations

import functools
import json
import os
import pathlib
import sys
from typing import Any, Callable

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import keras
import numpy as np
import tensorflow as tf

import muster.keras
from testbed.exports.accepted import WideDeep

L, O = keras.layers, keras.optimizers
STEPS, BATCH = 100, 40
FIRST_ID = 10**12  # the first value of the field `id`; `name` is another key of a row


def feature(values: Any) -> Any:
    values = np.asarray(values).reshape(-1)
    if values.dtype.kind == "f":
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    if values.dtype.kind in "iub":
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))
    values = [v if isinstance(v, bytes) else str(v).encode() for v in values]
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))


def write(path: pathlib.Path, columns: dict[str, Any], rows: Any) -> None:
    with tf.io.TFRecordWriter(str(path)) as writer:
        for row in rows:
            example = {name: feature(values[row]) for name, values in columns.items()}
            features = tf.train.Features(feature=example)
            writer.write(tf.train.Example(features=features).SerializeToString())


def train(folder: pathlib.Path, model: Any, optimizer: Callable[[], Any], loss: Any,
          columns: dict[str, Any], label: Any, metrics: list[str], inputs: Any = None,
          **options: Any) -> None:  # fmt: skip
    """`columns` are the records' fields; `inputs` are the model's arguments and `target` is the
    label's Field, if they differ."""
    folder.mkdir(parents=True)
    options["label"] = options.pop("target", "label")
    fields = options.pop("fields", None)
    muster.keras.export(model, optimizer(), loss, folder / "export", metrics=metrics or None,
                        inputs=fields, **options)  # fmt: skip
    columns = {**columns, "label": label}
    rows = np.arange(len(label))
    records = {**columns, "id": rows + FIRST_ID, "name": np.char.mod("row %d", rows)}
    write(folder / "data.tfrecord", records, rows)
    for half in (0, 1):
        write(folder / f"half-{half}.tfrecord", records, rows[rows // (BATCH // 2) % 2 == half])
    if inputs is None:
        inputs = {k: v for k, v in columns.items() if k != "label"}
        if len(inputs) == 1:
            inputs = next(iter(inputs.values()))
    model.compile(optimizer(), loss, metrics=metrics)
    for step in range(0, len(label), BATCH):
        part = slice(step, step + BATCH)
        batch = {k: v[part] for k, v in inputs.items()} if isinstance(inputs, dict) else inputs[part]
        model.train_on_batch(batch, label[part])
    manifest = json.loads((folder / "export/model.json").read_text())
    variables = [*model.trainable_variables, *model.non_trainable_variables]
    names = [v["name"] for v in manifest["variables"]]
    np.savez(folder / "trained.npz", **{n: np.asarray(v) for n, v in zip(names, variables)})
    (folder / "evaluated.json").write_text(
        json.dumps({k: float(v) for k, v in model.evaluate(
            inputs, label, batch_size=BATCH, verbose=0, return_dict=True).items()})
    )  # fmt: skip
    predicted = model.predict(inputs, batch_size=BATCH, verbose=0)
    if isinstance(predicted, dict):
        np.savez(folder / "predicted.npz", **predicted)
    else:
        np.save(folder / "predicted.npy", predicted)


def wide_deep(folder: pathlib.Path, optimizer: Callable[[], Any], normalized: bool = False,
              rows: int = 50) -> None:  # fmt: skip
    """With ids that repeat in a batch; `normalized`: with BatchNormalization and dropout."""
    random = np.random.default_rng(12)
    model = WideDeep(rows=rows, normalized=normalized)
    model(np.zeros((2, 4), np.int32))
    ids = random.integers(0, 12, (STEPS * BATCH, 4))
    label = (ids.sum(1) + random.integers(0, 12, len(ids)) > 26).astype(np.int64)
    train(folder, model, optimizer, keras.losses.BinaryCrossentropy(from_logits=True), {"ids": ids},
          label, ["accuracy"], fields=muster.keras.Field("ids", "int64", [4]),
          example=(ids[:40], label[:40]))  # fmt: skip


def words(folder: pathlib.Path) -> None:
    """Lists of any length, and two inputs of different types."""
    random = np.random.default_rng(13)
    text = keras.Input((None,), dtype="int32", name="words")
    size = keras.Input((1,), name="size")
    x = L.GlobalAveragePooling1D()(L.Embedding(30, 6)(text))
    out = L.Dense(3, activation="softmax")(L.Dense(8, activation="tanh")(L.Concatenate()([x, size])))
    model = keras.Model([text, size], out)
    ids = random.integers(0, 30, (STEPS * BATCH // 4, 5))
    label = ids.max(1) // 11
    columns = {"words": ids, "size": ids.mean(1, keepdims=True).astype(np.float32) / 30}
    train(folder, model, lambda: O.Adam(0.01), "sparse_categorical_crossentropy", columns, label,
          ["accuracy"], key=muster.keras.Field("id", "int64"))  # fmt: skip


def pictures(folder: pathlib.Path) -> None:
    """PNG files of two shades, stored in records unchanged."""
    random = np.random.default_rng(14)
    label = random.integers(0, 2, STEPS * BATCH // 4)
    images = random.integers(0, 128, (len(label), 6, 5, 3)) + label[:, None, None, None] * 120
    images = images.astype(np.uint8)
    model = keras.Sequential([L.Input((6, 5, 3), dtype="uint8", name="image"),
                              L.Rescaling(1 / 255), L.Flatten(), L.Dense(4, activation="relu"),
                              L.Dense(2, activation="softmax", name="shade")])  # fmt: skip
    files = np.array([tf.io.encode_png(image).numpy() for image in images], dtype=object)
    train(folder, model, lambda: O.SGD(0.05), "sparse_categorical_crossentropy", {"file": files},
          label, ["accuracy"], inputs=images, key="name",
          fields={"image": muster.keras.Field("file", "uint8", [6, 5, 3], decode="png")})  # fmt: skip


class Counting(keras.optimizers.Optimizer):
    """A custom optimizer: steps along the gradient, by the sum of its squares, and counts its
    updates in whole numbers."""

    def __init__(self, learning_rate: Any = 0.01, name: str = "counting", **options: Any) -> None:
        super().__init__(learning_rate=learning_rate, name=name, **options)

    def build(self, variables: Any) -> None:
        if self.built:
            return
        super().build(variables)
        self.squares = self.add_optimizer_variables(variables, "squares", initializer="ones")
        self.count = self.add_variable((), initializer="zeros", dtype="int64", name="count")

    def apply(self, grads: Any, trainable_variables: Any = None) -> None:
        super().apply(grads, trainable_variables)
        self.count.assign_add(2)

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        squares = self.squares[self._get_variable_index(variable)]
        self.assign_add(squares, keras.ops.square(gradient))
        rate = keras.ops.cast(learning_rate, variable.dtype)
        rate = rate / (1 + 0.01 * keras.ops.cast(self.count, variable.dtype))
        self.assign_sub(variable, keras.ops.divide(rate * gradient, keras.ops.sqrt(squares)))


class Waves(O.schedules.LearningRateSchedule):
    """A custom schedule that goes up and down."""

    def __call__(self, step: Any) -> Any:
        return 0.002 * (1.5 + tf.sin(tf.cast(step, tf.float32) / 7))

    def get_config(self) -> dict[str, Any]:
        return {}


OPTIMIZERS = {
    "adagrad": lambda: O.Adagrad(0.05),
    "adam": lambda: O.Adam(0.001),
    "ftrl": lambda: O.Ftrl(0.05),
    "momentum": lambda: O.SGD(0.05, momentum=0.9),
    "rmsprop": lambda: O.RMSprop(0.001),
    # Optimizers without a rule of muster's: exported as functions.
    "adadelta": lambda: O.Adadelta(0.5),
    "adamax": lambda: O.Adamax(O.schedules.CosineDecay(0.002, 80, 0.1), clipnorm=0.5),
    "amsgrad": lambda: O.Adam(0.001, amsgrad=True, weight_decay=0.01),
    "lion": lambda: O.Lion(0.0003),
    "nadam": lambda: O.Nadam(0.002, clipvalue=0.01),
    "own": lambda: Counting(0.05),
    # Optimizers with a rule.
    "own_schedule": lambda: O.Adam(Waves()),
}


def constrained(folder: pathlib.Path) -> None:
    """Weights, also of an embedding, that are clipped to a norm after each update."""
    random = np.random.default_rng(15)
    layers = [L.Input((4,), dtype="int32", name="ids"),
              L.Embedding(12, 4, embeddings_constraint=keras.constraints.MaxNorm(0.06)), L.Flatten(),
              L.Dense(8, activation="tanh", kernel_constraint="non_neg"),
              L.Dense(1, kernel_constraint=keras.constraints.UnitNorm())]  # fmt: skip
    ids = random.integers(0, 12, (STEPS * BATCH, 4))
    label = (ids.sum(1) > 22).astype(np.int64)
    train(folder, keras.Sequential(layers), lambda: O.SGD(0.05, momentum=0.9),
          keras.losses.BinaryCrossentropy(from_logits=True), {"ids": ids}, label, ["accuracy"],
          example=(ids[:40], label[:40]))  # fmt: skip


class Recommender(keras.Model):
    """Learns with its own compute_loss which item of the batch comes next, and predicts the best of
    all items: their table is looked up by inputs and labels, and in prediction read as a whole."""

    def __init__(self) -> None:
        super().__init__()
        self.items = L.Embedding(12, 6, embeddings_initializer="normal", name="items")
        self.mean, self.hidden = L.GlobalAveragePooling1D(), L.Dense(6, name="hidden")

    def call(self, ids: Any, training: bool = False) -> Any:
        found = {"query": self.hidden(self.mean(self.items(ids)))}
        if not training:
            scores = keras.ops.matmul(found["query"], keras.ops.transpose(self.items.embeddings))
            found["best"] = keras.ops.argmax(scores, axis=-1)
        return found

    def compute_loss(self, x: Any, y: Any, y_pred: Any, sample_weight: Any) -> Any:
        scores = keras.ops.matmul(y_pred["query"], keras.ops.transpose(self.items(y)))
        wanted = keras.ops.arange(keras.ops.shape(scores)[0])
        losses = keras.losses.sparse_categorical_crossentropy(wanted, scores, from_logits=True)
        return keras.ops.mean(losses)


def recommender(folder: pathlib.Path) -> None:
    """Takes 25 steps, the last one with half a batch."""
    random = np.random.default_rng(16)
    model = Recommender()
    model(np.zeros((2, 3), np.int32))
    ids = random.integers(0, 12, (STEPS * BATCH // 4 - BATCH // 2, 3))
    train(folder, model, lambda: O.Adagrad(0.1), None, {"ids": ids}, (ids.sum(1) % 12), [],
          target=muster.keras.Field("label", "int64"),
          fields=muster.keras.Field("ids", "int64", [3]))  # fmt: skip


class Again(L.Layer):
    """Adds the distance of its two inputs to the loss."""

    def call(self, both: Any) -> Any:
        self.add_loss(keras.ops.mean(keras.ops.square(both[0] - both[1])))
        return both[0]


def autoencoder(folder: pathlib.Path) -> None:
    """Has no label, and only the losses of its layers and regularizers."""
    random = np.random.default_rng(17)
    x = L.Input((4,), name="x")
    code = L.Dense(2, activation="tanh", kernel_regularizer="l2")(x)
    model = keras.Model(x, Again()([L.Dense(4)(code), x]))
    rows = random.normal(size=(STEPS * BATCH // 4, 4)).astype(np.float32)
    train(folder, model, lambda: O.Adam(0.01), None, {"x": rows}, np.zeros(len(rows)), [])


MODELS: dict[str, Callable[[pathlib.Path], None]] = {
    **{name: functools.partial(wide_deep, optimizer=o) for name, o in OPTIMIZERS.items()},
    "normalized": lambda folder: wide_deep(folder, OPTIMIZERS["adagrad"], normalized=True),
    # 80 MB of tables.
    "large": lambda folder: wide_deep(folder, OPTIMIZERS["adagrad"], rows=1_000_000),
    "words": words,
    "pictures": pictures,
    "constrained": constrained,
    "recommender": recommender,
    "autoencoder": autoencoder,
    "own_normalized": lambda folder: wide_deep(folder, OPTIMIZERS["own"], normalized=True),
}


def main(folder: str, *names: str) -> None:
    for name in names or MODELS:
        keras.utils.set_random_seed(7)
        MODELS[name](pathlib.Path(folder, name))


if __name__ == "__main__":
    main(*sys.argv[1:])
