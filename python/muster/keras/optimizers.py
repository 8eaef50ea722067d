"""A Keras optimizer in the manifest: by name and numbers, or as a function to apply."""

from __future__ import annotations

import struct
from typing import Any, Dict, List, Optional, Tuple

import keras
import tensorflow as tf

from muster.keras import tracing
from muster.keras.tracing import Tensors, Traced
from muster.keras.variables import Entry, Variables

# The optimizers that have a rule (docs/formats/keras_export.md), and their arguments.
_RULES: Dict[str, Tuple[str, ...]] = {
    "SGD": ("momentum", "nesterov"),
    "Adagrad": ("initial_accumulator_value", "epsilon"),
    "Adam": ("beta_1", "beta_2", "epsilon"),
    "AdamW": ("beta_1", "beta_2", "epsilon"),
    "RMSprop": ("rho", "momentum", "epsilon", "centered"),
    "Ftrl": (
        "learning_rate_power",
        "initial_accumulator_value",
        "l1_regularization_strength",
        "l2_regularization_strength",
        "l2_shrinkage_regularization_strength",
        "beta",
    ),
}
_SCHEDULES = (
    "ExponentialDecay",
    "InverseTimeDecay",
    "PolynomialDecay",
    "PiecewiseConstantDecay",
    "CosineDecay",
    "CosineDecayRestarts",
)
_CLIPS = ("clipnorm", "clipvalue", "global_clipnorm")


class Optimizer:
    """`given` is what `compile(optimizer=...)` takes. It is not changed; `fresh` makes new ones.

    Raises ValueError for what cannot be exported.
    """

    def __init__(self, given: Any) -> None:
        self._given = keras.optimizers.get(given)
        self.name = type(self._given).__name__
        _check(self._given)
        try:
            self._config = dict(self._given.get_config())
        except NotImplementedError as error:
            raise ValueError(f"optimizer {self.name}: {error}") from error
        self._rate = self._given._learning_rate
        if _is_schedule(self._rate):
            self._config["learning_rate"] = self._rate
        elif not isinstance(self._config["learning_rate"], (int, float)):
            raise ValueError(
                f"optimizer {self.name}: a learning rate that is a function: use a number or one of "
                "keras.optimizers.schedules (your own LearningRateSchedule too)"
            )
        self.loss_scale = float(self._given.loss_scale_factor or 1.0)

    def fresh(self) -> Any:
        """Returns a new one with the same arguments, for gradients that are not scaled."""
        return type(self._given).from_config(dict(self._config, loss_scale_factor=None))

    def built(self, variables: List[Any], trained: List[Entry], all_: Variables) -> Any:
        """Returns a new one for `variables`, which are the `trained` ones or replace them."""
        optimizer = self.fresh()
        excluded = (self._weight_decay(all_) or {"excluded": []})["excluded"]
        if excluded:
            optimizer.exclude_from_weight_decay(
                var_list=[v for v, entry in zip(variables, trained) if entry.index in excluded]
            )
        optimizer.build(variables)
        return optimizer

    def adds_up(self) -> bool:
        """Whether the gradients of repeated rows may be added up before the optimizer gets them."""
        clipped = any(getattr(self._given, clip, None) for clip in _CLIPS)
        return self.name == "SGD" and not clipped

    def has_rule(self, variables: Variables) -> bool:
        constrained = any(
            entry.variable.constraint is not None for entry in variables if entry.trainable
        )
        known = type(self._given).__module__.startswith("keras.") and self.name in _RULES
        return known and not constrained and not getattr(self._given, "amsgrad", False)

    def manifest(self, variables: Variables) -> Dict[str, Any]:
        """Returns the manifest's entry of an optimizer with a rule."""
        config = self._config
        entry: Dict[str, Any] = {"name": self.name, "rule": "keras"}
        entry.update({name: _number(config[name]) for name in _RULES[self.name]})
        entry["learning_rate"] = self._learning_rate()
        clips = {name: _number(config[name]) for name in _CLIPS if config.get(name)}
        entry["clip"] = clips or None
        entry["weight_decay"] = self._weight_decay(variables)
        return entry

    def schedule(self) -> Optional[Traced]:
        """Returns the learning rate as a function of the step, for a schedule without a name."""
        if not _is_schedule(self._rate) or _is_named(self._rate):
            return None

        def body(arguments: Tensors) -> Tensors:
            rate = self._rate(arguments["step"])
            return {"learning_rate": tf.cast(tf.convert_to_tensor(rate), tf.float32)}

        return tracing.trace({"step": tracing.spec((), "int64", batch=False)}, body)

    def _learning_rate(self) -> Any:
        if not _is_schedule(self._rate):
            return _number(self._config["learning_rate"])
        if not _is_named(self._rate):
            return {"signature": "learning_rate"}
        arguments = {
            key: [_number(v) for v in value] if isinstance(value, (list, tuple)) else _number(value)
            for key, value in self._rate.get_config().items()
            if key != "name"
        }
        return {"schedule": type(self._rate).__name__, **arguments}

    def _weight_decay(self, variables: Variables) -> Optional[Dict[str, Any]]:
        rate = self._config.get("weight_decay")
        if not rate:
            return None
        excluded = [
            entry.index
            for entry in variables
            if entry.trainable and not self._given._use_weight_decay(entry.variable.value)
        ]
        return {"rate": _number(rate), "excluded": excluded}


def _is_schedule(rate: Any) -> bool:
    return isinstance(rate, keras.optimizers.schedules.LearningRateSchedule)


def _is_named(schedule: Any) -> bool:
    return type(schedule).__module__.startswith("keras.") and (
        type(schedule).__name__ in _SCHEDULES
    )


def _check(optimizer: Any) -> None:
    name = type(optimizer).__name__
    if not isinstance(optimizer, keras.optimizers.Optimizer):
        raise ValueError(
            f"optimizer {name} is none of Keras 3's: use keras.optimizers, not tf_keras or "
            "tf.compat.v1"
        )
    if isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
        raise ValueError(
            "optimizer LossScaleOptimizer: a loss scale that changes is not carried over: give the "
            "inner optimizer loss_scale_factor=1024 or so, or use the policy mixed_bfloat16"
        )
    steps = int(optimizer.iterations.numpy())
    if steps:
        raise ValueError(
            f"optimizer {name} has trained {steps} steps, whose state would be lost: give a new one, "
            "type(optimizer).from_config(optimizer.get_config()), which begins at step 0"
        )
    if getattr(optimizer, "use_ema", False):
        raise ValueError(f"optimizer {name}: use_ema is not carried over: leave it out")
    if getattr(optimizer, "gradient_accumulation_steps", None):
        raise ValueError(
            f"optimizer {name}: gradient_accumulation_steps is not carried over: use a larger batch"
        )
    clips = [clip for clip in _CLIPS if getattr(optimizer, clip, None)]
    if len(clips) > 1:
        raise ValueError(f"optimizer {name}: {' and '.join(clips)}: one of them is possible")


def _number(value: Any) -> Any:
    """Converts to JSON; a float32 by its shortest digits, so that 0.01 remains 0.01."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    single = struct.unpack("<f", struct.pack("<f", float(value)))[0]
    if single != float(value):
        return float(value)
    for digits in range(1, 10):
        short = float(f"{single:.{digits}g}")
        if struct.unpack("<f", struct.pack("<f", short))[0] == single:
            return short
    return float(value)


def slots(optimizer: Any) -> List[Any]:
    """Returns a built optimizer's variables except its count of steps and its learning rate."""
    rate = getattr(optimizer, "_learning_rate", None)
    return [v for v in optimizer.variables if v is not optimizer.iterations and v is not rate]
