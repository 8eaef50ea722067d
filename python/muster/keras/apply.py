"""An optimizer without a rule, as a function from variables, slots and gradients to new ones."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

import tensorflow as tf

from muster.keras import optimizers, tracing
from muster.keras.optimizers import Optimizer
from muster.keras.tracing import Tensors, Traced
from muster.keras.variables import TABLE, Variables, is_variable


class Apply:
    """The signature `apply`, and the manifest's description of its slots.

    Keras's optimizers change variables in place. Here they change scratch variables that are set
    anew at each call, so that the result is a pure function.
    """

    def __init__(self, update: Optimizer, variables: Variables) -> None:
        self._name = update.name
        self._trained = variables.trainable
        self._copies = [entry.copy() for entry in self._trained]
        self._optimizer = update.built(self._copies, self._trained, variables)
        self._slots = optimizers.slots(self._optimizer)
        self._rate = self._optimizer._learning_rate
        if is_variable(self._rate):
            self._rate_value = self._rate.numpy()

    def traced(self) -> Traced:
        """Traces the function. Raises ValueError for an optimizer with hidden state."""
        traced = tracing.trace(self._specs(), self._body)
        known = [*self._copies, *self._slots, self._optimizer.iterations, self._rate]
        handles = [v.value.handle for v in known if is_variable(v)]
        for variable in traced.graph.variables:
            if not any(variable.handle is handle for handle in handles):
                raise ValueError(
                    f"optimizer {self._name} has a variable '{variable.name}' that is none of its "
                    "`variables`: make it with add_variable"
                )
        return traced

    def values(self) -> Dict[str, Any]:
        """Returns the slots' initial values by name."""
        return {entry["name"]: slot.value for entry, slot in zip(self._entries(), self._slots)}

    def manifest(self) -> Dict[str, Any]:
        return {"name": self._name, "apply": True, "slots": self._entries()}

    def _body(self, arguments: Tensors) -> Tensors:
        gradients: List[Any] = []
        self._optimizer.iterations.assign(arguments["step"])
        if is_variable(self._rate):
            self._rate.assign(self._rate_value)
        for slot, name in zip(self._slots, self._slot_names()):
            slot.value.assign(arguments[name])
        for copy, entry in zip(self._copies, self._trained):
            copy.value.assign(arguments[entry.argument()])
            gradient = arguments[entry.argument("grad")]
            if entry.kind == TABLE:
                rows = arguments[entry.argument("rows")]
                gradient = tf.IndexedSlices(gradient, rows, tf.constant(entry.shape))
            gradients.append(gradient)
        self._optimizer.apply(gradients, self._copies)
        results = {
            entry.argument("new_var"): copy.value.read_value()
            for copy, entry in zip(self._copies, self._trained)
        }
        for slot, name in zip(self._slots, self._slot_names()):
            results[f"new_{name}"] = slot.value.read_value()
        return results

    def _specs(self) -> Dict[str, Any]:
        specs = {"step": tracing.spec((), "int64", batch=False)}
        for entry in self._trained:
            specs[entry.argument()] = tracing.spec(entry.shape, "float32", batch=False)
            shape: List[Optional[int]] = [*entry.shape]
            if entry.kind == TABLE:
                specs[entry.argument("rows")] = tracing.spec((), "int32")
                shape = [None, *entry.shape[1:]]
            specs[entry.argument("grad")] = tracing.spec(shape, "float32", batch=False)
        for slot, name in zip(self._slots, self._slot_names()):
            specs[name] = tracing.spec(slot.shape, slot.dtype, batch=False)
        return specs

    def _slot_names(self) -> List[str]:
        return [f"slot_{i:03d}" for i in range(len(self._slots))]

    def _entries(self) -> List[Dict[str, Any]]:
        return [
            {"name": name, "dtype": str(slot.dtype), "shape": [int(d) for d in slot.shape]}
            for slot, name in zip(self._slots, self._slot_names())
        ]
