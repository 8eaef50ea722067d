"""Gradients as results of a traced step, as docs/formats/keras_export.md names them: of a whole
variable, or of the rows of a table that a step has taken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Tuple

import tensorflow as tf

from muster.keras.tracing import Tensors
from muster.keras.variables import Entry, Variables


@dataclass(frozen=True)
class Taken:
    """The rows of a table that a lookup gave, [ids..., columns]."""

    table: Entry
    ids: Any
    rows: Any


def of_variable(entry: Entry, gradient: Any, loss_scale: float) -> Tensors:
    """Also notes whether the gradient is sliced."""
    if gradient is None:
        return {}
    entry.sliced = isinstance(gradient, tf.IndexedSlices)
    return {entry.argument("grad"): _unscaled(tf.convert_to_tensor(gradient), loss_scale)}


def of_rows(
    variables: Variables, taken: List[Taken], gradients: List[Any], loss_scale: float
) -> Tensors:
    """Returns, for each table, one entry for each id. The gradient with respect to the rows of a
    lookup consists of its entries; the gradient with respect to the table would be the same, but
    take many more operations."""
    entries: Dict[int, List[Tuple[Any, Any]]] = {}
    for one, gradient in zip(taken, gradients):
        if gradient is None:
            continue
        values = tf.convert_to_tensor(gradient)
        if values.shape.rank != 2:
            values = tf.reshape(values, [-1, *one.table.shape[1:]])
        ids = one.ids if one.ids.shape.rank == 1 else tf.reshape(one.ids, [-1])
        entries.setdefault(one.table.index, []).append((ids, values))
    results: Tensors = {}
    for index, parts in entries.items():
        entry = variables.all[index]
        ids, values = (parts[0] if len(parts) == 1
                       else [tf.concat(list(side), 0) for side in zip(*parts)])  # fmt: skip
        results[entry.argument("rows")] = tf.identity(ids)
        results[entry.argument("grad")] = _unscaled(values, loss_scale)
    return results


def _unscaled(gradient: Any, loss_scale: float) -> Any:
    return gradient if loss_scale == 1 else gradient * (1.0 / loss_scale)
