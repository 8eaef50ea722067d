"""Makes an export: checks, traces, compares, writes."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List

import keras

from muster.keras import checks, decoding, examples, fields, manifest, metrics, serving, verify
from muster.keras.apply import Apply
from muster.keras.functions import Functions
from muster.keras.graph import Graph
from muster.keras.losses import Loss
from muster.keras.metrics import Metric
from muster.keras.optimizers import Optimizer
from muster.keras.variables import Variables


@dataclass(frozen=True)
class Request:
    """The arguments of muster.keras.export."""

    model: Any
    optimizer: Any
    loss: Any
    path: str
    inputs: Any
    label: Any
    sample_weight: Any
    key: Any
    metrics: Any
    loss_weights: Any
    example: Any


def export(request: Request) -> None:
    """See muster.keras.export."""
    if os.path.lexists(request.path):
        raise FileExistsError(f"{request.path} exists: give the export another name, or remove it")
    checks.check_model(request.model)
    with _unchanged(request.model):
        _export(request)


def _export(request: Request) -> None:
    model = request.model
    update = Optimizer(request.optimizer)
    given = None if _has_no_labels(request) else request.label
    mixed = checks.check_precision(model, update.loss_scale)
    loss = Loss(model, request.loss, request.loss_weights)
    inputs = fields.inputs_of(model, request.inputs)
    examples.predict_once(model, inputs, request.example)
    functions = Functions(model, Variables(model), inputs, loss, update.loss_scale)
    functions.find_lookups()
    field = examples.label_field(functions.predicted, loss.sparse)
    labels = fields.labels_of(given, field, wanted=loss.wants_labels)
    weight = fields.weight_of(request.sample_weight)
    key = fields.key_of(request.key, [*inputs.all, *labels.all, *([weight] if weight else [])])
    functions.set_targets(labels, weight)
    if loss.own:
        functions.find_lookups()
    batch = examples.batch(model, functions.lookups, inputs, labels, weight, request.example)
    names = getattr(model, "output_names", None)
    evaluated = verify.evaluate_once(model, loss, batch, mixed)
    metric = metrics.resolve(request.metrics, *evaluated, names)
    graph = _graph(functions, update, metric)
    if key is not None and any(one.name == key.feature for one in functions.predictions):
        raise ValueError(f"key: an output of the model is called '{key.feature}' too: rename it")
    _check_slices(functions.variables, update)
    slots: Dict[str, Any] = {}
    if update.has_rule(functions.variables):
        entry = update.manifest(functions.variables)
    else:
        apply = Apply(update, functions.variables)
        graph.add("apply", apply.traced(), scratch=True)
        slots, entry = apply.values(), apply.manifest()
    with _new_folder(request.path) as folder:
        graph.save(os.path.join(folder, "step"))
        serving.save(os.path.join(folder, serving.FOLDER), functions)
        manifest.write_weights(folder, functions.variables, slots)
        manifest.write(folder, manifest.content(functions, key, entry, metric, graph))
        verify.compare(folder, functions, update, batch, mixed)


def _graph(functions: Functions, update: Optimizer, measured: List[Metric]) -> Graph:
    graph = Graph()
    graph.add("step", functions.step(measured))
    if functions.ids is not None:
        graph.add("ids", functions.ids)
        graph.add("step_whole", functions.step(measured, whole=True))
    graph.add("predict", functions.predict())
    graph.add("evaluate", functions.evaluate(measured))
    for one in measured:
        graph.add(*one.result())
    for port in functions.inputs.all:
        if port.decode in ("png", "jpeg"):
            graph.add(f"decode_{port.name}", decoding.function(port))
    schedule = update.schedule()
    if schedule is not None:
        graph.add("learning_rate", schedule)
    return graph


def _check_slices(variables: Variables, update: Optimizer) -> None:
    """Refuses an optimizer that squares gradients entry by entry where Keras has a list of rows."""
    for entry in variables:
        if entry.sliced and entry.trainable and not update.adds_up():
            raise ValueError(
                f"variable '{entry.name}' is read by row (gather, or an Embedding whose ids are "
                "neither computed from the inputs alone nor labels as they are), and "
                f"{update.name} in Keras treats repeated rows one by one: look rows up with "
                "keras.layers.Embedding by ids of the inputs, or use SGD without clipping"
            )


def _has_no_labels(request: Request) -> bool:
    """Whether nothing would read the default label."""
    own = type(request.model).compute_loss is not keras.Model.compute_loss
    return request.loss is None and not own and request.metrics is None


@contextlib.contextmanager
def _unchanged(model: Any) -> Iterator[None]:
    """Restores the values of the model's variables at the end."""
    changed = [*model.variables, *model.metrics_variables]
    before = [(variable, variable.numpy()) for variable in changed]
    try:
        yield
    finally:
        for variable, value in before:
            variable.assign(value)


@contextlib.contextmanager
def _new_folder(path: str) -> Iterator[str]:
    """Yields a folder that becomes `path` when it is complete, and is removed after an error."""
    path = os.path.abspath(path)
    parent = os.path.dirname(path)
    os.makedirs(parent, exist_ok=True)
    folder = tempfile.mkdtemp(prefix=f".{os.path.basename(path)}.", dir=parent)
    try:
        yield folder
        _sync(folder)
        os.chmod(folder, 0o755)
        os.rename(folder, path)
        _sync_folder(parent)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


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
