"""Keras models trained a step at a time from what Muster had before each step.

    keras_steps.py FOLDER                     exports each model and writes its data
    keras_steps.py FOLDER NAME MODEL_DIR      compares; by the current TensorFlow, PYTHONPATH with the
                                              root and python/

FOLDER/NAME/export, FOLDER/NAME/data.tfrecord, and the same in two halves of each batch, half-0.tfrecord
and half-1.tfrecord. MODEL_DIR has a checkpoint of every step of that data in its order: Keras is given
the weights and slots of one, trains on the next batch, and is compared with the next one. The result,
MODEL_DIR/compared.json: of each step and tensor, by its name, its largest number, the greatest difference
and how far the step moved it.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import keras
import numpy as np
import tensorflow as tf
from keras_trainings import write

import muster.keras

L, O = keras.layers, keras.optimizers
STEPS, BATCH = 20, 40


def cnn(normalized: bool) -> tuple[Any, Any]:
    """A convolution before a BatchNormalization has no bias: its gradient would consist of rounding
    errors, which Adam scales up to the size of other gradients."""
    normalization = [L.BatchNormalization(name="norm")] if normalized else []
    layers = [
        L.Input((12, 12, 1), name="x"),
        L.Conv2D(8, 3, name="first", use_bias=not normalized),
        *normalization,
        L.ReLU(),
        L.MaxPooling2D(),
        L.Conv2D(12, 3, activation="relu", name="second"),
        L.Flatten(),
        L.Dense(10, name="out"),
    ]
    return keras.Sequential(layers, name="cnn"), O.Adam(0.001)


def lstm() -> tuple[Any, Any]:
    layers = [
        L.Input((None,), dtype="int32", name="x"),
        L.Embedding(60, 8, mask_zero=True, name="words"),
        L.LSTM(12, name="lstm"),
        L.Dense(10, name="out"),
    ]
    return keras.Sequential(layers, name="text"), O.RMSprop(0.002)


def lstm_with_adam() -> tuple[Any, Any]:
    return lstm()[0], O.Adam(0.002)


MODELS = {
    "cnn": lambda: cnn(normalized=False),
    "cnn_normalized": lambda: cnn(normalized=True),
    "lstm": lstm,
    "lstm_with_adam": lstm_with_adam,
}


def loss() -> Any:
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def data(name: str) -> tuple[Any, Any]:
    """Returns rows that can be learned; words are texts of 1 to 9 words, padded with 0."""
    random = np.random.default_rng(15)
    label = random.integers(0, 10, STEPS * BATCH)
    if name.startswith("cnn"):
        x = random.normal(size=(len(label), 12, 12, 1)) * 0.3
        x[np.arange(len(label)), label, :, 0] += 1
        return x.astype(np.float32), label
    words = random.integers(1, 60, (len(label), 9))
    words[:, 0] = 1 + label * 3 + random.integers(0, 3, len(label))
    lengths = random.integers(1, 10, len(label))
    return np.where(np.arange(9) < lengths[:, None], words, 0).astype(np.int32), label


def make(folder: pathlib.Path, name: str) -> None:
    folder.mkdir(parents=True)
    model, optimizer = MODELS[name]()
    muster.keras.export(model, optimizer, loss(), folder / "export", label="label")
    x, label = data(name)
    columns, rows = {"x": x, "label": label}, np.arange(len(label))
    write(folder / "data.tfrecord", columns, rows)
    for half in (0, 1):
        write(folder / f"half-{half}.tfrecord", columns, rows[rows // (BATCH // 2) % 2 == half])


class Stepper:
    """A Keras model whose weights and slots are set and read by their names in checkpoints."""

    def __init__(self, folder: pathlib.Path, name: str) -> None:
        self.model, self.optimizer = MODELS[name]()
        self.model.compile(self.optimizer, loss())
        self.optimizer.build(self.model.trainable_variables)
        manifest = json.loads((folder / "export/model.json").read_text(encoding="utf-8"))
        entries, trained = manifest["variables"], self.model.trainable_variables
        variables = [*trained, *self.model.non_trainable_variables]
        assert len(variables) == len(entries)
        self.variables = {e["name"]: v for e, v in zip(entries, variables) if e["kind"] != "seed"}
        slots = {v.path.partition("/")[2]: v for v in self.optimizer.variables[2:]}
        for key, variable in zip(list(self.variables), trained):
            prefix = variable.path.replace("/", "_") + "_"
            for path in [path for path in slots if path.startswith(prefix)]:
                place = f"training/{manifest['optimizer']['name']}/{key}/{path[len(prefix):]}"
                self.variables[place] = slots.pop(path)
        assert not slots, slots

    def give(self, tensors: dict[str, Any], step: int) -> None:
        for name, variable in self.variables.items():
            variable.assign(tensors[name])
        self.optimizer.iterations.assign(step)

    def take(self) -> dict[str, Any]:
        return {name: np.asarray(variable) for name, variable in self.variables.items()}


def read(checkpoint: pathlib.Path) -> dict[str, Any]:
    reader = tf.train.load_checkpoint(str(checkpoint))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def compare(folder: pathlib.Path, name: str, model_dir: pathlib.Path) -> None:
    stepper = Stepper(folder, name)
    x, label = data(name)
    before = read(model_dir / "model.ckpt-0")
    steps = []
    for step in range(STEPS):
        rows = slice(step * BATCH, (step + 1) * BATCH)
        stepper.give(before, step)
        stepper.model.train_on_batch(x[rows], label[rows])
        after, wanted = read(model_dir / f"model.ckpt-{step + 1}"), stepper.take()

        steps.append({tensor: {"largest": float(np.abs(value).max()),
                               "differs": float(np.abs(value - after[tensor]).max()),
                               "moved": float(np.abs(value - before[tensor]).max())}
                      for tensor, value in wanted.items()})  # fmt: skip
        before = after
    (model_dir / "compared.json").write_text(json.dumps(steps))


def main(folder: str, name: str = "", model_dir: str = "") -> None:
    keras.utils.set_random_seed(7)
    if name:
        return compare(pathlib.Path(folder, name), name, pathlib.Path(model_dir))
    for each in MODELS:
        keras.utils.clear_session()
        make(pathlib.Path(folder, each), each)


if __name__ == "__main__":
    main(*sys.argv[1:])
