"""Keras metrics as sums: what a batch adds to a metric's states, and the value for given states."""

from __future__ import annotations

import re
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

import keras
import numpy as np
import tensorflow as tf

from muster.keras import tracing
from muster.keras.tracing import Tensors, Traced

_ACCURACY = ("accuracy", "acc")
_CROSSENTROPY = ("crossentropy", "ce")
_FIRST, _SECOND = slice(None, 1), slice(1, None)  # ranges of the rows of an example


class Metric:
    """Metric number M, for the output at `key` of the model's predictions (or the only output) and
    the label at `label_key`."""

    def __init__(self, index: int, metric: Any, key: Any, label_key: Any, name: str) -> None:
        self.name = name
        self._index = index
        self._metric = metric
        self._key, self._label_key = key, label_key
        self.by_batch = False  # whether its value depends on how rows are split into batches
        self._seeds = [
            (generator.state, np.array(generator.state))
            for generator in vars(metric).values()
            if isinstance(generator, keras.random.SeedGenerator)
        ]

    def prepare(self, labels: Any, predictions: Any) -> None:
        """Makes the metric's variables, from an example. Raises ValueError for a metric that cannot
        be exported, or whose states do not add up over batches."""
        try:
            one, two = (self._eager(labels, predictions, half) for half in (_FIRST, _SECOND))
            in_turn = self._eager(labels, predictions, _FIRST, _SECOND)
            at_once = self._eager(labels, predictions, slice(None))
        except Exception as error:
            raise ValueError(
                f"metric '{self.name}' cannot be computed of labels "
                f"{_shapes(_at(labels, self._label_key))} and predictions "
                f"{_shapes(_at(predictions, self._key))}: {error}; for a label of another "
                "shape say label=muster.keras.Field(feature, dtype, shape)"
            ) from error
        self._metric.reset_state()
        self._check_captures(labels, predictions)
        empty = [np.asarray(v) for v in self._metric.variables]
        sums = [a.astype(np.float64) + b for a, b in zip(one, two)]
        if any(zero.any() for zero in empty) or not _near(sums, in_turn):
            raise ValueError(
                f"metric '{self.name}' cannot be added up over batches (the states of two batches do "
                "not sum up to those of both): leave it out of metrics="
            )
        self.by_batch = not _near(at_once, in_turn)

    def _check_captures(self, labels: Any, predictions: Any) -> None:
        """Checks that its update is a function of labels and predictions."""
        given = [_at(labels, self._label_key), _at(predictions, self._key)]
        flat = keras.tree.flatten(given)

        def body(arguments: Tensors) -> Tensors:
            label, prediction = keras.tree.pack_sequence_as(given, list(arguments.values()))
            return self._added(label, prediction)

        specs = {f"given_{i}": tf.TensorSpec(one.shape, one.dtype) for i, one in enumerate(flat)}
        for variable in tracing.trace(specs, body).graph.variables:
            if "seed_generator" in variable.name:
                raise ValueError(
                    f"metric '{self.name}' draws random numbers with Keras's global seed, so that an "
                    "evaluation could not be repeated: give it a keras.random.SeedGenerator as an "
                    "attribute, and seed=that"
                )
            raise ValueError(
                f"metric '{self.name}' reads the variable '{variable.name}', which is none of its "
                "own: make it with the metric's add_variable"
            )

    def increments(self, labels: Any, predictions: Any) -> Tensors:
        return self._added(_at(labels, self._label_key), _at(predictions, self._key))

    def _added(self, label: Any, prediction: Any) -> Tensors:
        """Returns what these add to the states. A metric that draws random numbers (for ties in
        rankings) draws the same ones each time."""
        variables = self._metric.variables
        zeros = [tf.zeros(v.shape, v.dtype) for v in variables]
        seeds = [(variable, tf.constant(value)) for variable, value in self._seeds]
        with keras.StatelessScope(state_mapping=[*zip(variables, zeros), *seeds]) as scope:
            self._metric.update_state(label, prediction)
        return {
            name: tf.cast(scope.get_current_value(variable), tf.float32)
            for (name, _), variable in zip(self._states(), variables)
        }

    def result(self) -> Tuple[str, Traced]:
        """Returns the signature that computes the value, and its name."""

        def body(arguments: Tensors) -> Tensors:
            states = [
                tf.cast(arguments[name], v.dtype)
                for (name, _), v in zip(self._states(), self._metric.variables)
            ]
            value = self._metric.stateless_result(states)
            if isinstance(value, Mapping) or value.shape.rank != 0:
                advice = "leave it out of metrics="
                if getattr(self._metric, "average", "") is None:
                    advice = "say average='macro', 'micro' or 'weighted'"
                raise ValueError(f"metric '{self.name}' gives more than one number: {advice}")
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

    def _eager(self, labels: Any, predictions: Any, *parts: slice) -> List[Any]:
        """Returns the states after these parts of the rows, each with the same random numbers."""
        label, prediction = _at(labels, self._label_key), _at(predictions, self._key)
        self._metric.reset_state()
        for rows in parts:
            self._metric.update_state(_rows(label, rows), _rows(prediction, rows))
            for variable, value in self._seeds:
                variable.assign(value)
        return [np.array(variable) for variable in self._metric.variables]


def resolve(
    given: Any, labels: Any, predictions: Any, outputs: Optional[List[str]]
) -> List[Metric]:
    """Resolves `given`, as `compile(metrics=...)` takes it, for labels and predictions of an
    example; `names` are those of the model's outputs, if it has any. A metric has the name that
    Keras shows."""
    found: List[Metric] = []
    several = isinstance(predictions, (Mapping, list, tuple))
    names = outputs if outputs and several and len(outputs) == len(predictions) else []

    def add(one: Any, key: Any, prefix: str) -> None:
        label_key = _label_key(labels, key, names)
        metric = _metric(one, _at(labels, label_key), _at(predictions, key))
        name = _unique(f"{prefix}{metric.name}", [other.name for other in found])
        made = Metric(len(found), metric, key, label_key, name)
        made.prepare(labels, predictions)
        found.append(made)

    if given is None:
        return found
    if labels is None:
        raise ValueError("metrics: there is no label that they could compare with: say label=")
    if not several:
        if isinstance(given, Mapping):
            for key in given:
                _check_output(key, outputs or ["one without a name"])
            (given,) = given.values()
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
    there = predictions if isinstance(predictions, Mapping) else range(len(predictions))
    for key, some in places:
        by_name = isinstance(key, str) and not isinstance(predictions, Mapping)
        _check_output(key, names if by_name else [*there])
        key = names.index(key) if by_name else key
        for one in some if isinstance(some, (list, tuple)) else [some]:
            if one is not None:
                add(one, key, f"{names[key] if names and isinstance(key, int) else key}_")
    return found


def _check_output(key: Any, there: Sequence[Any]) -> None:
    if key not in there:
        raise ValueError(f"metrics: there is no output '{key}', only {[*there]}")


def _label_key(labels: Any, key: Any, names: List[str]) -> Any:
    """Returns the key of the label for the output at `key`; None: all outputs have the same label.
    """
    if key is None or not isinstance(labels, (Mapping, list, tuple)):
        return None
    there = labels if isinstance(labels, Mapping) else range(len(labels))
    for one in (key, names[key] if names and isinstance(key, int) else key):
        if one in there:
            return one
    raise ValueError(
        f"metrics: the output '{one}' has no label of its name, only {list(there)}: name one so in "
        "label="
    )


def _at(structure: Any, key: Any) -> Any:
    return structure if key is None else structure[key]


def _metric(given: Any, label: Any, prediction: Any) -> Any:
    if isinstance(given, keras.metrics.Metric):
        return given
    if isinstance(given, str) and given in _ACCURACY + _CROSSENTROPY:
        return _by_shape(given, label, prediction)
    metric: Any = keras.metrics.get(given)
    if not isinstance(metric, keras.metrics.Metric):
        metric = keras.metrics.MeanMetricWrapper(metric, name=_snake_case(metric))
    if isinstance(given, str):
        metric.name = given
    return metric


def _by_shape(word: str, label: Any, prediction: Any) -> Any:
    """Applies Keras's rule for 'accuracy' and 'crossentropy'."""
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


def _snake_case(function: Any) -> str:
    """Returns a function's name in Keras's spelling."""
    name = re.sub(r"\W+", "", str(getattr(function, "__name__", type(function).__name__)))
    name = re.sub("(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub("([a-z])([A-Z])", r"\1_\2", name).lower()


def _rows(structure: Any, rows: slice) -> Any:
    return keras.tree.map_structure(lambda one: one[rows], structure)


def _shapes(structure: Any) -> str:
    return ", ".join(str(list(one.shape)) for one in keras.tree.flatten(structure))


def _near(one: List[Any], two: List[Any]) -> bool:
    return all(np.allclose(a, b, rtol=1e-4, atol=1e-5) for a, b in zip(one, two))


def _unique(name: str, taken: List[str]) -> str:
    unique, number = name, 1
    while unique in taken:
        unique, number = f"{name}_{number}", number + 1
    return unique
