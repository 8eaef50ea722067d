"""Puts traced functions into one plain graph that contains only what they need."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Set

import tensorflow as tf
from tensorflow.core.protobuf.meta_graph_pb2 import SignatureDef

from muster.keras.tracing import Traced

# The operation that fills the lookup tables; loading a SavedModel runs it.
FILL = "fill_tables"
_PYTHON = ("PyFunc", "PyFuncStateless", "EagerPyFunc")
_DRAWS = (
    "RandomUniform RandomUniformInt RandomStandardNormal TruncatedNormal RandomShuffle Multinomial "
    "RandomGamma RandomPoisson RandomPoissonV2 ParameterizedTruncatedNormal StatefulUniform "
    "StatefulStandardNormalV2 StatefulUniformInt StatefulTruncatedNormal"
).split()
_FROM_TABLE = ("LookupTableFindV2", "LookupTableSizeV2")


class Graph:
    """The contents of `step/`: signatures over one graph."""

    def __init__(self) -> None:
        self.graph = tf.Graph()
        self.signatures: Dict[str, Dict[str, Dict[str, str]]] = {}
        self._tables: Dict[int, Any] = {}  # id of a table's handle -> its handle in this graph
        self._kept: List[Any] = []  # keeps objects alive so that their ids stay unique
        self._fills: List[Any] = []

    def add(self, name: str, traced: Traced, scratch: bool = False) -> None:
        """Adds a function. Raises ValueError if it reads variables (except scratch ones, if
        allowed), draws random numbers by itself or calls Python."""
        outputs = {key: tensor.name for key, tensor in traced.outputs.items()}
        nodes = prune(
            traced.graph.as_graph_def(), {tensor.op.name for tensor in traced.outputs.values()}
        )
        check_operations(nodes, name)
        there = {node.name for node in nodes.node}
        makers = {
            inside.name: self._outside(outside, nodes, inside, traced, scratch)
            for outside, inside in traced.captures
            if inside.op.name in there
        }
        with self.graph.as_default(), tf.device(None):
            replaced = {name: make() for name, make in makers.items()}
            gone = {placeholder.split(":")[0] for placeholder in replaced}
            kept = [node for node in nodes.node if node.name not in gone]
            del nodes.node[:]
            nodes.node.extend(kept)
            inputs = {
                key: tensor.name for key, tensor in traced.inputs.items() if tensor.op.name in there
            }
            names = [*inputs.values(), *outputs.values()]
            tensors = tf.import_graph_def(
                nodes, input_map=replaced, return_elements=names, name=name
            )
        placed = [tensor.name for tensor in tensors]
        self.signatures[name] = {
            "inputs": dict(zip(inputs, placed)),
            "outputs": dict(zip(outputs, placed[len(inputs) :])),
        }

    def save(self, folder: str) -> None:
        """Writes the SavedModel."""
        with self.graph.as_default():
            fill = tf.group(*self._fills, name=FILL) if self._fills else None
            builder = tf.compat.v1.saved_model.Builder(folder)
            with tf.compat.v1.Session(graph=self.graph) as session:
                builder.add_meta_graph_and_variables(
                    session,
                    [tf.saved_model.SERVING],
                    signature_def_map={
                        name: self._definition(signature)
                        for name, signature in self.signatures.items()
                    },
                    main_op=fill,
                    clear_devices=True,
                )
            builder.save()

    def _definition(self, signature: Dict[str, Dict[str, str]]) -> Any:
        """Returns a SignatureDef."""
        definition = SignatureDef(method_name="muster/keras")
        for side in ("inputs", "outputs"):
            for key, name in signature[side].items():
                tensor = self.graph.get_tensor_by_name(name)
                info = getattr(definition, side)[key]
                info.name = name
                info.dtype = tensor.dtype.as_datatype_enum
                info.tensor_shape.CopyFrom(tensor.shape.as_proto())
        return definition

    def _outside(
        self, outside: Any, nodes: Any, inside: Any, traced: Traced, scratch: bool
    ) -> Callable[[], Any]:
        """Makes a node that replaces a tensor from outside the function."""
        if outside.dtype not in (tf.resource, tf.variant):
            value = outside.numpy()
            return lambda: tf.constant(value, outside.dtype)
        for node in nodes.node:
            if node.op in _FROM_TABLE and node.input[0].split(":")[0] == inside.op.name:
                return self._table(outside, node)
        variable = next((v for v in traced.graph.variables if v.handle is outside), None)
        if not scratch or variable is None:
            raise ValueError(_captured(variable))
        name = f"muster_scratch_{len(self._kept)}"
        self._kept.append(outside)
        return lambda: tf.raw_ops.VarHandleOp(
            dtype=variable.dtype, shape=variable.shape, shared_name=name
        )

    def _table(self, handle: Any, node: Any) -> Callable[[], Any]:
        """Makes a hash table with the contents of the one of `handle`; one for each handle."""
        if node.op != "LookupTableFindV2":
            raise ValueError("a layer asks for its lookup table's size; it can only look words up")
        key, value = (tf.as_dtype(node.attr[name].type) for name in ("Tin", "Tout"))
        content = tf.raw_ops.LookupTableExportV2(table_handle=handle, Tkeys=key, Tvalues=value)
        keys, values = (column.numpy() for column in content)

        def make() -> Any:
            if id(handle) not in self._tables:
                table = tf.raw_ops.HashTableV2(
                    key_dtype=key,
                    value_dtype=value,
                    shared_name=f"muster_table_{len(self._tables)}",
                )
                self._fills.append(
                    tf.raw_ops.LookupTableImportV2(
                        table_handle=table,
                        keys=tf.constant(keys, key),
                        values=tf.constant(values, value),
                    )
                )
                self._tables[id(handle)] = table
                self._kept.append(handle)
            return self._tables[id(handle)]

        return make


def prune(graph: Any, wanted: Set[str]) -> Any:
    """Returns a GraphDef with the nodes that the `wanted` ones depend on, and the functions that
    they call."""
    nodes = {node.name: node for node in graph.node}
    keep: Set[str] = set()
    todo = list(wanted)
    while todo:
        name = todo.pop()
        if name not in keep:
            keep.add(name)
            todo.extend(source.lstrip("^").split(":")[0] for source in nodes[name].input)
    pruned = tf.compat.v1.GraphDef()
    pruned.versions.CopyFrom(graph.versions)
    pruned.node.extend(node for node in graph.node if node.name in keep)
    functions = {function.signature.name: function for function in graph.library.function}
    called: Set[str] = set()
    calls = _called(pruned.node, functions)
    while calls:
        name = calls.pop()
        if name not in called:
            called.add(name)
            calls |= _called(functions[name].node_def, functions)
    pruned.library.function.extend(functions[name] for name in sorted(called))
    pruned.library.gradient.extend(
        g for g in graph.library.gradient if g.function_name in called and g.gradient_func in called
    )
    return pruned


def check_operations(graph: Any, signature: str) -> None:
    """Raises ValueError for operations that are not pure functions."""
    everywhere = [*graph.node, *(n for f in graph.library.function for n in f.node_def)]
    for node in everywhere:
        if node.op in _PYTHON:
            raise ValueError(
                f"the model calls Python in {_place(node)} (tf.py_function or tf.numpy_function), "
                "which is not there when the model is trained: say it with operations of TensorFlow "
                "or Keras"
            )
        if node.op in _DRAWS:
            raise ValueError(
                f"the model draws random numbers in {_place(node)} by itself ({node.op}), so that a "
                "step could not be repeated: use keras.random with a keras.random.SeedGenerator "
                "that the layer has as an attribute"
            )


def _place(node: Any) -> str:
    """Returns where a node comes from: Keras writes layers' names into the names of nodes."""
    return f"'{node.name.rpartition('/')[0] or node.name}'"


def _called(nodes: Any, functions: Dict[str, Any]) -> Set[str]:
    names: Set[str] = set()
    for node in nodes:
        names.add(node.op)
        for value in node.attr.values():
            if value.HasField("func"):
                names.add(value.func.name)
            names.update(function.name for function in value.list.func)
    return {name for name in names if name in functions}


def _captured(variable: Any) -> str:
    if variable is None:
        return (
            "the model reads a resource that is no weight of one of its layers and no lookup table"
        )
    if "seed_generator" in variable.name:
        return (
            "the model draws random numbers with Keras's global seed (keras.random without a seed): "
            "give the layer a keras.random.SeedGenerator as an attribute, and seed=that"
        )
    return (
        f"the model reads the variable '{variable.name}', which is no weight of one of its layers: "
        "make it with the layer's add_weight"
    )
