"""Exports every model of testbed/exports/accepted.py with muster.keras.export, makes batches for it,
and computes what Python's TensorFlow makes of them: FOLDER/NAME/export and FOLDER/NAME/batches.

    export_keras.py FOLDER [NAME...]    run by the current TensorFlow, PYTHONPATH with the root and python/
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
from expected_results import save_batches

import muster.keras
from testbed.exports import accepted

LENGTH = 5  # for any length


def make_column(random: Any, about: dict[str, Any], rows: int) -> Any:
    """Returns small numbers, which are ids in every table."""
    shape = [rows, *(LENGTH if size is None else size for size in about["shape"])]
    if about["dtype"] == "string":
        return np.array(random.choice(["a", "b", "the cat"], shape), dtype=object)
    if about["dtype"].startswith("float"):
        return random.uniform(0, 1, shape).astype(about["dtype"])
    values = random.integers(0, 2, shape)
    values[0] = 1 - values[1]  # so that the two rows differ
    return values.astype(about["dtype"])


def make_batch(manifest: dict[str, Any], random: Any, rows: int) -> dict[str, Any]:
    batch = {f"input/{c['name']}": make_column(random, c, rows) for c in manifest["inputs"]}
    for about in manifest["labels"]:
        label = make_column(random, about, rows)
        batch[f"label/{about['name']}"] = np.round(label) if label.dtype.kind == "f" else label
    if manifest["sample_weight"]:
        batch["sample_weight"] = make_column(random, manifest["sample_weight"], rows)
    return batch


def main(folder: pathlib.Path, *names: str) -> None:
    for name in names or accepted.CASES:
        keras.utils.clear_session()
        keras.utils.set_random_seed(7)
        case = accepted.CASES[name]()
        place = folder / name
        place.mkdir()
        export = place / "export"
        muster.keras.export(case.model, case.optimizer, case.loss, export, **case.options)
        manifest = json.loads((export / "model.json").read_text(encoding="utf-8"))
        random = np.random.default_rng(7)
        save_batches(place, [make_batch(manifest, random, rows) for rows in (5, 6)])


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), *sys.argv[2:])
