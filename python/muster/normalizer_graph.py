"""What a normalizer_fn with TensorFlow's functions, such as tf.cast, computes.

It is called once with a placeholder, and the graph that it makes is read.
"""

from __future__ import annotations

import operator
import sys
from typing import Any, Callable, Dict, Optional

from muster.normalizer import Normalizer

_OPERATIONS: Dict[str, Callable[..., Any]] = {
    "Add": operator.add,
    "AddV2": operator.add,
    "Identity": lambda x: x,
    "Log1p": lambda x: x.log1p(),
    "Mul": operator.mul,
    "RealDiv": operator.truediv,
    "Sub": operator.sub,
}


def trace_graph(function: Callable[[Any], Any]) -> Optional[Any]:
    """Returns the Normalizer (or the number) that the function computes; None without TensorFlow.

    Raises what the function raises, and TypeError for an operation that is not one of a Normalizer.
    """
    tf = sys.modules.get("tensorflow")
    if tf is None:
        return None
    with tf.Graph().as_default():
        x = tf.compat.v1.placeholder(tf.float32, [None, 1])
        return _value(tf, function(x), x)


def _value(tf: Any, tensor: Any, x: Any) -> Any:
    if tensor is x:
        return Normalizer()
    operation = tensor.op
    if operation.type == "Const":
        return float(tf.make_ndarray(operation.get_attr("value")))
    values = [_value(tf, given, x) for given in operation.inputs]
    if operation.type == "Cast" and tensor.dtype in (tf.float32, tf.float64):
        return values[0]
    if operation.type not in _OPERATIONS:
        kind = f"Cast to {tensor.dtype.name}" if operation.type == "Cast" else operation.type
        raise TypeError(f"{kind} of TensorFlow")
    return _OPERATIONS[operation.type](*values)
