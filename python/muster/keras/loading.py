"""Loads weights from checkpoints and SavedModels into a Keras model."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Optional, Tuple

import numpy as np
import tensorflow as tf

from muster.keras import checks, manifest, serving
from muster.keras.variables import DENSE, SEED, TABLE, Entry, Variables


def load(path: str, model: Any, export: Optional[str]) -> None:
    """See muster.keras.load."""
    checks.check_built(model)
    variables = Variables(model)
    prefix, keys = _find(path, variables)
    if keys is None:
        keys = [entry.name for entry in variables]
        names = _names(path if export is None and _has_manifest(path) else export)
        if names is not None:
            keys = names
    if len(keys) != len(variables):
        raise ValueError(
            f"{path}: is of a model with {len(keys)} variables, '{model.name}' has {len(variables)}"
        )
    constants = _constants(export or _export_beside(prefix))
    reader = _open(prefix)
    shapes = reader.get_variable_to_shape_map()
    values: List[Tuple[Entry, Any]] = []
    for entry, key in zip(variables, keys):
        if key in shapes:
            value = np.asarray(reader.get_tensor(key))
        elif key in constants:
            value = constants[key]
        elif entry.kind == SEED or entry.dtype != "float32":
            continue  # training does not change it
        else:
            raise ValueError(_missing(prefix, key, shapes, entry))
        if list(value.shape) != entry.shape or value.dtype != entry.variable.numpy().dtype:
            raise ValueError(
                f"{prefix}: '{key}' is {value.dtype} {list(value.shape)}, '{entry.name}' of "
                f"'{model.name}' is {entry.dtype} {entry.shape}"
            )
        values.append((entry, value))
    for entry, value in values:
        entry.variable.assign(value)


def _export_beside(prefix: str) -> Optional[str]:
    """Returns the export in the model folder that contains the checkpoint."""
    export = os.path.join(os.path.dirname(prefix), "exported")
    return export if _has_manifest(export) else None


def _constants(export: Optional[str]) -> Dict[str, Any]:
    """Returns by name the values of an export that training does not change: frozen weights,
    statistics of adapted layers. Checkpoints do not contain them."""
    if export is None:
        return {}
    reader = _open(os.path.join(export, manifest.WEIGHTS))
    return {
        str(entry["name"]): np.asarray(reader.get_tensor(entry["name"]))
        for entry in manifest.read(export)["variables"]
        if not entry["trainable"] and entry["kind"] in (DENSE, TABLE)
    }


def _missing(prefix: str, key: str, shapes: Dict[str, Any], entry: Entry) -> str:
    advice = (
        "give the layers the names that they had when the model was exported, or manifest= what was "
        "exported then"
    )
    if not entry.variable.trainable:
        advice = (
            "what is not trained is in what was exported, in the model folder's 'exported' if it is "
            "not given as manifest=; or the layers had other names then"
        )
    return f"{prefix}: has no '{key}' (it has {_some(shapes)}): {advice}"


def _find(path: str, variables: Variables) -> Tuple[str, Optional[List[str]]]:
    """Returns a bundle's prefix and, if its keys are not names, the keys in the order of variables.
    """
    if _has_manifest(path):
        return os.path.join(path, manifest.WEIGHTS), None
    saved = os.path.join(path, "variables", "variables")
    if os.path.exists(f"{saved}.index"):
        count = sum(key.startswith("vars/") for key in _open(saved).get_variable_to_shape_map())
        if not count:
            raise ValueError(
                f"{path}: a SavedModel, but none that Muster exported from a Keras model"
            )
        return saved, [serving.KEY.format(i) for i in range(count)]
    if os.path.isdir(path):
        latest = tf.train.latest_checkpoint(path)
        if latest is None:
            raise ValueError(f"{path}: holds no checkpoint, no SavedModel and no export")
        return str(latest), None
    if os.path.exists(f"{path}.index"):
        return path, None
    raise ValueError(
        f"{path}: there is no checkpoint ({path}.index), no SavedModel and no export there"
    )


def _has_manifest(path: str) -> bool:
    return os.path.exists(os.path.join(path, manifest.FILE))


def _names(export: Optional[str]) -> Optional[List[str]]:
    """Returns the names of an export's variables, in order."""
    if export is None:
        return None
    return [str(entry["name"]) for entry in manifest.read(export)["variables"]]


def _open(prefix: str) -> Any:
    try:
        return tf.train.load_checkpoint(prefix)
    except Exception as error:
        raise ValueError(f"{prefix}: cannot be read: {error}") from error


def _some(shapes: Dict[str, Any]) -> str:
    names = sorted(name for name in shapes if not name.startswith("_"))
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
