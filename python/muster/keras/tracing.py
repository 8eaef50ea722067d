"""Traces a function of named tensors into its own graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Mapping, Tuple

import tensorflow as tf

Tensors = Dict[str, Any]


@dataclass(frozen=True)
class Traced:
    """Placeholders by argument, results by name, and what the graph reads from outside: pairs of a
    tensor there and the placeholder that replaces it here."""

    function: Any  # keeps the graph alive
    inputs: Tensors
    outputs: Tensors
    captures: List[Tuple[Any, Any]]

    @property
    def graph(self) -> Any:
        return self.function.graph

    def with_outputs(self, outputs: Tensors) -> Traced:
        """Returns the same graph with other tensors as results."""
        return Traced(self.function, self.inputs, outputs, self.captures)


def trace(specs: Mapping[str, Any], body: Callable[[Tensors], Tensors]) -> Traced:
    """`body` takes and returns tensors by name; `specs` are tf.TensorSpecs."""
    names = list(specs)
    outputs: Tensors = {}

    def run(*tensors: Any) -> List[Any]:
        outputs.clear()
        outputs.update(body(dict(zip(names, tensors))))
        return list(outputs.values())

    signature = [tf.TensorSpec(s.shape, s.dtype, _plain(name)) for name, s in specs.items()]
    function = tf.function(run, input_signature=signature, autograph=False)
    concrete = function.get_concrete_function()
    inputs = dict(zip(names, concrete.inputs))
    return Traced(concrete, inputs, dict(outputs), list(concrete.graph.captures))


def spec(shape: Any, dtype: str, batch: bool = True) -> Any:
    """Returns the spec for a shape without the batch."""
    return tf.TensorSpec([None, *shape] if batch else list(shape), tf.as_dtype(dtype))


def ancestors(tensor: Any) -> List[Any]:
    """Returns all operations of its graph that `tensor` depends on, including its own."""
    found: Dict[str, Any] = {}
    todo = [tensor.op]
    while todo:
        op = todo.pop()
        if op.name not in found:
            found[op.name] = op
            todo.extend(source.op for source in op.inputs)
            todo.extend(op.control_inputs)
    return list(found.values())


def _plain(name: str) -> str:
    """Returns a name that a graph node may have."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in name)
    return plain if plain[:1].isalnum() else f"x{plain}"
