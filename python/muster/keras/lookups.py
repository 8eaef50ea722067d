"""Finds and replaces the places where a model reads rows of a table by ids, while it is traced.

Embedding layers are intercepted by their class during a trace, so that subclasses and layers inside
layers are found too. Like Keras itself, this is not thread-safe.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Dict, Iterator, List, Optional, Set

import keras
import tensorflow as tf

from muster.keras import tracing
from muster.keras.fields import Shape
from muster.keras.variables import TABLE, Entry, Variables

Handler = Callable[[Any, Any, Callable[[], Any]], Any]


@dataclass(frozen=True)
class Lookup:
    """Lookup number K of a call of the model."""

    index: int
    table: Entry
    layer: str
    shape: Shape
    input: Optional[str]  # the input with the ids
    label: Optional[str]  # or the label with the ids; if neither is set, the ids are computed

    @property
    def argument(self) -> str:
        return f"ids_{self.index}"

    @property
    def computed(self) -> bool:
        return self.input is None and self.label is None

    def manifest(self) -> Dict[str, Any]:
        source = {"computed": self.argument}
        if not self.computed:
            source = {"input": self.input} if self.input else {"label": str(self.label)}
        return {
            "table": self.table.index,
            "argument": self.argument,
            "shape": list(self.shape),
            "source": source,
        }


@contextlib.contextmanager
def intercepted(handler: Handler) -> Iterator[None]:
    """Lets `handler` answer calls of Embedding layers: it gets the layer, the inputs, and the real
    call."""
    real = keras.layers.Embedding.call

    def call(self: Any, inputs: Any) -> Any:
        return handler(self, inputs, lambda: real(self, inputs))

    keras.layers.Embedding.call = call
    try:
        yield
    finally:
        keras.layers.Embedding.call = real


@dataclass
class _Seen:
    table: Entry
    layer: str
    ids: Any


@dataclass
class Recorder:
    """Finds out which variables are tables: those of Embedding layers that nothing else reads."""

    variables: Variables
    seen: List[_Seen] = field(default_factory=list)
    whole: Dict[int, str] = field(default_factory=dict)  # variable index -> why it is not a table
    _inside: Optional[Entry] = None

    def handle(self, layer: Any, inputs: Any, real: Callable[[], Any]) -> Any:
        variable = layer.embeddings
        if not self.variables.has(variable):
            return real()
        entry = self.variables.of(variable)
        if not isinstance(inputs, tf.Tensor):
            self.whole[entry.index] = "its ids are sparse or ragged"
        else:
            self.seen.append(_Seen(entry, layer.name, inputs))
        self._inside = entry
        try:
            return real()
        finally:
            self._inside = None

    def read(self, variable: Any) -> None:
        """Called for each read of a variable's value."""
        if not self.variables.has(variable):
            return
        entry = self.variables.of(variable)
        if entry is not self._inside:
            self.whole.setdefault(entry.index, "it is read otherwise too")


def find(recorder: Recorder, traced: tracing.Traced) -> List[Lookup]:
    """Returns the lookups of tables in a trace by `recorder`. A variable is not a table if the ids
    of some lookup are neither an unchanged label nor computed from the inputs alone."""
    graph = traced.graph
    arguments = {tensor.op.name: name for name, tensor in traced.inputs.items()}
    for seen in recorder.seen:
        if seen.ids.graph is not graph:
            recorder.whole.setdefault(seen.table.index, "it is looked up inside a loop")
            continue
        for op in tracing.ancestors(seen.ids):
            name = arguments.get(op.name)
            weights = name is not None and not name.startswith(("input_", "label_"))
            if weights or _is_variable_read(op):
                recorder.whole.setdefault(seen.table.index, "its ids are computed from weights")
            elif name is not None and name.startswith("label_"):
                if _plain(seen.ids, arguments, "label_") is None:
                    recorder.whole.setdefault(seen.table.index, "its ids are computed from labels")
    lookups: List[Lookup] = []
    for seen in recorder.seen:
        if seen.table.index in recorder.whole or len(seen.table.shape) != 2:
            continue
        shape = seen.ids.shape
        if shape.rank is None or shape.rank == 0:
            raise ValueError(
                f"layer '{seen.layer}' looks up ids of unknown rank: reshape them to a known one"
            )
        lookups.append(
            Lookup(len(lookups), seen.table, seen.layer, tuple(shape.as_list()[1:]),
                   _plain(seen.ids, arguments, "input_"), _plain(seen.ids, arguments, "label_"))
        )  # fmt: skip
    return lookups


def number(lookups: List[Lookup]) -> List[Lookup]:
    """Returns the same lookups, numbered from 0."""
    return [replace(lookup, index=index) for index, lookup in enumerate(lookups)]


def computed_ids(recorder: Recorder, lookups: List[Lookup]) -> Dict[str, Any]:
    """Returns, by argument, the tensors of `recorder`'s graph that are the ids of computed lookups.
    """
    tables: Set[int] = {lookup.table.index for lookup in lookups}
    seen = [one for one in recorder.seen if one.table.index in tables]
    return {lookup.argument: one.ids for lookup, one in zip(lookups, seen) if lookup.computed}


def _plain(ids: Any, arguments: Dict[str, str], kind: str) -> Optional[str]:
    """Returns the input or label that `ids` are, apart from casts; `kind` is "input_" or "label_".
    """
    while ids.op.type in ("Cast", "Identity") and ids.dtype.is_integer:
        ids = ids.op.inputs[0]
    name = arguments.get(ids.op.name) if ids.dtype != tf.bool else None
    return name[len(kind) :] if name and name.startswith(kind) else None


def _is_variable_read(op: Any) -> bool:
    return op.type in ("ReadVariableOp", "ResourceGather", "VarHandleOp")


def refuse_tables(variables: Variables, arguments: tracing.Tensors) -> Callable[[Any], None]:
    """Returns a function to call for each read of a variable: only rows of a table are available,
    unless the whole table is an argument."""

    def read(variable: Any) -> None:
        if not variables.has(variable) or variables.of(variable).kind != TABLE:
            return
        if variables.of(variable).argument("whole") not in arguments:
            raise ValueError(
                f"table '{variables.of(variable).name}' is read otherwise than when it was first "
                "traced: the model's call must do the same each time"
            )

    return read
