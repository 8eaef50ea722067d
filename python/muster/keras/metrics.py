"""Keras metrics as sums: what a batch adds to a metric's states, and the value of the states."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Tuple

import keras
import numpy as np
import tensorflow as tf

from muster.keras import tracing
from muster.keras.tracing import Tensors, Traced

_ACCURACY = ("accuracy", "acc")
_CROSSENTROPY = ("crossentropy", "ce")


class Metric:
    """The M-th metric, of the output at `key` of the model's predictions, or of the only one."""

    def __init__(self, index: int, metric: Any, key: Any, name: str) -> None:
        self.name = name
        self._index = index
        self._metric = metric
        self._key = key

    def prepare(self, labels: Any, predictions: Any) -> None:
        """Of an example; makes the metric's variables. Raises ValueError when its states cannot
        be added up over batches."""
        self._metric.reset_state()
        one, two = (self._eager(labels, predictions, half) for half in (0, 1))
        both = self._eager(labels, predictions, None)
        self._metric.reset_state()
        empty = [np.asarray(v) for v in self._metric.variables]
        sums = [a.astype(np.float64) + b for a, b in zip(one, two)]
        for zero, have, want in zip(empty, sums, both):
            if zero.any() or not np.allclose(have, want, rtol=1e-4, atol=1e-5):
                raise ValueError(
                    f"metric '{self.name}' cannot be added up over batches (the states of two "
                    "batches do not sum up to those of both): leave it out of metrics="
                )

    def increments(self, labels: Any, predictions: Any) -> Tensors:
        label, prediction = self._pick(labels), self._pick(predictions)
        zeros = [tf.zeros(v.shape, v.dtype) for v in self._metric.variables]
        states = self._metric.stateless_update_state(zeros, label, prediction)
        return {
            name: tf.cast(state, tf.float32) for (name, _), state in zip(self._states(), states)
        }

    def result(self) -> Tuple[str, Traced]:
        """The signature of the value, and its name."""

        def body(arguments: Tensors) -> Tensors:
            states = [
                tf.cast(arguments[name], v.dtype)
                for (name, _), v in zip(self._states(), self._metric.variables)
            ]
            value = self._metric.stateless_result(states)
            if isinstance(value, Mapping) or value.shape.rank != 0:
                raise ValueError(
                    f"metric '{self.name}' gives more than one number: leave it out of metrics="
                )
            return {"value": tf.cast(value, tf.float32)}

        specs = {
            name: tracing.spec(shape, "float32", batch=False) for name, shape in self._states()
        }
        return f"result_{self._index}", tracing.trace(specs, body)

    def manifest(self) -> Dict[str, Any]:
        return {
            "name": self.name,
            "states": [{"name": name, "shape": shape} for name, shape in self._states()],
            "result": f"result_{self._index}",
        }

    def _states(self) -> List[Tuple[str, List[int]]]:
        return [
            (f"metric_{self._index}_{i}", [int(d) for d in variable.shape])
            for i, variable in enumerate(self._metric.variables)
        ]

    def _pick(self, structure: Any) -> Any:
        return structure if self._key is None else structure[self._key]

    def _eager(self, labels: Any, predictions: Any, half: Optional[int]) -> List[Any]:
        """The states after a half of the rows, or after all."""
        label, prediction = self._pick(labels), self._pick(predictions)
        middle = max(1, int(label.shape[0]) // 2)
        rows = {None: slice(None), 0: slice(None, middle), 1: slice(middle, None)}[half]
        self._metric.reset_state()
        self._metric.update_state(label[rows], prediction[rows])
        return [np.array(variable) for variable in self._metric.variables]


def resolve(given: Any, labels: Any, predictions: Any) -> List[Metric]:
    """`given` as `compile(metrics=...)` takes it; labels and predictions of an example."""
    found: List[Metric] = []

    def add(one: Any, key: Any, prefix: str) -> None:
        label = labels if key is None else labels[key]
        prediction = predictions if key is None else predictions[key]
        metric = _metric(one, label, prediction)
        name = _unique(f"{prefix}{metric.name}", [other.name for other in found])
        made = Metric(len(found), metric, key, name)
        made.prepare(labels, predictions)
        found.append(made)

    if given is None:
        return found
    if not isinstance(predictions, (Mapping, list, tuple)):
        for one in given if isinstance(given, (list, tuple)) else [given]:
            add(one, None, "")
        return found
    places: Any = given.items() if isinstance(given, Mapping) else None
    if places is None:
        if not isinstance(given, (list, tuple)) or len(given) != len(predictions):
            raise ValueError(
                "metrics: the model has several outputs: a dict or list of metrics an output is "
                "wanted"
            )
        places = zip(predictions if isinstance(predictions, Mapping) else range(len(given)), given)
    for key, some in places:
        if isinstance(predictions, Mapping) and key not in predictions:
            raise ValueError(f"metrics: there is no output '{key}', only {list(predictions)}")
        for one in some if isinstance(some, (list, tuple)) else [some]:
            if one is not None:
                add(one, key, f"{key}_")
    return found


def _metric(given: Any, label: Any, prediction: Any) -> Any:
    if isinstance(given, keras.metrics.Metric):
        return given
    if isinstance(given, str) and given in _ACCURACY + _CROSSENTROPY:
        return _by_shape(given, label, prediction)
    function: Any = keras.metrics.get(given)
    if isinstance(function, keras.metrics.Metric):
        return function
    return keras.metrics.MeanMetricWrapper(function, name=_name(function, given))


def _by_shape(word: str, label: Any, prediction: Any) -> Any:
    """Keras's rule for 'accuracy' and 'crossentropy'."""
    accuracy = word in _ACCURACY
    if prediction.shape[-1] == 1 or len(prediction.shape) == 1:
        kind = keras.metrics.BinaryAccuracy if accuracy else keras.metrics.BinaryCrossentropy
    elif len(label.shape) < len(prediction.shape) or label.shape[-1] == 1:
        kind = (
            keras.metrics.SparseCategoricalAccuracy
            if accuracy
            else keras.metrics.SparseCategoricalCrossentropy
        )
    else:
        kind = (
            keras.metrics.CategoricalAccuracy if accuracy else keras.metrics.CategoricalCrossentropy
        )
    return kind(name=word)


def _name(function: Any, given: Any) -> str:
    return given if isinstance(given, str) else str(getattr(function, "__name__", "metric"))


def _unique(name: str, taken: List[str]) -> str:
    unique, number = name, 1
    while unique in taken:
        unique, number = f"{name}_{number}", number + 1
    return unique
