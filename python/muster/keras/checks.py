"""What of a model can be known to be impossible before it is traced."""

from __future__ import annotations

from typing import Any, Iterator, List, Tuple

import keras
import tensorflow as tf


def check_model(model: Any) -> None:
    """Raises ValueError naming the layer and what to do."""
    layers = check_built(model)
    for method in ("train_step", "compute_loss"):
        if getattr(type(model), method) is not getattr(keras.Model, method):
            raise ValueError(
                f"model '{model.name}' has its own {method}, which Muster does not call: put it into "
                "the loss, or into a layer's add_loss"
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
    """The layers. Raises ValueError for what is no Keras 3 model whose variables are there."""
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
    """Whether the model computes in 16 bits. Raises ValueError for float16 without a loss scale."""
    computed = {str(layer.compute_dtype) for layer in layers_of(model)}
    if "float16" in computed and loss_scale == 1.0:
        raise ValueError(
            "the model computes in float16, where small gradients vanish: give the optimizer "
            "loss_scale_factor=1024 or so, or use mixed_bfloat16"
        )
    return bool(computed & {"float16", "bfloat16"})


def layers_of(model: Any) -> Iterator[Any]:
    """The model and all layers in it."""
    return iter(model._flatten_layers(include_self=True, recursive=True))


def _check_layer(layer: Any) -> None:
    what = f"layer '{layer.name}'"
    if isinstance(layer, keras.layers.Embedding):
        if layer.embeddings_regularizer is not None:
            raise ValueError(
                f"{what}: embeddings_regularizer would give every row a gradient at every step: "
                "leave it out, or use an optimizer with weight_decay"
            )
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
