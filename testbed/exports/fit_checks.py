"""`muster train EXPORTED` by epochs gives the losses and metrics of Keras's fit, with
validation_data and class_weight."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from typing import Any

import keras
import muster.keras
import numpy as np

ROWS, BATCH, EPOCHS = 90, 20, 3
CLASS_WEIGHT = {0: 0.5, 2: 5.0}
FLAG = ("--class-weight", "0=0.5,2=5")


def _data(rows: int, seed: int) -> tuple[Any, Any]:
    random = np.random.default_rng(seed)
    x = random.normal(size=(rows, 4)).astype(np.float32)
    return x, np.argmax(x[:, :3] + random.normal(size=(rows, 3)), 1)


def _model() -> Any:
    layers = [keras.Input((4,), name="x"), keras.layers.Dense(8, "relu")]
    return keras.Sequential([*layers, keras.layers.Dense(3, "softmax")])


def _muster(*arguments: Any) -> list[dict[str, Any]]:
    environment = {**os.environ, "MUSTER_TENSORFLOW": sys.executable}
    command = [os.environ["MUSTER_BINARY"], *map(str, arguments), "--json", "--quiet"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    lines = [line[line.index("{") :] for line in done.stdout.splitlines() if '{"event"' in line]
    # without the task's name in front, if there are several tasks
    return [json.loads(line) for line in lines]


def _train(folder: pathlib.Path, *flags: Any) -> list[dict[str, Any]]:
    return _muster("train", folder / "export", "--train", folder / "train", "--batch-size", BATCH,
                   "--model-dir", folder / "m", "--epochs", EPOCHS, "--no-shuffle", *flags)  # fmt: skip


def _compare(
    model: Any, folder: pathlib.Path, sparse: bool, weights: Any, *flags: Any, **options: Any
) -> list[dict[str, Any]]:
    """Exports, trains with both, and compares each epoch. Returns what was printed."""
    (x, y), (x_val, y_val) = _data(ROWS, 1), _data(37, 2)
    if not sparse:
        y, y_val = np.eye(3, dtype=np.float32)[y], np.eye(3, dtype=np.float32)[y_val]
    loss = ("sparse_" if sparse else "") + "categorical_crossentropy"
    metrics: list[Any] = ["accuracy"] if sparse else ["accuracy", "AUC"]
    muster.keras.export(model, keras.optimizers.SGD(0.3), loss, folder / "export", label="y",
                        metrics=metrics, **options)  # fmt: skip
    muster.keras.write((x, y), folder / "export", folder / "train")
    muster.keras.write((x_val, y_val), folder / "export", folder / "eval")
    said = _train(folder, "--eval", folder / "eval", "--eval-every-epoch", *flags)
    model.compile(keras.optimizers.SGD(0.3), loss, metrics=metrics)
    wanted = model.fit(x, y, BATCH, EPOCHS, verbose=0, shuffle=False, class_weight=weights,
                       validation_data=(x_val, y_val)).history  # fmt: skip
    got = [event for event in said if event["event"] == "evaluated"]
    assert [event["epoch"] for event in got] == [1, 2, 3]
    assert [event["global_step"] for event in got] == [5, 10, 15]
    for i, event in enumerate(got):
        for name, values in wanted.items():
            of = event if name.startswith("val_") else event["training"]
            found = of[name.removeprefix("val_")]
            assert abs(found - values[i]) < 2e-6, (i + 1, name, found, values[i])
    [trained] = [event for event in said if event["event"] == "trained"]
    assert trained["loss"] == got[-1]["training"]["loss"]
    for name in ("accuracy",) if sparse else ("accuracy", "AUC"):
        assert trained["metrics"][name] == got[-1]["training"][name]
    return said


def check_epochs_are_those_of_fit(folder: pathlib.Path) -> None:
    _compare(_model(), folder, False, None)


def check_class_weights_are_those_of_fit(folder: pathlib.Path) -> None:
    _compare(_model(), folder, True, CLASS_WEIGHT, *FLAG)


def check_class_weights_of_one_hot_labels_are_those_of_fit(folder: pathlib.Path) -> None:
    _compare(_model(), folder, False, CLASS_WEIGHT, *FLAG)


def check_class_weights_multiply_a_column_of_weights(folder: pathlib.Path) -> None:
    """muster.keras.write fills that column with 1."""
    _compare(_model(), folder, True, CLASS_WEIGHT, *FLAG, sample_weight="weight")


def check_event_files_have_the_metrics_of_the_training(folder: pathlib.Path) -> None:
    import tensorflow as tf

    said = _compare(_model(), folder, True, None)
    [trained] = [event for event in said if event["event"] == "trained"]
    scalars: dict[tuple[str, str, int], float] = {}
    for place in ("m", "m/eval"):
        for file in sorted((folder / place).glob("events.out.tfevents.*")):
            for event in tf.compat.v1.train.summary_iterator(str(file)):
                for value in event.summary.value:
                    if value.HasField("simple_value"):
                        scalars[place, value.tag, event.step] = value.simple_value
    assert abs(scalars["m", "accuracy", 15] - trained["metrics"]["accuracy"]) < 1e-6
    evaluated = [event for event in said if event["event"] == "evaluated"]
    for step, event in zip((5, 10, 15), evaluated):
        assert abs(scalars["m/eval", "accuracy", step] - event["accuracy"]) < 1e-6


def check_replicas_share_their_metrics(folder: pathlib.Path) -> None:
    """With all-reduce the metrics cover the rows of all replicas: two replicas with half the batch
    each give those of one replica with the whole batch."""
    x, y = _data(80, 1)
    muster.keras.export(_model(), keras.optimizers.SGD(0.3), "sparse_categorical_crossentropy",
                        folder / "export", label="y", metrics=["accuracy"])  # fmt: skip
    muster.keras.write((x[::2], y[::2]), folder / "export", folder / "part-0")
    muster.keras.write((x[1::2], y[1::2]), folder / "export", folder / "part-1")
    muster.keras.write((x, y), folder / "export", folder / "train")
    [one] = [e for e in _train(folder, *FLAG) if e["event"] == "trained"]
    os.environ["MUSTER_HOME"] = str(folder / "home")
    said = _muster("train", folder / "export", "--train", folder / "part-*", "--batch-size", BATCH // 2,
                   "--model-dir", folder / "two", "--epochs", EPOCHS, "--no-shuffle", "--workers", 2,
                   *FLAG)  # fmt: skip
    [two] = [e for e in said if e["event"] == "trained"]
    assert abs(one["loss"] - two["loss"]) < 2e-6, (one, two)
    assert one["metrics"] == two["metrics"], (one, two)


def check_what_takes_no_class_weights_is_named(folder: pathlib.Path) -> None:
    inputs = keras.Input((4,), name="x")
    outputs = [keras.layers.Dense(1, name=name)(inputs) for name in ("a", "b")]
    muster.keras.export(keras.Model(inputs, outputs), "sgd", ["mse", "mse"], folder / "export",
                        label={"a": muster.keras.Field("a", "float32"), "b": muster.keras.Field("b", "float32")})  # fmt: skip
    columns = {"x": np.zeros((5, 4)), "a": np.zeros(5), "b": np.zeros(5)}
    muster.keras.write(columns, folder / "export", folder / "train")
    command = [os.environ["MUSTER_BINARY"], "train", folder / "export", "--train", folder / "train",
               "--model-dir", folder / "m", *FLAG]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 2, done.stderr
    assert "--class-weight: the model has not one label that is a class" in done.stderr, done.stderr
