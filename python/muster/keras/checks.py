"""Checks what can be seen of a model before it is traced."""

from __future__ import annotations

import warnings
from typing import Any, Iterator, List, Tuple

import keras
import tensorflow as tf

# What Muster does by itself, and how else a model can express what it does differently.
_OWN = {
    "train_step": "put it into the loss, a layer's add_loss or the model's compute_loss",
    "test_step": "put it into the loss, the model's compute_loss or metrics=",
    "predict_step": "put it into the model's call",
    "compute_metrics": "give the metrics as metrics=",
}
# Methods around those. Without them a model computes the same, except for their side effects.
_AROUND = ("fit", "evaluate", "predict")


def check_model(model: Any) -> None:
    """Raises ValueError that names the layer and what to do."""
    layers = check_built(model)
    for method, instead in _OWN.items():
        if getattr(type(model), method) is not getattr(keras.Model, method):
            raise ValueError(
                f"model '{model.name}' has its own {method}, which Muster does not call: {instead}"
            )
    for method in _AROUND:
        if getattr(type(model), method) is not getattr(keras.Model, method):
            warnings.warn(
                f"model '{model.name}' has its own {method}, which Muster does not call: what it does "
                "besides (bring the candidates of a retrieval up to date) is to be done in Python, "
                "after muster.keras.load",
                stacklevel=4,
            )
    if not model.trainable_variables:
        raise ValueError(f"model '{model.name}' has no trainable weights")
    for layer in layers:
        _check_layer(layer)
    for variable in model.trainable_variables:
        if variable.dtype != "float32":
            raise ValueError(
                f"variable '{variable.path}' is trained in {variable.dtype}: only float32 can be; "
                "for mixed precision say dtype='mixed_bfloat16', which keeps weights in float32"
            )


def check_built(model: Any) -> List[Any]:
    """Returns the layers. Raises ValueError for anything but a built Keras 3 model."""
    if not isinstance(model, keras.Model):
        kind = type(model).__module__.split(".")[0]
        if kind == "tf_keras":
            raise ValueError(
                f"model '{getattr(model, 'name', '')}' is of Keras 2 (tf_keras): build it with Keras "
                "3 (import keras; unset TF_USE_LEGACY_KERAS)"
            )
        raise ValueError(f"a Keras model is wanted, not {type(model).__name__}")
    if not model.built:
        raise ValueError(
            f"model '{model.name}' is not built: call it once on a batch, or begin a Sequential with "
            "keras.Input"
        )
    return list(layers_of(model))


def check_precision(model: Any, loss_scale: float) -> bool:
    """Returns whether the model computes in 16 bits. Raises ValueError for float16 without a loss
    scale."""
    computed = {str(layer.compute_dtype) for layer in layers_of(model)}
    if "float16" in computed and loss_scale == 1.0:
        raise ValueError(
            "the model computes in float16, where small gradients vanish: give the optimizer "
            "loss_scale_factor=1024 or so, or use mixed_bfloat16"
        )
    return bool(computed & {"float16", "bfloat16"})


def layers_of(model: Any) -> Iterator[Any]:
    """Yields the model and all layers in it."""
    return iter(model._flatten_layers(include_self=True, recursive=True))


def _check_layer(layer: Any) -> None:
    what = f"layer '{layer.name}'"
    if isinstance(layer, keras.layers.Embedding):
        if getattr(layer, "lora_enabled", False):
            raise ValueError(f"{what}: LoRA embeddings are not carried over")
    if getattr(layer, "stateful", False) is True:
        raise ValueError(
            f"{what}: stateful=True carries state from batch to batch, which replicas cannot share: "
            "say stateful=False"
        )
    if getattr(layer, "synchronized", False) is True:
        raise ValueError(
            f"{what}: synchronized=True: an exported step normalizes over its own replica's rows: "
            "say synchronized=False"
        )
    if getattr(layer, "quantization_mode", None):
        raise ValueError(f"{what} is quantized: export the model before quantizing it")
    if type(layer).__module__.startswith("keras."):
        return  # what a lookup layer has counted does not affect its call
    for attribute, variable in _raw_variables(layer):
        raise ValueError(
            f"{what}: its attribute '{attribute}' is a tf.Variable ('{variable.name}'), which Keras "
            "does not train: make it with the layer's add_weight"
        )


def _raw_variables(layer: Any) -> Iterator[Tuple[str, Any]]:
    for name, value in list(vars(layer).items()):
        if name.startswith("_self_") or name.startswith("_tracker"):
            continue
        values: List[Any] = [value]
        if isinstance(value, (list, tuple)):
            values = list(value)
        elif isinstance(value, dict):
            values = list(value.values())
        for one in values:
            if isinstance(one, tf.Variable):
                yield name, one
