"""The SavedModel for serving: raw variables, whose values any program can write."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional

import tensorflow as tf

from muster.keras import checks, decoding
from muster.keras.fields import Port
from muster.keras.functions import Functions

# Names of the folder in an export, which show that the values are initial ones.
FOLDER = "before_training"
# The key of variable N in the bundle variables/variables.
KEY = "vars/{}/.ATTRIBUTES/VARIABLE_VALUE"


def save(folder: str, functions: Functions) -> None:
    """Writes copies, since Keras's own variables would be restored by its rules, not by their keys.
    """
    root = tf.Module()
    root.vars = [
        tf.Variable(entry.variable.value, trainable=False, name=f"v{entry.index}")
        for entry in functions.variables
    ]
    root.tables = _tables(functions.model)

    def predict(values: Dict[str, Any]) -> Dict[str, Any]:
        current = {i: variable.read_value() for i, variable in enumerate(root.vars)}
        return functions.serve(current, values)

    inputs = functions.inputs.all
    names = [port.name for port in inputs]

    def raw(*tensors: Any) -> Dict[str, Any]:
        return predict(dict(zip(names, tensors)))

    specs = [
        tf.TensorSpec([None, *port.shape], tf.as_dtype(port.dtype), port.name) for port in inputs
    ]
    signatures = {"serving_default": _function(raw, specs)}
    features = _features(inputs)
    if features is not None:

        def parse(examples: Any) -> Dict[str, Any]:
            parsed = tf.io.parse_example(examples, features)
            return predict({port.name: _value(port, parsed[port.feature]) for port in inputs})

        signatures["parse_examples"] = _function(
            parse, [tf.TensorSpec([None], tf.string, "examples")]
        )
    tf.saved_model.save(root, folder, signatures=signatures)


def _function(body: Callable[..., Any], specs: List[Any]) -> Any:
    function = tf.function(body, input_signature=specs, autograph=False)
    return function.get_concrete_function()


def _tables(model: Any) -> List[Any]:
    """Returns the hash tables of lookup layers, which the SavedModel must have too."""
    kind = tf.saved_model.experimental.TrackableResource
    found: List[Any] = []
    for layer in checks.layers_of(model):
        for value in vars(layer).values():
            if isinstance(value, kind) and not any(value is other for other in found):
                found.append(value)
    return found


def _features(ports: List[Port]) -> Optional[Dict[str, Any]]:
    """Returns the arguments of tf.io.parse_example; None if an input cannot be a feature."""
    features: Dict[str, Any] = {}
    for port in ports:
        feature = _feature(port)
        if feature is None or features.get(port.feature, feature) != feature:
            return None
        features[port.feature] = feature
    return features


def _feature(port: Port) -> Any:
    if port.decode is not None:
        return tf.io.FixedLenFeature([], tf.string)
    kind = tf.as_dtype(port.dtype)
    if kind == tf.string:
        stored = tf.string
    elif kind.is_integer or kind == tf.bool:
        stored = tf.int64
    elif kind.is_floating:
        stored = tf.float32
    else:
        return None
    if None in port.shape[1:]:
        return None
    if port.shape and port.shape[0] is None:
        return tf.io.FixedLenSequenceFeature(list(port.shape[1:]), stored, allow_missing=True)
    return tf.io.FixedLenFeature(list(port.shape), stored)


def _value(port: Port, parsed: Any) -> Any:
    kind = tf.as_dtype(port.dtype)
    if port.decode is not None:
        return tf.map_fn(
            lambda content: decoding.decode(port, content), parsed, fn_output_signature=kind
        )
    return parsed if parsed.dtype == kind else tf.cast(parsed, kind)
