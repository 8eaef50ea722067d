"""Trains a model with tables by Keras's optimizers, for comparison with the same training without
Keras: FOLDER/NAME/export, and 100 steps with batches of 40 rows (`whole`) or, in order, of 24 and
16 (`halves`), with the weights after them (`expected`, by the export's names).

train_keras.py FOLDER          run by the current TensorFlow, PYTHONPATH with the root and python/
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
from expected_results import save_bundle

import muster.keras
from testbed.exports import accepted

STEPS, ROWS, FIRST = 100, 40, 24
O = keras.optimizers


def adamw() -> Any:
    optimizer = O.AdamW(0.002, weight_decay=0.1)
    optimizer.exclude_from_weight_decay(var_names=["bias"])
    return optimizer


OPTIMIZERS = {
    "sgd_clipped_by_value": lambda: O.SGD(0.1, clipvalue=0.002),
    "sgd_clipped_by_norm": lambda: O.SGD(0.1, clipnorm=0.02),
    "momentum": lambda: O.SGD(0.05, momentum=0.9),
    "nesterov_clipped": lambda: O.SGD(0.05, momentum=0.9, nesterov=True, global_clipnorm=0.05),
    "adagrad": lambda: O.Adagrad(0.05),
    "adagrad_clipped_by_value": lambda: O.Adagrad(0.05, clipvalue=0.002),
    "adam": lambda: O.Adam(O.schedules.CosineDecay(0.001, 80, 0.1)),
    "adam_clipped_by_norm": lambda: O.Adam(0.001, clipnorm=0.02),
    "adamw": adamw,
    "rmsprop": lambda: O.RMSprop(0.001, weight_decay=0.05),
    "rmsprop_centered": lambda: O.RMSprop(0.001, momentum=0.5, centered=True, epsilon=1e-5),
    "ftrl": lambda: O.Ftrl(0.05, l1_regularization_strength=0.001, beta=0.1),
}


def train(name: str, folder: pathlib.Path) -> None:
    case = accepted.wide_deep(OPTIMIZERS[name]())
    model = case.model
    muster.keras.export(model, case.optimizer, case.loss, folder / "export", **case.options)
    manifest = json.loads((folder / "export/model.json").read_text(encoding="utf-8"))
    entries = manifest["variables"]
    assert sum(entry["kind"] == "table" for entry in entries) == 8
    [about] = manifest["labels"]
    model.compile(OPTIMIZERS[name](), case.loss)
    random = np.random.default_rng(12)
    bundles: dict[str, dict[str, Any]] = {"whole": {}, "halves": {}}
    for step in range(STEPS):
        ids = random.integers(0, 12, (ROWS, 4))
        label = random.integers(0, 2, ROWS).astype(about["dtype"])
        parts = {"whole": [(step, slice(None))],
                 "halves": [(2 * step, slice(FIRST)), (2 * step + 1, slice(FIRST, None))]}  # fmt: skip
        for bundle, cuts in parts.items():
            for number, rows in cuts:
                bundles[bundle][f"batch/{number}/input/ids"] = ids[rows]
                bundles[bundle][f"batch/{number}/label/{about['name']}"] = label[rows]
        model.train_on_batch(ids, label)
    for bundle, tensors in bundles.items():
        save_bundle(folder / bundle, tensors)
    variables = [*model.trainable_variables, *model.non_trainable_variables]
    trained = [v for v in variables if "seed" not in v.path]
    names = [entry["name"] for entry in entries if entry["kind"] != "seed"]
    assert len(names) == len(trained)
    save_bundle(folder / "expected", {n: v.numpy() for n, v in zip(names, trained)})


if __name__ == "__main__":
    for name in OPTIMIZERS:
        keras.utils.clear_session()
        keras.utils.set_random_seed(7)
        place = pathlib.Path(sys.argv[1]) / name
        place.mkdir()
        train(name, place)
