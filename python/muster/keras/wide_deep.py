"""Converts a Keras 2 WideDeepModel of feature columns to a model folder: a model file, and a
checkpoint with the model's weights and its optimizers' state.

What a model file cannot express raises ValueError that names the layer, the loss or the optimizer.
"""

from __future__ import annotations

import os
import pathlib
import tempfile
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Tuple

import numpy as np
import tensorflow as tf

from muster.batch_stream import StreamColumn
from muster.cells import FLOAT, INT, STRING
from muster.estimator import optimizers
from muster.keras.wide_deep_layers import Chain, Deep, Rows, Wide, chain_of, deep_of, wide_of
from muster.model_file import ModelFile, SampleInput, input_uses, stream_columns

# Optimizer -> its slots, in Keras and in a checkpoint, and the argument that a slot depends on.
_SLOTS: Dict[str, Tuple[Tuple[str, str], ...]] = {
    "Ftrl": (("accumulator", ""), ("linear", "")),
    "Adagrad": (("accumulator", ""),),
    "Adam": (("m", ""), ("v", "")),
    "RMSprop": (("rms", ""), ("momentum", "momentum"), ("mg", "centered")),
    "SGD": (("momentum", "momentum"),),
}
_HEADS = (
    "a model file has BinaryCrossentropy with activation='sigmoid' (or from_logits=True and none), "
    "SparseCategoricalCrossentropy with 'softmax', and MeanSquaredError with none"
)


@dataclass(frozen=True)
class _Part:
    """What one optimizer trains, by the names in a checkpoint."""

    optimizer: Any
    variables: Mapping[str, Any]


def to_model_file(model: Any, path: str, label: str, batch_size: int) -> None:
    """See muster.keras.to_model_file."""
    if type(model).__name__ != "WideDeepModel":
        raise ValueError(
            f"a tf.keras.experimental.WideDeepModel is wanted, not a {type(model).__name__}; a Keras "
            "3 model is exported by muster.keras.export"
        )
    if os.path.lexists(path):
        raise FileExistsError(f"{path} exists: give the model folder another name, or remove it")
    chains = chain_of(model.linear_model, "linear"), chain_of(model.dnn_model, "dnn")
    wide, deep = wide_of(chains[0]), deep_of(chains[1])
    trained_by = _optimizers(model)
    steps = {int(one.iterations) for one in trained_by}
    if len(steps) > 1:
        raise ValueError(f"the optimizers have done different numbers of steps: {sorted(steps)}")
    head = _head(model, deep.units)
    parent = os.path.dirname(os.path.abspath(path))
    os.makedirs(parent, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".muster-", dir=parent) as made:
        folder = pathlib.Path(made) / "model"
        folder.mkdir()
        linear_names, dnn_names = _write_spec(
            folder, chains, wide, deep, trained_by, head, label, batch_size
        )
        parts = [
            _Part(trained_by[0], wide.variables(linear_names)),
            _Part(trained_by[1], deep.variables(dnn_names)),
        ]
        _write_checkpoint(folder, parts, deep.states, steps.pop())
        os.rename(folder, path)


def _write_spec(
    folder: pathlib.Path,
    chains: Tuple[Chain, Chain],
    wide: Wide,
    deep: Deep,
    trained_by: Tuple[Any, Any],
    head: Any,
    label: str,
    batch_size: int,
) -> Tuple[List[str], List[str]]:
    """Writes the model file; returns the names that the columns of both parts have in it."""
    uses, sample = input_uses([*wide.columns, *deep.columns]), _sample(chains)
    if label in uses:
        raise ValueError(f"label '{label}' is a feature of the model too")
    file = ModelFile(folder)
    label_column = StreamColumn(label, FLOAT if head == "regression" else INT, False)
    file.add_inputs([*stream_columns(uses, sample), label_column], uses, sample)
    names = file.part(wide.columns), file.part(deep.columns)
    entries = [optimizers.entry(one, None) for one in trained_by]
    spec: Dict[str, Any] = {
        "type": "wide_deep",
        "linear": {"columns": names[0], "optimizer": entries[0]},
        "dnn": {"columns": names[1], **deep.settings, "optimizer": entries[1]},
    }
    clips = optimizers.clipping(*trained_by)
    if clips:
        spec["clip_gradients"] = clips
    text = file.text(label, spec, head=head, train={"batch_size": batch_size})
    (folder / "model.yaml").write_text(text, encoding="utf-8")
    return names


def _sample(chains: Tuple[Chain, Chain]) -> Dict[str, SampleInput]:
    """Returns the types of the features, from their tf.keras.Input."""
    sample: Dict[str, SampleInput] = {}
    for chain in chains:
        for name, tensor in chain.inputs.items():
            if tensor.dtype == tf.string:
                kind = STRING
            else:
                kind = INT if tensor.dtype.is_integer else FLOAT
            shape = tensor.shape.as_list()[1:]
            found = SampleInput(kind, shape not in ([], [1]))
            if sample.setdefault(name, found) != found:
                raise ValueError(f"feature '{name}': the two parts have different Inputs for it")
    return sample


def _optimizers(model: Any) -> Tuple[Any, Any]:
    given = getattr(model, "optimizer", None)
    if given is None:
        raise ValueError("the model is not compiled: its optimizers and its loss are wanted")
    pair = tuple(given) if isinstance(given, (list, tuple)) else (given, given)
    for one in pair:
        name = type(one).__name__
        if not hasattr(one, "get_slot"):
            raise ValueError(
                f"optimizer {name}: of TensorFlow 2.11 or later, give those of "
                "tf.keras.optimizers.legacy, whose state can be found"
            )
        if name not in _SLOTS:
            raise ValueError(f"optimizer {name}: Muster has {', '.join(_SLOTS)}")
    return pair[0], pair[1]


def _head(model: Any, units: int) -> Any:
    """Returns the model file's head for the loss and the activation."""
    loss: Dict[str, Any] = getattr(model.loss, "get_config", dict)()
    name = model.loss if isinstance(model.loss, str) else ""
    name = name or getattr(model.loss, "__name__", type(model.loss).__name__)
    short = name.lower().replace("_", "")
    last = model.activation
    activation = "linear" if last is None else str(getattr(last, "__name__", last))
    said = f"loss {name} with activation {activation} and {units} outputs"
    if loss.get("reduction", "auto") not in ("auto", "sum_over_batch_size"):
        raise ValueError(f"{said}: its reduction must be the mean over the rows")
    if loss.get("label_smoothing"):
        raise ValueError(f"{said}: a model file has no label_smoothing")
    if short == "binarycrossentropy" and units == 1:
        if activation == ("linear" if loss.get("from_logits") else "sigmoid"):
            return "binary"
    if short == "sparsecategoricalcrossentropy" and units > 2:
        if activation == ("linear" if loss.get("from_logits") else "softmax"):
            return {"multi_class": {"classes": units}}
    if short in ("meansquarederror", "mse") and units == 1 and activation == "linear":
        return "regression"
    raise ValueError(f"{said}: {_HEADS}")


def _write_checkpoint(
    folder: pathlib.Path, parts: List[_Part], states: Mapping[str, Any], step: int
) -> None:
    tensors: Dict[str, Any] = {"global_step": np.int64(step)}
    for part in parts:
        for name, variable in part.variables.items():
            tensors[name] = _values(variable)
            for slot, value in _slots(part.optimizer, variable).items():
                tensors[f"training/{type(part.optimizer).__name__}/{name}/{slot}"] = value
    tensors.update({name: _values(variable) for name, variable in states.items()})
    name = f"model.ckpt-{step}"
    tf.raw_ops.SaveV2(
        prefix=str(folder / name),
        tensor_names=list(tensors),
        shape_and_slices=[""] * len(tensors),
        tensors=list(tensors.values()),
    )
    (folder / "checkpoint").write_text(
        f'model_checkpoint_path: "{name}"\nall_model_checkpoint_paths: "{name}"\n'
    )


def _values(variable: Any) -> Any:
    if isinstance(variable, Rows):
        return variable.variable.numpy()[variable.begin : variable.end]
    return variable.numpy()


def _slots(optimizer: Any, variable: Any) -> Dict[str, Any]:
    """Returns the slots of a variable, or their initial values if the optimizer has not trained
    yet."""
    config = optimizer.get_config()
    whole = variable.variable if isinstance(variable, Rows) else variable
    found = {}
    for slot, needs in _SLOTS[type(optimizer).__name__]:
        if needs and not config[needs]:
            continue
        try:
            value = optimizer.get_slot(whole, slot).numpy()
        except (KeyError, TypeError):
            first = config.get("initial_accumulator_value", 0.0) if slot == "accumulator" else 0.0
            value = np.full(whole.shape, first, np.float32)
        if isinstance(variable, Rows):
            value = value[variable.begin : variable.end]
        found[slot] = value
    return found
