"""Puts an export together: checks, traces, compares, writes."""

from __future__ import annotations

import os
import shutil
import tempfile
from typing import Any, Dict, List


from muster.keras import checks, decoding, examples, fields, manifest, metrics, serving, verify
from muster.keras.apply import Apply
from muster.keras.fields import Ports
from muster.keras.functions import Functions
from muster.keras.graph import Graph
from muster.keras.losses import Loss
from muster.keras.metrics import Metric
from muster.keras.optimizers import Optimizer
from muster.keras.variables import Variables


def export(
    model: Any,
    optimizer: Any,
    loss: Any,
    path: str,
    inputs: Any,
    label: Any,
    sample_weight: Any,
    metric: Any,
    loss_weights: Any,
    example: Any,
) -> None:
    """See muster.keras.export."""
    if os.path.lexists(path):
        raise FileExistsError(f"{path} exists: give the export another name, or remove it")
    checks.check_model(model)
    update = Optimizer(optimizer)
    mixed = checks.check_precision(model, update.loss_scale)
    data_loss = Loss(model, loss, loss_weights)
    ports = fields.inputs_of(model, inputs)
    predicted = examples.predict_once(model, ports, example)
    labels = fields.labels_of(label, examples.label_field(predicted, data_loss.sparse))
    weight = fields.weight_of(sample_weight)
    variables = Variables(model)

    functions = Functions(
        model, variables, ports, labels, weight, data_loss, update.loss_scale
    )
    functions.find_lookups()
    batch = examples.batch(model, functions.lookups, ports, labels, weight, example)
    measured = metrics.resolve(metric, *verify.evaluate_once(model, data_loss, batch))
    graph = _graph(functions, update, measured, ports)
    _check_slices(variables, update)
    slots: Dict[str, Any] = {}
    if update.has_rule(variables):
        entry = update.manifest(variables)
    else:
        apply = Apply(update, variables)
        graph.add("apply", apply.traced(), scratch=True)
        slots, entry = apply.values(), apply.manifest()
    content = manifest.content(
        model, functions, ports, labels, weight, data_loss, entry, measured, graph
    )

    parent = os.path.dirname(os.path.abspath(path))
    os.makedirs(parent, exist_ok=True)
    folder = tempfile.mkdtemp(prefix=f".{os.path.basename(path)}.", dir=parent)
    try:
        graph.save(os.path.join(folder, "step"))
        serving.save(os.path.join(folder, "serving"), model, functions, ports)
        manifest.write_weights(folder, variables, slots)
        manifest.write(folder, content)
        verify.compare(folder, model, functions, data_loss, update, batch, mixed)
        _sync(folder)
        os.chmod(folder, 0o755)
        os.rename(folder, path)
        _sync_folder(parent)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _graph(
    functions: Functions, update: Optimizer, measured: List[Metric], inputs: Ports
) -> Graph:
    graph = Graph()
    graph.add("step", functions.step())
    if functions.ids is not None:
        graph.add("ids", functions.ids)
        graph.add("step_whole", functions.step(whole=True))
    graph.add("predict", functions.predict())
    graph.add("evaluate", functions.evaluate(measured))
    for one in measured:
        graph.add(*one.result())
    for port in inputs.all:
        if port.decode in ("png", "jpeg"):
            graph.add(f"decode_{port.name}", decoding.function(port))
    schedule = update.schedule()
    if schedule is not None:
        graph.add("learning_rate", schedule)
    return graph


def _check_slices(variables: Variables, update: Optimizer) -> None:
    """An optimizer that squares gradients does it entry by entry where Keras has a list of rows."""
    for entry in variables:
        if entry.sliced and entry.trainable and not update.adds_up():
            raise ValueError(
                f"variable '{entry.name}' is read by row (gather, or an Embedding whose ids are not "
                "computed from the inputs alone), and "
                f"{update.name} in Keras treats repeated rows one by one: look rows up with "
                "keras.layers.Embedding by ids of the inputs, or use SGD without clipping"
            )


def _sync(folder: str) -> None:
    for parent, _, files in os.walk(folder):
        for name in files:
            with open(os.path.join(parent, name), "rb") as file:
                os.fsync(file.fileno())
        _sync_folder(parent)


def _sync_folder(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


