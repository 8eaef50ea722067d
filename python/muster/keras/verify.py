"""Trains a few steps with Keras and with the export, and compares.

Keras trains the model itself, as `train_on_batch` does. The export is read from its files and run
in a session, and Keras's optimizer is applied to its gradients. Each step begins from the same
weights, slots and seeds, so that rounding errors do not grow from step to step.
"""

from __future__ import annotations

import os
import warnings
from typing import Any, Dict, List, Mapping, Tuple

import keras
import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

from muster.keras import functions, graph, manifest, optimizers, outputs
from muster.keras.examples import Batch
from muster.keras.functions import Functions
from muster.keras.losses import Loss
from muster.keras.optimizers import Optimizer
from muster.keras.variables import STATE, TABLE, Entry

STEPS = 3
TOLERANCE = 1e-6  # for weights, relative to the largest value of a variable
MIXED_TOLERANCE = 1e-3  # for models that compute in 16 bits
# For weights, relative to the largest change of a variable in the step: with many cores TensorFlow
# adds up in another order in a graph than by itself, which shows in biases that begin at 0.
CHANGE_TOLERANCE = 1e-4
_SAME, _MIXED_SAME = 1e-5, 1e-2  # for losses, relative
# gradients this small compared with the largest are rounding errors, which Adam amplifies
_NOISE = 1e-5


def evaluate_once(model: Any, loss: Loss, batch: Batch, mixed: bool) -> Tuple[Any, Any]:
    """Returns labels and predictions, and the examined loss: whether it is a mean over rows, or
    their sum."""
    half = batch.count // 2
    parts = [slice(None), slice(None, half), slice(half, None)] if half else [slice(None)]
    values, predicted = [], []
    for rows in parts:
        part = batch.rows(rows)
        inputs, labels = tensors(part.model_inputs), tensors(part.model_labels)
        predictions = functions.call(model, inputs, False)
        try:
            value = loss(inputs, labels, predictions, part.weight, False)[1]
        except ValueError:
            raise
        except Exception as error:
            raise ValueError(f"loss: it cannot be computed: {error}") from error
        values.append(float(value))
        predicted.append([np.asarray(one) for one in keras.tree.flatten(predictions)])
        if rows == parts[0]:
            whole = labels, predictions
    if half:
        counts = [half, batch.count - half]
        loss.examine(values[0], values[1:], counts, _MIXED_SAME if mixed else _SAME)
        _warn_of_mixed_rows(model, *predicted)
    return whole


def _warn_of_mixed_rows(model: Any, whole: List[Any], first: List[Any], second: List[Any]) -> None:
    """Compares a batch's predictions with those of its halves: a row's must not depend on the
    others."""
    for all_, one, two in zip(whole, first, second):
        if all_.dtype.kind != "f" or all_.shape != (len(one) + len(two), *one.shape[1:]):
            continue
        together = np.concatenate([one, two])
        if not np.allclose(all_, together, rtol=_MIXED_SAME, atol=_MIXED_SAME, equal_nan=True):
            warnings.warn(
                f"model '{model.name}' predicts something else of a row when other rows are in its "
                "batch: look for an operation over the whole batch in its call (tensordot over two "
                "axes), or give `muster predict` the --batch-size of the training",
                stacklevel=6,
            )
            return


def tensors(structure: Any) -> Any:
    """Converts arrays as Keras does for a model."""
    return keras.tree.map_structure(
        lambda one: None if one is None else tf.convert_to_tensor(one), structure
    )


def compare(folder: str, traced: Functions, update: Optimizer, batch: Batch, mixed: bool) -> None:
    """Checks the export in `folder`, and trains the model. Raises ValueError if they differ."""
    with Session(folder) as session:
        comparison = _Comparison(session, traced, update, batch, mixed)
        for step in range(STEPS):
            comparison.step(step)
        comparison.predictions()


class Session:
    """The functions of an export, run without graph optimizations, like Keras's eager operations.
    """

    def __init__(self, folder: str) -> None:
        self._signatures = manifest.read(folder)["signatures"]
        self._file = os.path.join(folder, "step", "saved_model.pb")
        config = tf.compat.v1.ConfigProto(device_count={"GPU": 0})
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        config.graph_options.optimizer_options.opt_level = -1
        self._session = tf.compat.v1.Session(graph=tf.Graph(), config=config)

    def __enter__(self) -> Session:
        saved = SavedModel()
        with open(self._file, "rb") as file:
            saved.ParseFromString(file.read())
        (meta,) = saved.meta_graphs
        with self._session.graph.as_default():
            tf.import_graph_def(meta.graph_def, name="")
        if graph.FILL in (node.name for node in meta.graph_def.node):
            self._session.run(graph.FILL)
        return self

    def __exit__(self, *_: Any) -> None:
        self._session.close()

    def has(self, signature: str) -> bool:
        return signature in self._signatures

    def run(self, signature: str, arguments: Mapping[str, Any]) -> Dict[str, Any]:
        """Runs a signature. Arguments that it does not take are left out; if the weights of rows
        are missing, they are 1."""
        places = self._signatures[signature]
        given = dict(arguments)
        if "sample_weight" in places["inputs"]:
            labels = next(value for name, value in given.items() if name.startswith("label_"))
            given.setdefault("sample_weight", np.ones(len(labels), np.float32))
        feed = {tensor: given[name] for name, tensor in places["inputs"].items()}
        values: Dict[str, Any] = self._session.run(places["outputs"], feed)
        return values


class _Comparison:
    def __init__(
        self, session: Session, traced: Functions, update: Optimizer, batch: Batch, mixed: bool
    ) -> None:
        self._session = session
        self._model = traced.model
        self._functions = traced
        self._loss = traced.loss
        self._batch = batch
        self._tolerance = MIXED_TOLERANCE if mixed else TOLERANCE
        self._trained = traced.variables.trainable
        variables = [entry.variable for entry in self._trained]
        self._copies = [entry.copy() for entry in self._trained]
        self._theirs = update.built(variables, self._trained, traced.variables)
        self._ours = update.built(self._copies, self._trained, traced.variables)

    def step(self, step: int) -> None:
        arguments = self._arguments()
        ours = self._session.run("step", arguments)
        if not np.isfinite(ours["loss"]):
            raise ValueError(
                f"the loss is {ours['loss']}: give an example= for which it is a number"
            )
        if step == 0 and self._session.has("step_whole"):
            self._check_ids(ours, arguments)
        new = self._apply(ours, arguments, step)
        value, gradients = self._train()
        where = f"step {step + 1} of {STEPS}"
        if not np.allclose(ours["loss"], value, rtol=max(1e-5, self._tolerance), atol=1e-7):
            raise ValueError(
                f"the exported model's loss at {where} is {ours['loss']}, Keras's {value}: "
                f"{_ADVICE}"
            )
        largest = max((np.max(np.abs(g), initial=0) for g in gradients), default=0)
        for entry, mine, gradient in zip(self._trained, new, gradients):
            limit = _NOISE * largest
            noise = np.abs(gradient) <= limit
            noise &= np.abs(_dense(entry, ours) - gradient) <= limit
            self._check(where, entry, mine, arguments[entry.argument()], noise)
        for entry in self._functions.variables.of_kind(STATE):
            new_state = ours[entry.argument("new")]
            self._check(where, entry, new_state, arguments[entry.argument()], False)

    def predictions(self) -> None:
        """Compares the predictions of the trained weights."""
        ours = self._session.run("predict", self._arguments())
        theirs = outputs.named(
            self._model, functions.call(self._model, self._batch.model_inputs, False)
        )
        for name, value in theirs.items():
            tolerance = max(1e-5, self._tolerance)
            if value.dtype.is_floating and not np.allclose(
                np.asarray(ours[name], np.float64), np.asarray(value, np.float64),
                rtol=tolerance, atol=tolerance, equal_nan=True,
            ):  # fmt: skip
                raise ValueError(
                    f"the exported model's prediction '{name}' differs from Keras's: {_ADVICE}"
                )

    def _arguments(self) -> Dict[str, Any]:
        arguments: Dict[str, Any] = dict(self._batch.arguments(), denominator=np.float32(0))
        if self._functions.takes_class_weights:
            arguments["sample_weight"] = np.ones(self._batch.count, np.float32)
        for entry in self._functions.variables:
            value = arguments[entry.argument()] = entry.variable.numpy()
            if entry.read_whole:
                arguments[entry.argument("whole")] = value
        computed = self._session.run("ids", arguments) if self._session.has("ids") else {}
        for lookup in self._functions.lookups:
            if lookup.computed:
                ids = computed[lookup.argument]
            elif lookup.label is not None:
                ids = np.asarray(self._batch.labels[lookup.label])
            else:
                ids = np.asarray(self._batch.inputs[str(lookup.input)])
            ids = ids.astype(np.int64)
            rows = lookup.table.shape[0]
            if ids.size and (ids.min() < 0 or ids.max() >= rows):
                raise ValueError(
                    f"layer '{lookup.layer}' gets ids from {ids.min()} to {ids.max()}, its table "
                    f"has {rows} rows: give an example= whose ids are in the table, or a larger "
                    "input_dim"
                )
            arguments[lookup.argument] = ids.astype(np.int32)
        return arguments

    def _check_ids(self, results: Dict[str, Any], arguments: Dict[str, Any]) -> None:
        other = self._session.run("step_whole", arguments)
        for name, value in results.items():
            if not np.allclose(value, other[name], rtol=1e-5, atol=1e-6):
                raise ValueError(f"{name} is another when ids are computed inside: {_ADVICE}")

    def _apply(self, results: Dict[str, Any], arguments: Dict[str, Any], step: int) -> List[Any]:
        """Returns the weights after Keras's optimizer, or the exported one, has applied the
        exported gradients."""
        if self._session.has("apply"):
            slots = optimizers.slots(self._theirs)
            given = {f"slot_{i:03d}": slot.numpy() for i, slot in enumerate(slots)}
            new = self._session.run("apply", {**arguments, **results, **given, "step": step})
            return [new[entry.argument("new_var")] for entry in self._trained]
        gradients = []
        for entry, copy in zip(self._trained, self._copies):
            copy.assign(arguments[entry.argument()])
            gradient = tf.constant(results[entry.argument("grad")])
            if entry.kind == TABLE:
                rows = tf.constant(results[entry.argument("rows")])
                gradient = tf.IndexedSlices(gradient, rows, tf.constant(entry.shape))
            gradients.append(gradient)
        for mine, other in zip(self._ours.variables, self._theirs.variables):
            mine.assign(other)
        self._ours.apply(gradients, self._copies)
        return [copy.numpy() for copy in self._copies]

    def _train(self) -> Tuple[float, List[Any]]:
        """Takes a step with Keras; returns its loss, and the gradients as dense arrays."""
        batch = self._batch
        variables = [entry.variable for entry in self._trained]
        with tf.GradientTape() as tape:
            inputs, labels = tensors(batch.model_inputs), tensors(batch.model_labels)
            predictions = functions.call(self._model, inputs, True)
            _, loss = self._loss(inputs, labels, predictions, batch.weight, True)
            scaled = loss * self._functions.loss_scale
        gradients = tape.gradient(scaled, variables)
        if self._functions.loss_scale != 1:
            gradients = [gradient / self._functions.loss_scale for gradient in gradients]
        self._theirs.apply(gradients, variables)
        return float(loss), [np.asarray(tf.convert_to_tensor(g)) for g in gradients]

    def _check(self, where: str, entry: Entry, ours: Any, before: Any, noise: Any) -> None:
        theirs = entry.variable.numpy()
        difference = np.abs(ours.astype(np.float64) - theirs)
        change = np.max(np.abs(theirs.astype(np.float64) - before), initial=0)
        allowed = max(
            self._tolerance * np.max(np.abs(theirs), initial=0), CHANGE_TOLERANCE * change
        )
        wrong = ~(difference <= allowed) & ~np.asarray(noise)
        if wrong.any():
            raise ValueError(
                f"'{entry.name}' differs from Keras's by {difference[wrong].max():.3g} after "
                f"{where} (allowed: {allowed:.3g}): {_ADVICE}"
            )


_ADVICE = (
    "the model does not compute the same in a graph; look for Python code or state in its call "
    "that changes from call to call"
)


def _dense(entry: Entry, results: Dict[str, Any]) -> Any:
    """Returns the exported gradient; for a table, that of the whole table."""
    gradient = results[entry.argument("grad")]
    if entry.kind != TABLE:
        return gradient
    whole = np.zeros(entry.shape, gradient.dtype)
    np.add.at(whole, results[entry.argument("rows")], gradient)
    return whole
