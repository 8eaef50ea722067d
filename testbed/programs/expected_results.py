"""Computes with Python's TensorFlow the results of an exported model for a batch, with whole tables
and muster's seeds. Run by the current TensorFlow."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
_WORD, _LONG = (1 << 32) - 1, (1 << 64) - 1
_DROPOUT = 5  # RandomPurpose::kDropout


def _spread(x: int) -> int:
    """SplitMix64's finaliser."""
    x = (x + 0x9E3779B97F4A7C15) & _LONG
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _LONG
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _LONG
    return x ^ (x >> 31)


def muster_seed(seed: int, step: int, variable: int, replica: int = 0) -> list[int]:
    """Returns the value that the engine feeds as a seed: the first number of a stream of
    src/muster/base/random.h."""
    key = _spread(_spread(seed) ^ (_DROPOUT << 32 | replica << 12 | variable))
    keys = [key & _WORD, key >> 32]
    counter = [0, 0, step & _WORD, step >> 32]
    for _ in range(10):
        a, b = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [b >> 32 ^ counter[1] ^ keys[0], b & _WORD, a >> 32 ^ counter[3] ^ keys[1],
                   a & _WORD]
        keys = [(keys[0] + 0x9E3779B9) & _WORD, (keys[1] + 0xBB67AE85) & _WORD]
    return [counter[0] >> 1, 0]


class Expected:
    """Calls the functions of an export as a trainer with whole tables would."""

    def __init__(self, export: pathlib.Path) -> None:
        self.manifest = json.loads((export / "model.json").read_text(encoding="utf-8"))
        reader = tf.train.load_checkpoint(str(export / "weights"))
        self.variables = self.manifest["variables"]
        self.values = [reader.get_tensor(v["name"]) for v in self.variables]
        self.graph = tf.Graph()
        with self.graph.as_default():
            self.session = v1.Session(graph=self.graph)
            v1.saved_model.load(self.session, ["serve"], str(export / "step"))

    def call(self, name: str, batch: dict[str, Any], step: int, seed: int) -> dict[str, Any]:
        signature = self.manifest["signatures"][name]
        feeds = {tensor: self.argument(argument, batch, step, seed)
                 for argument, tensor in signature["inputs"].items()}
        return dict(self.session.run(signature["outputs"], feeds))

    def argument(self, name: str, batch: dict[str, Any], step: int, seed: int) -> Any:
        kind, _, rest = name.partition("_")
        if kind == "var":
            if self.variables[int(rest)]["kind"] == "seed":
                return muster_seed(seed, step, int(rest))
            return self.values[int(rest)]
        if kind == "whole":
            return self.values[int(rest)]
        if kind == "ids":
            source = self.manifest["lookups"][int(rest)]["source"]
            ((origin, of),) = source.items()
            if origin != "computed":
                return batch[f"{origin}/{of}"].astype("int32")
            return self.call("ids", batch, step, seed)[name].astype("int32")
        if name == "denominator":
            return 0.0
        if name == "sample_weight":
            rows = len(next(iter(batch.values())))
            return batch.get(name, np.ones(rows, np.float32))  # 1 a row where the data has none
        return batch[f"{kind}/{rest}"]

    def of(self, batch: dict[str, Any], step: int, seed: int) -> dict[str, Any]:
        return {f"{name}/{key}": value for name in ("step", "evaluate")
                for key, value in self.call(name, batch, step, seed).items()}


def save_bundle(prefix: pathlib.Path, tensors: dict[str, Any]) -> None:
    names = sorted(tensors)
    tf.raw_ops.SaveV2(prefix=str(prefix), tensor_names=names, shape_and_slices=[""] * len(names),
                      tensors=[tf.constant(tensors[n]) for n in names])


def save_batches(folder: pathlib.Path, batches: list[dict[str, Any]], seed: int = 7) -> None:
    """Writes the bundle FOLDER/batches: the batches, and the results of FOLDER/export's step for
    each."""
    expected = Expected(folder / "export")
    tensors: dict[str, Any] = {}
    for n, batch in enumerate(batches):
        tensors.update({f"batch/{n}/{k}": v for k, v in batch.items()})
        tensors.update({f"expected/{n}/{k}": v for k, v in expected.of(batch, n, seed).items()
                        if np.asarray(v).dtype != object})
    save_bundle(folder / "batches", tensors)
