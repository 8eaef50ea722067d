"""Writes exported models, as docs/formats/keras_export.md says, and what Python's TensorFlow makes of
some batches: `export_graph.py FOLDER KIND`, KIND being wide_deep, computed (small, with a shared
table and ids computed of strings) or dropout (the same with it). Run by the current TensorFlow.

FOLDER/export is the export; FOLDER/batches a bundle of batches (batch/N/input/NAME, batch/N/label/y,
batch/N/sample_weight) and of what is expected of them (expected/N/...): see expected_results.py.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf
from expected_results import save_batches, save_bundle

v1 = tf.compat.v1
ROWS, LISTS, VOCABULARY, COLUMNS = 40, 8, 1000, 8
UNITS = [100, 75, 50, 25]


class Model:
    """Variables by name: kind, value. `forward` returns logits and the states' new values."""

    def __init__(self, kind: str) -> None:
        small = kind != "wide_deep"
        self.dropout = kind == "dropout"
        self.random = np.random.default_rng(20261122)
        self.vocabulary = 30 if small else VOCABULARY
        self.units = [5, 4] if small else UNITS
        self.small = small
        self.variables: list[dict[str, Any]] = []
        self.values: list[np.ndarray[Any, Any]] = []
        self.add("embedding", "table", [self.vocabulary, COLUMNS])
        self.add("wide", "table", [self.vocabulary, 1])
        self.add("frozen", "table", [7, 3], trainable=False)
        self.add("offset", "dense", [3], trainable=False)
        width = LISTS * COLUMNS + 3 + 3 + (COLUMNS if small else 0)
        for i, units in enumerate(self.units):
            self.add(f"layer_{i}/kernel", "dense", [width, units])
            self.add(f"layer_{i}/bias", "dense", [units])
            width = units
        self.add("logits/kernel", "dense", [width, 1])
        self.add("mean", "state", [width])
        if self.dropout:
            self.add("dropout", "seed", [2], dtype="int64")

    def add(self, name: str, kind: str, shape: list[int], trainable: bool | None = None,
            dtype: str = "float32") -> None:
        trained = kind in ("dense", "table") if trainable is None else trainable
        self.variables.append({"name": name, "kind": kind, "dtype": dtype, "shape": shape,
                               "trainable": trained})
        value = self.random.normal(size=shape) * 0.3
        self.values.append(value.astype(dtype))

    def inputs(self) -> list[dict[str, Any]]:
        inputs = [column("ids", "int64", [LISTS]), column("x", "float32", [3]),
                  column("kind", "int32", [])]
        if self.small:
            inputs.append(column("words", "string", [None]))
        return inputs

    def lookups(self) -> list[dict[str, Any]]:
        lookups = [(0, [LISTS], {"input": "ids"}), (1, [LISTS], {"input": "ids"}),
                   (2, [], {"input": "kind"})]
        if self.small:
            lookups.append((0, [None], {"computed": "ids_3"}))
        return [{"table": table, "argument": f"ids_{k}", "shape": shape, "source": source}
                for k, (table, shape, source) in enumerate(lookups)]

    def word_ids(self, words: Any) -> Any:
        return tf.strings.length(words) % self.vocabulary

    def forward(self, var: dict[int, Any], inputs: dict[str, Any], ids: list[Any],
                training: bool) -> tuple[Any, dict[int, Any]]:
        embedded = tf.reshape(tf.gather(var[0], ids[0]), [-1, LISTS * COLUMNS])
        parts = [embedded, inputs["x"] + var[3], tf.gather(var[2], ids[2])]
        if self.small:
            parts.append(tf.reduce_sum(tf.gather(var[0], ids[3]), 1))
        h = tf.concat(parts, 1)
        for i in range(len(self.units)):
            h = tf.nn.relu(h @ var[4 + 2 * i] + var[5 + 2 * i])
        at = 4 + 2 * len(self.units)
        new = 0.9 * var[at + 1] + 0.1 * tf.reduce_mean(h, 0)
        if self.dropout and training:
            keep = tf.random.stateless_uniform(tf.shape(h), tf.cast(var[at + 2], tf.int32)) >= 0.2
            h = tf.where(keep, h / 0.8, tf.zeros_like(h))
        wide = tf.reduce_sum(tf.gather(var[1], ids[1])[:, :, 0], 1)
        return (h @ var[at])[:, 0] + wide, {at + 1: new}


def column(name: str, dtype: str, shape: list[int | None]) -> dict[str, Any]:
    return {"name": name, "feature": name, "dtype": dtype, "shape": shape, "decode": None}


def placeholder(name: str, dtype: str, shape: list[int | None]) -> Any:
    return v1.placeholder(dtype, shape, name=name)


class Graph:
    """Builds the functions of an export in the current graph, with whole tables or blocks of them.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.signatures: dict[str, dict[str, dict[str, str]]] = {}
        self.ports: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}

    def define(self, name: str, arguments: list[str], outputs: Any) -> None:
        with v1.name_scope(name):
            given = {a: self.argument(a) for a in arguments}
            results = {k: tf.identity(v, name=k) for k, v in outputs(given).items()}
        self.ports[name] = given, results
        self.signatures[name] = {"inputs": {k: v.name for k, v in given.items()},
                                 "outputs": {k: v.name for k, v in results.items()}}

    def argument(self, name: str) -> Any:
        kind, _, rest = name.partition("_")
        if kind == "var":
            variable = self.model.variables[int(rest)]
            shape = list(variable["shape"])
            if variable["kind"] == "table":
                shape[0] = None
            return placeholder(name, variable["dtype"], shape)
        if kind == "ids":
            shape = self.model.lookups()[int(rest)]["shape"]
            return placeholder(name, "int32", [None, *shape])
        if kind == "input":
            about = next(c for c in self.model.inputs() if c["name"] == rest)
            return placeholder(name, about["dtype"], [None, *about["shape"]])
        return placeholder(name, "float32", [] if name == "denominator" else [None])


def build(model: Model) -> Graph:
    graph = Graph(model)
    variables = range(len(model.variables))
    var_names = [f"var_{i:03d}" for i in variables]
    ids_names = [f"ids_{k}" for k in range(len(model.lookups()))]

    def parts(given: dict[str, Any]) -> tuple[dict[int, Any], dict[str, Any], list[Any]]:
        var = {int(k[4:]): v for k, v in given.items() if k.startswith("var_")}
        inputs = {k[6:]: v for k, v in given.items() if k.startswith("input_")}
        return var, inputs, [given[k] for k in ids_names]

    def step(given: dict[str, Any]) -> dict[str, Any]:
        var, inputs, ids = parts(given)
        logits, states = model.forward(var, inputs, ids, True)
        losses = tf.nn.sigmoid_cross_entropy_with_logits(given["label_y"], logits)
        rows = tf.cast(tf.size(losses), tf.float32)
        scale = tf.where(given["denominator"] > 0, rows / given["denominator"], 1.0)
        data_loss = tf.reduce_mean(losses * given["sample_weight"]) * scale
        loss = data_loss + 0.01 * tf.nn.l2_loss(var[4]) * scale
        results = {"loss": loss, "data_loss": data_loss}
        for i, variable in enumerate(model.variables):
            if variable["kind"] == "state":
                results[f"new_{i:03d}"] = states[i]
            if not variable["trainable"]:
                continue
            gradient = tf.gradients(loss, var[i])[0]
            if variable["kind"] == "table":
                results[f"rows_{i:03d}"] = tf.cast(gradient.indices, tf.int32)
                gradient = gradient.values
            results[f"grad_{i:03d}"] = gradient
        return results

    def evaluate(given: dict[str, Any]) -> dict[str, Any]:
        var, inputs, ids = parts(given)
        logits, _ = model.forward(var, inputs, ids, False)
        losses = tf.nn.sigmoid_cross_entropy_with_logits(given["label_y"], logits)
        loss_sum = tf.reduce_sum(losses * given["sample_weight"])
        return {"output_logits": logits[:, None], "loss_sum": loss_sum}

    inputs = ["input_x"]
    graph.define("step", [*var_names, *inputs, *ids_names, "label_y", "sample_weight",
                          "denominator"], step)
    plain = [n for n, v in zip(var_names, model.variables) if v["kind"] not in ("seed",)]
    graph.define("evaluate", [*plain, *inputs, *ids_names, "label_y", "sample_weight"], evaluate)
    graph.define("predict", [*plain, *inputs, *ids_names], lambda given: {
        "output_logits": model.forward(*parts(given), False)[0][:, None]})
    if model.small:
        graph.define("ids", ["input_words"], lambda given: {
            "ids_3": tf.cast(model.word_ids(given["input_words"]), tf.int64)})
    return graph


def manifest(model: Model, graph: Graph) -> dict[str, Any]:
    return {
        "format": "muster.keras", "version": 1, "tensorflow": tf.__version__, "keras": "none",
        "model": {"name": "probe", "class": "Model"}, "config": None, "inputs": model.inputs(),
        "labels": [column("y", "float32", [])],
        "sample_weight": column("sample_weight", "float32", []),
        "variables": model.variables, "lookups": model.lookups(),
        "predictions": [{"name": "logits", "dtype": "float32", "shape": [1]}],
        "signatures": graph.signatures,
        "optimizer": {"name": "SGD", "rule": "keras", "learning_rate": 0.1, "clip": None},
        "loss": {"name": "custom", "separable": True}, "metrics": [],
    }


def make_batch(model: Model, random: Any, rows: int) -> dict[str, Any]:
    batch = {
        "input/ids": random.integers(0, model.vocabulary, [rows, LISTS]),
        "input/x": random.normal(size=[rows, 3]).astype("float32"),
        "input/kind": random.integers(0, 7, [rows]).astype("int32"),
        "label/y": random.integers(0, 2, [rows]).astype("float32"),
        "sample_weight": random.uniform(0.5, 2, [rows]).astype("float32"),
    }
    if model.small:
        lengths = random.integers(0, 20, [rows, int(random.integers(1, 4))])
        batch["input/words"] = np.array([["w" * n for n in row] for row in lengths], dtype=object)
    return batch


def main(folder: pathlib.Path, kind: str, batches: int = 3) -> None:
    model = Model(kind)
    with tf.Graph().as_default():
        graph = build(model)
        with v1.Session() as session:
            builder = v1.saved_model.Builder(str(folder / "export" / "step"))
            builder.add_meta_graph_and_variables(session, ["serve"])
            builder.save()
    save_bundle(folder / "export" / "weights",
                {v["name"]: value for v, value in zip(model.variables, model.values)})
    text = json.dumps(manifest(model, graph), indent=1)
    (folder / "export" / "model.json").write_text(text, encoding="utf-8")
    random = np.random.default_rng(7)
    save_batches(folder, [make_batch(model, random, ROWS + n) for n in range(batches)])


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), sys.argv[2])
