"""A batch to try functions on: the caller's, or made up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Mapping, Optional

import keras
import numpy as np
import tensorflow as tf

from muster.keras import functions
from muster.keras.fields import Field, Port, Ports
from muster.keras.lookups import Lookup

_ROWS = 8
_LENGTH = 5  # of what may have any length
_SEED = 1


@dataclass(frozen=True)
class Batch:
    """Values by name, and in the structures that the model and its loss take."""

    inputs: Dict[str, Any]
    labels: Dict[str, Any]
    weight: Optional[Any]
    model_inputs: Any
    model_labels: Any

    def arguments(self) -> Dict[str, Any]:
        """By the names that functions have for them."""
        named = {f"input_{name}": value for name, value in self.inputs.items()}
        named.update({f"label_{name}": value for name, value in self.labels.items()})
        if self.weight is not None:
            named["sample_weight"] = self.weight
        return named


def predict_once(model: Any, ports: Ports, example: Any) -> None:
    """Calls the model with the example, or with zeros, so that it has all its variables. Raises
    ValueError where it cannot predict."""
    given = _given_inputs(ports, example)
    values = {
        port.name: _typed(port, given[port.name]) if given else _zeros(port) for port in ports.all
    }
    _try(lambda: functions.call(model, ports.pack(values), False), example)


def label_field(predictions: Any, sparse: bool) -> Callable[[str, str], Field]:
    """Makes a label's Field from the predictions that it is for."""

    def make(name: str, feature: str) -> Field:
        one = predictions
        if isinstance(predictions, Mapping) and name in predictions:
            one = predictions[name]
        if not isinstance(one, tf.Tensor):
            raise ValueError(
                f"label: of '{feature}' type and shape are not known, since the model has several "
                f"outputs: give muster.keras.Field('{feature}', dtype, shape)"
            )
        shape = [None if length is None else int(length) for length in one.shape[1:]]
        if sparse and shape and shape[-1] != 1:
            return Field(feature, "int64", tuple(shape[:-1]))
        return Field(feature, "float32", tuple(shape[:-1] if shape[-1:] == [1] else shape))

    return make


def batch(
    model: Any,
    found: List[Lookup],
    ports: Ports,
    labels: Ports,
    weight: Optional[Port],
    example: Any,
) -> Batch:
    """`example` as muster.keras.export takes it, else random numbers that the model can take."""
    if example is not None:
        return _given(ports, labels, weight, example)
    random = np.random.default_rng(_SEED)
    inputs = {port.name: _random(port, random, _limit(port, found)) for port in ports.all}
    predictions = _try(lambda: functions.call(model, ports.pack(inputs), False), None)
    flat = keras.tree.flatten(predictions)
    values = {}
    for i, port in enumerate(labels.all):
        of = flat[i] if len(labels.all) == len(flat) else flat[0]
        if isinstance(predictions, Mapping) and port.name in predictions:
            of = predictions[port.name]
        classes = int(of.shape[-1]) if of.shape.rank and of.shape[-1] else 2
        if port.dtype.startswith("float"):
            values[port.name] = random.integers(0, 2, _shape(port)).astype(port.dtype)
        else:
            values[port.name] = _random(port, random, max(2, classes))
    rows = None
    if weight is not None:
        rows = random.uniform(0.5, 1.5, _ROWS).astype(weight.dtype)
    return Batch(inputs, values, rows, ports.pack(inputs), labels.pack(values))


def _given(ports: Ports, labels: Ports, weight: Optional[Port], example: Any) -> Batch:
    if not isinstance(example, (list, tuple)) or len(example) != (3 if weight else 2):
        raise ValueError(
            "example: (inputs, label" + (", sample_weight" if weight else "") + ") is wanted"
        )
    given = ports.unpack(example[0])
    inputs = {port.name: _typed(port, given[port.name]) for port in ports.all}
    wanted = labels.unpack(example[1])
    values = {port.name: _typed(port, wanted[port.name]) for port in labels.all}
    rows = _typed(weight, example[2]) if weight else None
    counts = {len(value) for value in [*inputs.values(), *values.values()]}
    if len(counts) != 1 or 0 in counts:
        raise ValueError(f"example: inputs and labels have different numbers of rows: {counts}")
    return Batch(inputs, values, rows, ports.pack(inputs), labels.pack(values))


def _given_inputs(ports: Ports, example: Any) -> Dict[str, Any]:
    if example is None:
        return {}
    if not isinstance(example, (list, tuple)) or len(example) < 2:
        raise ValueError("example: (inputs, label) or (inputs, label, sample_weight) is wanted")
    return ports.unpack(example[0])


def _typed(port: Port, value: Any) -> Any:
    """As an array of the port's dtype. Raises ValueError for another shape."""
    array = np.asarray(value)
    if port.dtype != "string":
        array = array.astype(tf.as_dtype(port.dtype).as_numpy_dtype)
    fits = len(array.shape) == len(port.shape) + 1 and all(
        want is None or want == have for want, have in zip(port.shape, array.shape[1:])
    )
    if not fits:
        raise ValueError(
            f"example: '{port.name}' has shape {list(array.shape)}; a batch of {list(port.shape)} is "
            "wanted"
        )
    return array


def _shape(port: Port) -> List[int]:
    return [_ROWS, *(_LENGTH if length is None else length for length in port.shape)]


def _zeros(port: Port) -> Any:
    if port.dtype == "string":
        return np.full(_shape(port), b"", dtype=object)
    return np.zeros(_shape(port), tf.as_dtype(port.dtype).as_numpy_dtype)


def _limit(port: Port, found: List[Lookup]) -> int:
    """Ids below it are in every table that is looked up by this input."""
    rows = [lookup.table.shape[0] for lookup in found if lookup.input == port.name]
    return min(rows) if rows else (256 if port.dtype == "uint8" else 2)


def _random(port: Port, random: Any, limit: int) -> Any:
    shape = _shape(port)
    if port.dtype == "string":
        return random.choice(np.array([b"a", b"b", b"c d"], dtype=object), shape)
    kind = tf.as_dtype(port.dtype)
    if kind.is_integer or kind == tf.bool:
        return random.integers(0, limit, shape).astype(kind.as_numpy_dtype)
    return random.normal(size=shape).astype(kind.as_numpy_dtype)


def _try(function: Callable[[], Any], example: Any) -> Any:
    try:
        return function()
    except Exception as error:
        whose = "the example" if example is not None else "made-up inputs (give example=)"
        raise ValueError(f"the model cannot predict for {whose}: {error}") from error
