"""Writes and reads the export's manifest and initial values."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, List, Optional

import keras
import tensorflow as tf

from muster.keras.fields import Port
from muster.keras.functions import Functions
from muster.keras.graph import Graph
from muster.keras.metrics import Metric
from muster.keras.variables import Variables

FORMAT = "muster.keras"
VERSION = 1
FILE = "model.json"
WEIGHTS = "weights"


def content(
    functions: Functions,
    key: Optional[Port],
    optimizer: Dict[str, Any],
    metrics: List[Metric],
    graph: Graph,
) -> Dict[str, Any]:
    """Returns the manifest of traced functions; `optimizer` is its entry."""
    model, weight = functions.model, functions.weight
    loss = functions.loss.manifest(functions.masked, weight is not None)
    by_batch = not loss["separable"] or not functions.loss.by_rows_alone
    return {
        "format": FORMAT,
        "version": VERSION,
        "tensorflow": tf.__version__,
        "keras": keras.__version__,
        "model": {"name": model.name, "class": type(model).__name__},
        "config": _config(model),
        "inputs": [port.entry() for port in functions.inputs.all],
        "labels": [port.entry() for port in functions.labels.all],
        "sample_weight": weight.entry() if weight else None,
        "key": key.entry() if key else None,
        "variables": [entry.manifest() for entry in functions.variables],
        "lookups": [lookup.manifest() for lookup in functions.lookups],
        "predictions": [
            {"name": one.name, "dtype": one.dtype, "shape": list(one.shape)}
            for one in functions.predictions
        ],
        "signatures": graph.signatures,
        "optimizer": optimizer,
        "loss": loss,
        "evaluates_by_batch": by_batch or any(metric.by_batch for metric in metrics),
        "metrics": [metric.manifest() for metric in metrics],
    }


def write(folder: str, manifest: Dict[str, Any]) -> None:
    with open(os.path.join(folder, FILE), "w", encoding="utf-8") as file:
        json.dump(manifest, file, indent=1, ensure_ascii=False, allow_nan=False)
        file.write("\n")


def read(folder: str) -> Dict[str, Any]:
    """Reads a manifest. Raises ValueError if it is not one of an export."""
    path = os.path.join(folder, FILE)
    try:
        with open(path, encoding="utf-8") as file:
            manifest = json.load(file)
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: cannot be read: {error}") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ValueError(f"{path}: not a model that muster.keras.export wrote")
    if manifest.get("version") != VERSION:
        raise ValueError(
            f"{path}: is of version {manifest.get('version')}, this Muster reads {VERSION}"
        )
    return manifest


def write_weights(folder: str, variables: Variables, slots: Dict[str, Any]) -> None:
    """Writes the bundle of initial values."""
    values = {entry.name: entry.variable.value for entry in variables}
    values.update({f"optimizer/{name}": slot for name, slot in slots.items()})
    names = sorted(values)
    tf.raw_ops.SaveV2(
        prefix=os.path.join(folder, WEIGHTS),
        tensor_names=names,
        shape_and_slices=[""] * len(names),
        tensors=[tf.convert_to_tensor(values[name]) for name in names],
    )


def _config(model: Any) -> Optional[Dict[str, Any]]:
    try:
        config = json.loads(model.to_json())
        json.dumps(config, allow_nan=False)
    except Exception:  # subclassed models, and layers without a complete config
        return None
    return config if isinstance(config, dict) else None
