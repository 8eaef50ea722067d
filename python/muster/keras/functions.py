"""The model's functions, traced: pure, of variables, inputs and labels by name.

Arguments and results are named as docs/formats/keras_export.md says.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional, Tuple

import keras
import tensorflow as tf

from muster.keras import lookups, tracing
from muster.keras.fields import Port, Ports
from muster.keras.losses import Loss
from muster.keras.metrics import Metric
from muster.keras.tracing import Tensors, Traced
from muster.keras.variables import DENSE, SEED, STATE, TABLE, Entry, Variables


@dataclass(frozen=True)
class Taken:
    """Rows of a table that a lookup gave, [ids..., columns]."""

    table: Entry
    ids: Any
    rows: Any


@dataclass(frozen=True)
class Prediction:
    name: str
    dtype: str
    shape: List[Optional[int]]


class Functions:
    """`find_lookups` first: it says which variables are tables; then `set_targets`, then `step`,
    which says what the other variables are."""

    def __init__(
        self,
        model: Any,
        variables: Variables,
        inputs: Ports,
        loss: Loss,
        loss_scale: float,
    ) -> None:
        self.variables = variables
        self.lookups: List[lookups.Lookup] = []
        self._ids: Optional[Traced] = None
        self.model = model
        self.inputs = inputs
        self.labels = Ports([], [])
        self.weight: Optional[Port] = None
        self.predicted: Any = None  # predictions as placeholders, for their shapes
        self.loss = loss
        self.loss_scale = loss_scale
        self.predictions: List[Prediction] = []
        self.masked = False  # whether some prediction has a mask, which weighs the loss

    def find_lookups(self) -> None:
        """Raises ValueError where the model looks up other rows in training than in prediction."""
        found = []
        for training in (True, False):
            recorder = lookups.Recorder(self.variables)

            def body(arguments: Tensors) -> Tensors:
                with lookups.intercepted(recorder.handle):
                    predictions, scope = self._call(arguments, training, recorder.read)
                self.predicted = predictions
                return {"first": keras.tree.flatten(predictions)[0]}

            whole = self._specs(self.variables.all, whole=True)
            traced = tracing.trace({**whole, **self._input_specs()}, body)
            names = [f"input_{port.name}" for port in self.inputs.all]
            found.append((recorder, lookups.find(recorder, traced, names), traced))
        for entry in self.variables:
            if any(entry.index in recorder.whole for recorder, _, _ in found):
                entry.kind = DENSE if entry.kind == TABLE else entry.kind
        both = []
        for recorder, some, traced in found:
            kept = [one for one in some if one.table.kind == TABLE]
            both.append([(one.layer, one.table.index, one.input, one.shape) for one in kept])
        if both[0] != both[1]:
            raise ValueError(
                "the model looks up other rows of embeddings in training than in prediction: "
                f"{sorted(set(map(str, both[0])) ^ set(map(str, both[1])))}; call the same Embedding "
                "layers in both"
            )
        recorder, some, traced = found[0]
        self.lookups = lookups.number([one for one in some if one.table.kind == TABLE])
        computed = lookups.computed_ids(recorder, self.lookups)
        if computed:
            with traced.graph.as_default():
                ids = {name: tf.cast(value, tf.int64) for name, value in computed.items()}
            self._ids = traced.with_outputs(ids)

    def set_targets(self, labels: Ports, weight: Optional[Port]) -> None:
        """What the loss takes besides predictions."""
        self.labels = labels
        self.weight = weight

    @property
    def ids(self) -> Optional[Traced]:
        """Of computed lookups; None: there is none."""
        return self._ids

    def step(self, whole: bool = False) -> Traced:
        """Finds states, and trainable variables that the loss does not depend on, too."""
        states: List[Entry] = []

        def body(arguments: Tensors) -> Tensors:
            dense = [entry for entry in self.variables.trainable if entry.kind != TABLE]
            taken: List[Taken] = []
            with tf.GradientTape(watch_accessed_variables=False) as tape:
                tape.watch([arguments[entry.argument()] for entry in dense])
                predictions, scope = self._forward(arguments, True, whole, tape, taken)
                self.masked = any(
                    getattr(one, "_keras_mask", None) is not None
                    for one in keras.tree.flatten(predictions)
                )
                data = self._data_loss(arguments, predictions)
                added = self._added(scope)
                loss = data if added is None else data + added
                scale = self._share(arguments)
                if scale is not None:
                    data, loss = data * scale, loss * scale
                minimised = loss * self.loss_scale if self.loss_scale != 1 else loss
            results: Tensors = {"loss": loss, "data_loss": data}
            sources = [arguments[entry.argument()] for entry in dense]
            gradients = tape.gradient(minimised, [*sources, *(one.rows for one in taken)])
            for entry, gradient in zip(dense, gradients):
                results.update(self._gradient(entry, gradient))
            results.update(self._row_gradients(taken, gradients[len(dense) :]))
            for entry in self.variables:
                new = scope.get_current_value(entry.variable)
                if new is None or new is arguments[entry.argument()] or entry.kind == SEED:
                    continue
                if entry.trainable:
                    raise ValueError(
                        f"variable '{entry.name}' is trained, and changed by its layer in each "
                        "step too, which replicas cannot share: take the layer out"
                    )
                states.append(entry)
                results[entry.argument("new")] = new
            return results

        traced = tracing.trace(self._step_specs(whole), body)
        for entry in self.variables:
            if entry.trainable and entry.argument("grad") not in traced.outputs:
                entry.trainable = False
        for entry in states:
            if entry.dtype != "float32":
                raise ValueError(
                    f"variable '{entry.name}' ({entry.dtype}) is changed by each step: what is not "
                    "trained and changes must be float32, so that replicas can average it"
                )
            entry.kind = STATE
        return traced

    def predict(self) -> Traced:
        def body(arguments: Tensors) -> Tensors:
            predictions, _ = self._forward(arguments, False, False)
            named = self.named_predictions(predictions)
            self.predictions = [
                Prediction(name[len("output_") :], value.dtype.name, value.shape.as_list()[1:])
                for name, value in named.items()
            ]
            return named

        return tracing.trace({**self._specs(self.variables.all), **self._ids_specs(),
                              **self._input_specs()}, body)  # fmt: skip

    def evaluate(self, metrics: List[Metric]) -> Traced:
        def body(arguments: Tensors) -> Tensors:
            predictions, _ = self._forward(arguments, False, False)
            results = self.named_predictions(predictions)
            loss = self._data_loss(arguments, predictions)
            results["loss_sum"] = loss * self._rows(arguments) if self.loss.by_rows else loss
            labels, weight = self._targets(arguments)
            for metric in metrics:
                results.update(metric.increments(labels, predictions))
            return results

        return tracing.trace(self._step_specs(False), body)

    def serve(self, values: Dict[int, Any], inputs: Tensors) -> Tensors:
        """Predictions from variables' values by index, tables whole."""
        arguments = {self.variables.all[i].argument(): value for i, value in values.items()}
        arguments.update({f"input_{name}": value for name, value in inputs.items()})
        predictions, _ = self._call(arguments, False, None)
        return {
            name[len("output_") :]: value
            for name, value in self.named_predictions(predictions).items()
        }

    def named_predictions(self, predictions: Any) -> Tensors:
        """`output_NAME` of each."""
        flat = keras.tree.flatten(predictions)
        names = getattr(self.model, "output_names", None)
        if isinstance(predictions, dict):
            names = [str(name) for name in predictions]
            flat = [predictions[name] for name in predictions]
        elif names is None or len(names) != len(flat):
            names = [str(i) for i in range(len(flat))] if len(flat) > 1 else ["output"]
        if any(not isinstance(one, tf.Tensor) for one in flat):
            raise ValueError("the model's predictions must be dense tensors, in a list or a dict")
        return {f"output_{name}": tf.identity(one) for name, one in zip(names, flat)}

    # ---- parts of those

    def _forward(
        self,
        arguments: Tensors,
        training: bool,
        whole: bool,
        tape: Any = None,
        taken: Optional[List[Taken]] = None,
    ) -> Tuple[Any, Any]:
        """Predictions and the scope, with rows of tables from blocks, or from whole tables. `tape`
        watches the rows that are trained, which are added to `taken`."""
        turn = iter(self.lookups)

        def handle(layer: Any, inputs: Any, real: Callable[[], Any]) -> Any:
            variable = layer.embeddings
            if not self.variables.has(variable):
                return real()
            entry = self.variables.of(variable)
            if entry.kind != TABLE:
                return real()
            lookup = next(turn, None)
            if lookup is None or lookup.table is not entry:
                raise ValueError(
                    f"layer '{layer.name}' is called in another order when called again"
                )
            ids = tf.cast(inputs, tf.int32) if whole else arguments[lookup.argument]
            rows = tf.gather(arguments[entry.argument()], ids)
            rows.set_shape([*inputs.shape, *entry.shape[1:]])
            if tape is not None and taken is not None and entry.trainable:
                tape.watch(rows)
                taken.append(Taken(entry, ids, rows))
            return tf.cast(rows, layer.compute_dtype)

        with lookups.intercepted(handle):
            return self._call(arguments, training, _refuse_tables(self.variables))

    def _call(
        self, arguments: Tensors, training: bool, read: Optional[Callable[[Any], None]]
    ) -> Tuple[Any, Any]:
        """The model's predictions, and the scope with the variables' new values and losses."""
        mapping = [
            (entry.variable, arguments[entry.argument()])
            for entry in self.variables
            if entry.argument() in arguments and _has_its_shape(entry, arguments)
        ]
        scope = keras.StatelessScope(state_mapping=mapping, collect_losses=True)
        current = scope.get_current_value

        def get_current_value(variable: Any) -> Any:
            if read is not None:
                read(variable)
            return current(variable)

        scope.get_current_value = get_current_value
        inputs = self.inputs.pack(
            {port.name: arguments[f"input_{port.name}"] for port in self.inputs.all}
        )
        with scope:
            predictions = call(self.model, inputs, training)
            scope.added = list(self.model.losses)
        scope.get_current_value = current
        return predictions, scope

    def _data_loss(self, arguments: Tensors, predictions: Any) -> Any:
        labels, weight = self._targets(arguments)
        return tf.cast(self.loss(labels, predictions, weight), tf.float32)

    def _targets(self, arguments: Tensors) -> Tuple[Any, Any]:
        labels = {port.name: arguments[f"label_{port.name}"] for port in self.labels.all}
        weight = arguments["sample_weight"] if self.weight else None
        return self.labels.pack(labels), weight

    def _added(self, scope: Any) -> Any:
        """The sum of what layers and regularizers add to the loss, or None."""
        if not scope.added:
            return None
        if not self.loss.by_rows:
            raise ValueError(
                "loss: its reduction is 'sum', and the model's layers add losses of their own, which "
                "each replica would add: use 'sum_over_batch_size'"
            )
        return tf.add_n([tf.reduce_sum(tf.cast(loss, tf.float32)) for loss in scope.added])

    def _share(self, arguments: Tensors) -> Any:
        """These rows' share of the denominator; None: nothing to multiply by."""
        if not self.loss.by_rows:
            return None
        whole = arguments["denominator"]
        return tf.where(whole > 0, tf.math.divide_no_nan(self._rows(arguments), whole), 1.0)

    def _rows(self, arguments: Tensors) -> Any:
        label = arguments[f"label_{self.labels.all[0].name}"]
        return tf.cast(tf.shape(label)[0], tf.float32)

    def _gradient(self, entry: Entry, gradient: Any) -> Tensors:
        if gradient is None:
            return {}
        entry.sliced = isinstance(gradient, tf.IndexedSlices)
        return {entry.argument("grad"): self._unscaled(tf.convert_to_tensor(gradient))}

    def _row_gradients(self, taken: List[Taken], gradients: List[Any]) -> Tensors:
        """Of each table, an entry for each id. The gradient of the rows that a lookup gave is its
        entries already: that of the table would be the same by way of many more operations."""
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
            entry = self.variables.all[index]
            ids, values = (parts[0] if len(parts) == 1
                           else [tf.concat(list(side), 0) for side in zip(*parts)])  # fmt: skip
            results[entry.argument("rows")] = tf.identity(ids)
            results[entry.argument("grad")] = self._unscaled(values)
        return results

    def _unscaled(self, gradient: Any) -> Any:
        return gradient if self.loss_scale == 1 else gradient * (1.0 / self.loss_scale)

    # ---- arguments

    def _step_specs(self, whole: bool) -> Dict[str, Any]:
        specs = self._specs(self.variables.all, whole)
        if not whole:
            specs.update(self._ids_specs())
        specs.update(self._input_specs())
        for port in self.labels.all:
            specs[f"label_{port.name}"] = tracing.spec(port.shape, port.dtype)
        if self.weight is not None:
            specs["sample_weight"] = tracing.spec((), self.weight.dtype)
        specs["denominator"] = tracing.spec((), "float32", batch=False)
        return specs

    def _specs(self, entries: List[Entry], whole: bool = False) -> Dict[str, Any]:
        return {
            entry.argument(): tracing.spec(
                [None, *entry.shape[1:]] if entry.kind == TABLE and not whole else entry.shape,
                entry.dtype,
                batch=False,
            )
            for entry in entries
        }

    def _ids_specs(self) -> Dict[str, Any]:
        return {lookup.argument: tracing.spec(lookup.shape, "int32") for lookup in self.lookups}

    def _input_specs(self) -> Dict[str, Any]:
        return {
            f"input_{port.name}": tracing.spec(port.shape, port.dtype) for port in self.inputs.all
        }


def call(model: Any, inputs: Any, training: bool) -> Any:
    """As Keras's train_step and predict_step do it."""
    parameters = inspect.signature(model.call).parameters.values()
    takes = any(p.name == "training" or p.kind is p.VAR_KEYWORD for p in parameters)
    return model(inputs, training=training) if takes else model(inputs)


def _has_its_shape(entry: Entry, arguments: Tensors) -> bool:
    return bool(arguments[entry.argument()].shape.as_list() == entry.shape)


def _refuse_tables(variables: Variables) -> Callable[[Any], None]:
    def read(variable: Any) -> None:
        if variables.has(variable) and variables.of(variable).kind == TABLE:
            raise ValueError(
                f"table '{variables.of(variable).name}' is read otherwise than when it was first "
                "traced: the model's call must do the same each time"
            )

    return read
