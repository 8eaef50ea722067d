"""SavedModels that Muster writes for serving (muster-tensorflow-serving), read by TensorFlow: the
weights are the trained ones, and every signature predicts what the Keras model with these weights
predicts."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from functools import partial
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import muster.keras
from testbed.exports import accepted

ROWS, LENGTH = 6, 4
PROGRAM = pathlib.Path(os.environ["MUSTER_BINARY"]).with_name("muster-tensorflow-serving")
TOLERANCE, OF_16_BITS = 1e-6, 1e-2  # a graph rounds differently from its layers called one by one


class Served:
    """An exported case, a bundle with other weights, and both as a SavedModel."""

    def __init__(self, name: str, folder: pathlib.Path):
        case = accepted.CASES[name]()
        self.model = case.model
        self.export = folder / "out"
        muster.keras.export(case.model, case.optimizer, case.loss, self.export, **case.options)
        self.manifest = json.loads((self.export / "model.json").read_text())
        self.values = self._trained()
        self.folder = folder / "served"
        self._write(folder / "weights")

    def _trained(self) -> list[Any]:
        """Returns by variable: trained ones have other values than in the export, the rest have its
        values."""
        random = np.random.default_rng(11)
        reader = tf.train.load_checkpoint(str(self.export / "weights"))
        values = []
        for variable in self.manifest["variables"]:
            value = reader.get_tensor(variable["name"])
            if variable["trainable"] or variable["kind"] == "state":
                value = (value + random.uniform(0.1, 0.3, value.shape)).astype(value.dtype)
            values.append(value)
        return values

    def _write(self, bundle: pathlib.Path) -> None:
        names = [variable["name"] for variable in self.manifest["variables"]]
        tf.raw_ops.SaveV2(
            prefix=str(bundle), tensor_names=names, shape_and_slices=[""] * len(names),
            tensors=[tf.constant(value) for value in self.values],
        )  # fmt: skip
        done = subprocess.run(
            [PROGRAM, self.export, bundle, self.folder], capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr

    def predict_by_keras(self, inputs: dict[str, Any]) -> tuple[list[Any], list[Any]]:
        """Returns what the model predicts with the weights of its export, and with the trained
        ones."""
        values = [inputs[port["name"]] for port in self.manifest["inputs"]]
        given = values if len(values) > 1 else values[0]
        before = keras.tree.flatten(self.model(given, training=False))
        for variable, value in zip(variables_of(self.model), self.values):
            variable.assign(value)
        return before, keras.tree.flatten(self.model(given, training=False))


def variables_of(model: Any) -> list[Any]:
    return [*model.trainable_variables, *model.non_trainable_variables]


def made_up(port: dict[str, Any], random: Any) -> Any:
    shape = [ROWS, *(LENGTH if size is None else size for size in port["shape"])]
    if port["dtype"] == "string":
        return random.choice(np.array([b"a", b"b", b"the cat"], object), shape)
    if port["dtype"].startswith("float"):
        return random.normal(size=shape).astype(port["dtype"])
    return random.integers(0, 3, shape).astype(port["dtype"])


def feature_of(port: dict[str, Any], value: Any) -> Any:
    if port["decode"] == "raw":
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value.tobytes()]))
    if port["decode"] == "png":
        png = tf.io.encode_png(value).numpy()
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[png]))
    flat = np.ravel(value)
    if port["dtype"] == "string":
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=flat))
    if port["dtype"].startswith("float"):
        return tf.train.Feature(float_list=tf.train.FloatList(value=flat))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=flat))


def serialized(ports: list[dict[str, Any]], inputs: dict[str, Any]) -> list[bytes]:
    return [
        tf.train.Example(
            features=tf.train.Features(
                feature={
                    port["feature"]: feature_of(port, inputs[port["name"]][row]) for port in ports
                }
            )
        ).SerializeToString()
        for row in range(ROWS)
    ]


def assert_near(
    have: dict[str, Any], want: list[Any], names: list[str], what: str, tolerance: float
) -> None:
    assert sorted(have) == sorted(names), what
    for name, value in zip(names, want):
        limit = tolerance * max(1.0, float(np.abs(value).max()))
        difference = float(np.abs(np.asarray(have[name]) - np.asarray(value)).max())
        assert difference <= limit, f"{what}: {name} is off by {difference}"


def compare(name: str, folder: pathlib.Path) -> None:
    served = Served(name, folder)
    loaded = tf.saved_model.load(str(served.folder))
    restored = [variable.numpy() for variable in loaded.vars]
    assert len(restored) == len(served.values)
    for variable, have, want in zip(served.manifest["variables"], restored, served.values):
        assert have.dtype == want.dtype and np.array_equal(have, want), variable["name"]
    ports = served.manifest["inputs"]
    random = np.random.default_rng(12)
    inputs = {port["name"]: tf.constant(made_up(port, random)) for port in ports}
    untrained, want = served.predict_by_keras(inputs)
    moved = max(float(np.abs(a - b).max()) for a, b in zip(untrained, want))
    assert moved > 1e-3, "the weights make no difference"
    names = [prediction["name"] for prediction in served.manifest["predictions"]]
    assert_same = partial(
        assert_near, want=want, names=names, tolerance=OF_16_BITS if "16" in name else TOLERANCE
    )
    assert_same(loaded.signatures["serving_default"](**inputs), what="serving_default")
    records = tf.constant(serialized(ports, {k: v.numpy() for k, v in inputs.items()}))
    assert_same(loaded.signatures["parse_examples"](examples=records), what="parse_examples")
    if len(inputs) == 1:  # a TFSMLayer accepts only one input
        layer = keras.layers.TFSMLayer(str(served.folder), call_endpoint="serving_default")
        assert_same(layer(*inputs.values()), what="TFSMLayer")


def check_saved_model_cli(folder: pathlib.Path) -> None:
    """Runs what a person types; `run` uses TensorFlow's C++ loader."""
    served = Served("wide_deep", folder)
    ids = np.random.default_rng(13).integers(0, 50, (ROWS, 4))
    (want,) = served.predict_by_keras({"ids": tf.constant(ids)})[1]
    np.save(folder / "ids.npy", ids)
    command = [pathlib.Path(sys.executable).with_name("saved_model_cli")]
    chosen = ["--dir", served.folder, "--tag_set", "serve", "--signature_def", "serving_default"]
    shown = subprocess.run([*command, "show", *chosen], capture_output=True, text=True, timeout=300)
    assert shown.returncode == 0 and "inputs['ids']" in shown.stdout, shown.stderr + shown.stdout
    arguments = ["--inputs", f"ids={folder / 'ids.npy'}", "--outdir", folder / "cli"]
    ran = subprocess.run(
        [*command, "run", *chosen, *arguments], capture_output=True, text=True, timeout=300
    )
    assert ran.returncode == 0, ran.stderr
    (name,) = (prediction["name"] for prediction in served.manifest["predictions"])
    assert np.abs(np.load(folder / "cli" / f"{name}.npy") - want).max() <= TOLERANCE


def check_python_takes_the_weights_back(folder: pathlib.Path) -> None:
    served = Served("cnn", folder)
    muster.keras.load(served.folder, served.model)
    for variable, want in zip(variables_of(served.model), served.values):
        assert np.array_equal(variable.numpy(), want), variable.path


# Why each of accepted.py.
CASES = {
    "wide_deep_normalized": "computed ids, BatchNorm's states, dropout's seeds",
    "ids_as_inputs": "several inputs, one of any length",
    "frozen_embedding": "a table that keeps the export's values",
    "text_lstm": "any length alone",
    "cnn": "convolutions",
    "image_from_bytes": "images decoded from records",
    "raw_bytes": "numbers decoded from records",
    "two_outputs": "predictions by name",
    "lookup_layers": "hash tables beside the variables",
    "adapted_text": "vocabularies of an adapted layer",
    "bfloat16": "16 bits",
}
CHECKS = {name: partial(compare, name) for name in CASES}
