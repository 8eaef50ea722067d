"""The model's functions, traced: pure functions of variables, inputs and labels by name.

Arguments and results are named as in docs/formats/keras_export.md.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional, Tuple

import keras
import tensorflow as tf

from muster.keras import gradients as gradients_lib
from muster.keras import lookups, outputs, tracing
from muster.keras.fields import Port, Ports
from muster.keras.gradients import Taken
from muster.keras.losses import Loss
from muster.keras.metrics import Metric
from muster.keras.outputs import Prediction
from muster.keras.tracing import Tensors, Traced
from muster.keras.variables import DENSE, SEED, STATE, TABLE, Entry, Variables


@dataclass(frozen=True)
class _Found:
    """The lookups in a trace of the model's call."""

    recorder: lookups.Recorder
    rows: List[lookups.Lookup]
    traced: Traced


class Functions:
    """Call `find_lookups` first, which finds out which variables are tables; then `set_targets`;
    then `step`, which finds out what the other variables are. A model with a custom compute_loss
    may look up rows by labels: then call `find_lookups` again after `set_targets`."""

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
        self.labels = Ports([], None)
        self._has_targets = False
        self.weight: Optional[Port] = None
        self.predicted: Any = None  # placeholders of the predictions, for their shapes
        self.loss = loss
        self.loss_scale = loss_scale
        self.predictions: List[Prediction] = []
        self.masked = False  # whether some prediction has a mask, which weights the loss

    def find_lookups(self) -> None:
        """Finds out which variables are tables, of which a step reads only rows. Prediction may
        read them in other ways too; then it reads the whole table (`Entry.read_whole`)."""
        training = self._find_lookups(True)
        prediction = self._find_lookups(False)
        for entry in self.variables:
            entry.read_whole = False
            if entry.kind != SEED:
                looked_up = any(one.table is entry for one in training.rows)
                entry.kind = TABLE if looked_up else DENSE
        self.lookups = lookups.number(training.rows)
        for entry in self.variables.of_kind(TABLE):
            entry.read_whole = entry.index in prediction.recorder.whole
        turn = 0
        for one in prediction.rows:
            place = self._next_lookup(turn, one.table, one.layer, one.shape)
            if place is not None:
                turn = place + 1
            elif one.table.kind == TABLE:
                one.table.read_whole = True
        computed = lookups.computed_ids(training.recorder, self.lookups)
        if computed:
            with training.traced.graph.as_default():
                ids = {name: tf.cast(value, tf.int64) for name, value in computed.items()}
            self._ids = training.traced.with_outputs(ids)

    def _find_lookups(self, training: bool) -> _Found:
        recorder = lookups.Recorder(self.variables)
        with_loss = self.loss.own and self._has_targets

        def body(arguments: Tensors) -> Tensors:
            with lookups.intercepted(recorder.handle):
                predictions, scope = self._call(arguments, training, recorder.read, with_loss)
            self.predicted = predictions
            first = keras.tree.flatten(predictions)[0]
            return {"first": first, "loss": scope.loss} if with_loss else {"first": first}

        specs = {**self._specs(self.variables.all, whole=True), **self._input_specs()}
        if with_loss:
            specs.update(self._target_specs())
        traced = tracing.trace(specs, body)
        return _Found(recorder, lookups.find(recorder, traced), traced)

    def _next_lookup(self, turn: int, table: Entry, layer: str, shape: Any) -> Optional[int]:
        """Returns the index of the first such lookup from `turn` on."""
        for place in range(turn, len(self.lookups)):
            one = self.lookups[place]
            if one.table is table and (one.layer, one.shape) == (layer, tuple(shape)):
                return place
        return None

    def set_targets(self, labels: Ports, weight: Optional[Port]) -> None:
        """Sets the arguments of the loss besides predictions."""
        self.labels = labels
        self.weight = weight
        self._has_targets = True

    @property
    def takes_class_weights(self) -> bool:
        """Whether a step without a column of weights takes a weight for each row, which is 1 unless
        `muster train --class-weight` sets it: if Keras's fit accepts class_weight, and the loss
        with weights of 1 is the same as without weights."""
        shape = getattr(self.predicted, "shape", None)
        return (
            self.weight is None
            and self.loss.weighs_rows
            and len(self.labels.all) == 1
            and self.labels.all[0].dtype != "string"
            and None not in self.labels.all[0].shape
            and len(self.labels.all[0].shape) <= 1
            and shape is not None
            and len(shape) <= 2
        )

    @property
    def ids(self) -> Optional[Traced]:
        """Returns the function that computes ids; None if no lookup has computed ids."""
        return self._ids

    def step(self, metrics: List[Metric], whole: bool = False) -> Traced:
        """Traces a step. Also finds states, and trainable variables that the loss does not depend
        on. `metrics` use the same predictions as the loss, as in Keras's fit."""
        states: List[Entry] = []

        def body(arguments: Tensors) -> Tensors:
            dense = [entry for entry in self.variables.trainable if entry.kind != TABLE]
            taken: List[Taken] = []
            with tf.GradientTape(watch_accessed_variables=False) as tape:
                tape.watch([arguments[entry.argument()] for entry in dense])
                predictions, scope = self._forward(arguments, True, whole, True, tape, taken)
                self.masked = any(
                    getattr(one, "_keras_mask", None) is not None
                    for one in keras.tree.flatten(predictions)
                )
                data, loss = scope.data_loss, scope.loss
                scale = self._share(arguments)
                if scale is not None:
                    data, loss = data * scale, loss * scale
                minimised = loss * self.loss_scale if self.loss_scale != 1 else loss
            results: Tensors = {"loss": loss, "data_loss": data}
            labels, _ = self._targets(arguments)
            for metric in metrics:
                results.update(metric.increments(labels, predictions))
            sources = [arguments[entry.argument()] for entry in dense]
            gradients = tape.gradient(minimised, [*sources, *(one.rows for one in taken)])
            for entry, gradient in zip(dense, gradients):
                results.update(gradients_lib.of_variable(entry, gradient, self.loss_scale))
            rows = gradients[len(dense) :]
            results.update(gradients_lib.of_rows(self.variables, taken, rows, self.loss_scale))
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

        specs = self._step_specs(whole)
        if self.takes_class_weights:
            specs["sample_weight"] = tracing.spec((), "float32")
        traced = tracing.trace(specs, body)
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
            named = outputs.named(self.model, predictions)
            self.predictions = outputs.described(named)
            return named

        return tracing.trace({**self._specs(self.variables.all), **self._ids_specs(),
                              **self._input_specs(), **self._whole_specs()}, body)  # fmt: skip

    def evaluate(self, metrics: List[Metric]) -> Traced:
        """Traces an evaluation. `loss_sum` is the loss of the batch in Keras's evaluate, times its
        rows."""

        def body(arguments: Tensors) -> Tensors:
            predictions, scope = self._forward(arguments, False, False, with_loss=True)
            results = outputs.named(self.model, predictions)
            results["loss_sum"] = scope.loss * self._rows(arguments)
            labels, _ = self._targets(arguments)
            for metric in metrics:
                results.update(metric.increments(labels, predictions))
            return results

        return tracing.trace({**self._step_specs(False), **self._whole_specs()}, body)

    def serve(self, values: Dict[int, Any], inputs: Tensors) -> Tensors:
        """Computes predictions from the variables' values by index; tables are whole."""
        arguments = {self.variables.all[i].argument(): value for i, value in values.items()}
        arguments.update({f"input_{name}": value for name, value in inputs.items()})
        predictions, _ = self._call(arguments, False, None)
        return {
            name[len("output_") :]: value
            for name, value in outputs.named(self.model, predictions).items()
        }

    # ---- parts of these functions

    def _forward(
        self,
        arguments: Tensors,
        training: bool,
        whole: bool,
        with_loss: bool = False,
        tape: Any = None,
        taken: Optional[List[Taken]] = None,
    ) -> Tuple[Any, Any]:
        """Returns predictions and the scope, with rows of tables from blocks or from whole tables.
        `tape` watches the trained rows, which are added to `taken`."""
        turn = 0

        def handle(layer: Any, inputs: Any, real: Callable[[], Any]) -> Any:
            nonlocal turn
            variable = layer.embeddings
            if not self.variables.has(variable):
                return real()
            entry = self.variables.of(variable)
            if entry.kind != TABLE:
                return real()
            place = self._next_lookup(turn, entry, layer.name, inputs.shape.as_list()[1:])
            if place is None and entry.read_whole and not training:
                return real()
            if place is None or (training and place != turn):
                raise ValueError(
                    f"layer '{layer.name}' is called in another order when called again"
                )
            turn = place + 1
            lookup = self.lookups[place]
            ids = tf.cast(inputs, tf.int32) if whole else arguments[lookup.argument]
            rows = tf.gather(arguments[entry.argument()], ids)
            rows.set_shape([*inputs.shape, *entry.shape[1:]])
            if tape is not None and taken is not None and entry.trainable:
                tape.watch(rows)
                taken.append(Taken(entry, ids, rows))
            return tf.cast(rows, layer.compute_dtype)

        with lookups.intercepted(handle):
            read = lookups.refuse_tables(self.variables, arguments)
            return self._call(arguments, training, read, with_loss)

    def _call(
        self,
        arguments: Tensors,
        training: bool,
        read: Optional[Callable[[Any], None]],
        with_loss: bool = False,
    ) -> Tuple[Any, Any]:
        """Returns the model's predictions, and the scope with the variables' new values and, if
        requested, the losses: `loss`, and `data_loss` without what layers add."""
        mapping = [
            (entry.variable, arguments[name])
            for entry in self.variables
            for name in (entry.argument("whole"), entry.argument())
            if name in arguments and arguments[name].shape.as_list() == entry.shape
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
            if not self.loss.own:  # a custom compute_loss reads the losses that it needs
                list(self.model.losses)  # so that the variables that regularizers read are found
            if with_loss:
                labels, weight = self._targets(arguments)
                scope.data_loss, scope.loss = self.loss(
                    inputs, labels, predictions, weight, training
                )
        scope.get_current_value = current
        return predictions, scope

    def _targets(self, arguments: Tensors) -> Tuple[Any, Any]:
        labels = {port.name: arguments[f"label_{port.name}"] for port in self.labels.all}
        return self.labels.pack(labels), arguments.get("sample_weight")

    def _share(self, arguments: Tensors) -> Any:
        """Returns these rows' share of the denominator; None: there is nothing to multiply by."""
        if not self.loss.by_rows:
            return None
        whole = arguments["denominator"]
        return tf.where(whole > 0, tf.math.divide_no_nan(self._rows(arguments), whole), 1.0)

    def _rows(self, arguments: Tensors) -> Any:
        ports, kind = (self.labels, "label") if self.labels.all else (self.inputs, "input")
        return tf.cast(tf.shape(arguments[f"{kind}_{ports.all[0].name}"])[0], tf.float32)

    # ---- arguments

    def _step_specs(self, whole: bool) -> Dict[str, Any]:
        specs = self._specs(self.variables.all, whole)
        if not whole:
            specs.update(self._ids_specs())
        specs.update(self._input_specs())
        specs.update(self._target_specs())
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

    def _whole_specs(self) -> Dict[str, Any]:
        return {
            entry.argument("whole"): tracing.spec(entry.shape, entry.dtype, batch=False)
            for entry in self.variables
            if entry.read_whole
        }

    def _target_specs(self) -> Dict[str, Any]:
        specs = {
            f"label_{port.name}": tracing.spec(port.shape, port.dtype) for port in self.labels.all
        }
        if self.weight is not None:
            specs["sample_weight"] = tracing.spec(self.weight.shape, self.weight.dtype)
        return specs

    def _ids_specs(self) -> Dict[str, Any]:
        return {lookup.argument: tracing.spec(lookup.shape, "int32") for lookup in self.lookups}

    def _input_specs(self) -> Dict[str, Any]:
        return {
            f"input_{port.name}": tracing.spec(port.shape, port.dtype) for port in self.inputs.all
        }


def call(model: Any, inputs: Any, training: bool) -> Any:
    """Calls the model as Keras's train_step and predict_step do."""
    parameters = inspect.signature(model.call).parameters.values()
    takes = any(p.name == "training" or p.kind is p.VAR_KEYWORD for p in parameters)
    return model(inputs, training=training) if takes else model(inputs)
