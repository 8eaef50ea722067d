"""The predictions of a model, by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, List, Optional, Tuple

import keras
import tensorflow as tf

from muster.keras.tracing import Tensors


@dataclass(frozen=True)
class Prediction:
    name: str
    dtype: str
    shape: List[Optional[int]]


def described(tensors: Tensors) -> List[Prediction]:
    """Describes the tensors that `named` returns."""
    return [
        Prediction(name[len("output_") :], value.dtype.name, value.shape.as_list()[1:])
        for name, value in tensors.items()
    ]


def named(model: Any, predictions: Any) -> Tensors:
    """Returns each as `output_NAME`; 16-bit numbers become float32, which records can have."""
    flat = keras.tree.flatten(predictions)
    names = getattr(model, "output_names", None)
    if isinstance(predictions, dict):
        pairs = [pair for name, value in predictions.items() for pair in _named(name, value)]
        names, flat = [name for name, _ in pairs], [value for _, value in pairs]
    elif names is None or len(names) != len(flat):
        names = [str(i) for i in range(len(flat))] if len(flat) > 1 else ["output"]
    if any(not isinstance(one, tf.Tensor) for one in flat):
        raise ValueError("the model's predictions must be dense tensors, in a list or a dict")
    return {f"output_{name}": _written(one) for name, one in zip(names, flat)}


def _named(name: str, value: Any) -> List[Tuple[str, Any]]:
    """Returns each tensor of a prediction by name; one with both scores and ids gives NAME_0 and
    NAME_1."""
    flat = keras.tree.flatten(value)
    if len(flat) == 1:
        return [(str(name), flat[0])]
    return [(f"{name}_{i}", one) for i, one in enumerate(flat)]


def _written(prediction: Any) -> Any:
    if prediction.dtype in (tf.bfloat16, tf.float16):
        return tf.cast(prediction, tf.float32)
    return tf.identity(prediction)
