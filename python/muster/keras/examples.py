"""A batch on which functions are tried: the caller's, or a random one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Mapping, Optional

import keras
import numpy as np
import tensorflow as tf

from muster.keras import checks, functions
from muster.keras.fields import Field, Port, Ports
from muster.keras.lookups import Lookup

_ROWS = 8
_LENGTH = 5  # for any length
_SEED = 1


@dataclass(frozen=True)
class Batch:
    """Values by name, and in the structures that the model and its loss take."""

    inputs: Dict[str, Any]
    labels: Dict[str, Any]
    weight: Optional[Any]
    model_inputs: Any
    model_labels: Any

    ports: Ports
    label_ports: Ports

    @property
    def count(self) -> int:
        return len(next(iter(self.inputs.values())))

    def rows(self, rows: slice) -> Batch:
        """Returns some of its rows."""
        inputs = {name: value[rows] for name, value in self.inputs.items()}
        labels = {name: value[rows] for name, value in self.labels.items()}
        weight = None if self.weight is None else self.weight[rows]
        return make(self.ports, self.label_ports, inputs, labels, weight)

    def arguments(self) -> Dict[str, Any]:
        """Returns the values by the names of functions' arguments."""
        named = {f"input_{name}": value for name, value in self.inputs.items()}
        named.update({f"label_{name}": value for name, value in self.labels.items()})
        if self.weight is not None:
            named["sample_weight"] = self.weight
        return named


def make(
    ports: Ports, label_ports: Ports, inputs: Dict[str, Any], labels: Dict[str, Any], weight: Any
) -> Batch:
    packed = ports.pack(inputs), label_ports.pack(labels)
    return Batch(inputs, labels, weight, *packed, ports, label_ports)


def predict_once(model: Any, ports: Ports, example: Any) -> None:
    """Calls the model with the example, or with zeros, so that it has all its variables. Raises
    ValueError if it cannot predict."""
    given = _given_inputs(ports, example)
    known = _known(model)
    values = {
        port.name: _typed(port, given[port.name])
        if given
        else _zeros(port, known.get(port.name))
        for port in ports.all
    }
    _try(lambda: functions.call(model, ports.pack(values), False), example)


def label_field(predictions: Any, sparse: bool) -> Callable[[str, str], Field]:
    """Returns a function that makes a label's Field from the predictions for it."""

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
    """Returns `example`, as muster.keras.export takes it, or random numbers that the model can
    take."""
    if example is not None:
        return _given(ports, labels, weight, example)
    random = np.random.default_rng(_SEED)
    known = _known(model)
    inputs = {
        port.name: _random(port, random, _limit(port, found), known.get(port.name))
        for port in ports.all
    }
    predictions = _try(lambda: functions.call(model, ports.pack(inputs), False), None)
    flat = keras.tree.flatten(predictions)
    values = {}
    for i, port in enumerate(labels.all):
        of = flat[i] if len(labels.all) == len(flat) else flat[0]
        if isinstance(predictions, Mapping) and port.name in predictions:
            of = predictions[port.name]
        classes = int(of.shape[-1]) if of.shape.rank and of.shape[-1] else 2
        rows_of = [lookup.table.shape[0] for lookup in found if lookup.label == port.name]
        if rows_of:
            values[port.name] = _random(port, random, min(rows_of))
        elif port.dtype.startswith("float"):
            values[port.name] = random.integers(0, 2, _shape(port)).astype(port.dtype)
        else:
            values[port.name] = _random(port, random, max(2, classes))
    rows = None
    if weight is not None:
        rows = random.uniform(0.5, 1.5, _shape(weight)).astype(weight.dtype)
    return make(ports, labels, inputs, values, rows)


def _given(ports: Ports, labels: Ports, weight: Optional[Port], example: Any) -> Batch:
    if not labels.all and isinstance(example, (list, tuple)) and len(example) == 1:
        example = (*example, None)
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
    return make(ports, labels, inputs, values, rows)


def _given_inputs(ports: Ports, example: Any) -> Dict[str, Any]:
    if example is None:
        return {}
    if not isinstance(example, (list, tuple)) or not example:
        raise ValueError("example: (inputs, label) or (inputs, label, sample_weight) is wanted")
    return ports.unpack(example[0])


def _typed(port: Port, value: Any) -> Any:
    """Returns an array of the port's dtype. Raises ValueError if the shape differs."""
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


def _known(model: Any) -> Dict[str, Any]:
    """Returns, by input, the values that a lookup layer without an out-of-vocabulary index knows.
    """
    known: Dict[str, Any] = {}
    for layer in checks.layers_of(model):
        if getattr(layer, "num_oov_indices", None) != 0 or not hasattr(layer, "get_vocabulary"):
            continue
        words = layer.get_vocabulary(include_special_tokens=False)
        for node in getattr(layer, "_inbound_nodes", []):
            for tensor in node.input_tensors:
                if isinstance(tensor._keras_history.operation, keras.layers.InputLayer):
                    known[str(tensor.name)] = words
    return known


def _zeros(port: Port, known: Any) -> Any:
    if known:
        return np.full(_shape(port), known[0], dtype=_numpy_type(port))
    if port.dtype == "string":
        return np.full(_shape(port), b"", dtype=object)
    return np.zeros(_shape(port), tf.as_dtype(port.dtype).as_numpy_dtype)


def _limit(port: Port, found: List[Lookup]) -> int:
    """Returns a number below which ids are in every table that is looked up by this input."""
    rows = [lookup.table.shape[0] for lookup in found if lookup.input == port.name]
    return min(rows) if rows else (256 if port.dtype == "uint8" else 2)


def _numpy_type(port: Port) -> Any:
    return object if port.dtype == "string" else tf.as_dtype(port.dtype).as_numpy_dtype


def _random(port: Port, random: Any, limit: int, known: Any = None) -> Any:
    shape = _shape(port)
    if known:
        return random.choice(np.array(known, dtype=_numpy_type(port)), shape)
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
