"""Optimizers: classes with the names and arguments of Keras's.

An estimator accepts one of these, one of Keras's, a function that returns one, or a name.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Dict, Mapping, Optional, Tuple, Union

__all__ = ["Adagrad", "Adam", "AdamW", "Ftrl", "RMSprop", "SGD"]


@dataclass(frozen=True)
class Optimizer:
    """Base: `learning_rate` is a number, or a model file's schedule (docs/spec.md) as a dict."""

    learning_rate: Union[float, Mapping[str, Any]] = 0.001


@dataclass(frozen=True)
class _Common:
    """The arguments that follow those of a particular optimizer."""

    weight_decay: Optional[float] = None
    clipnorm: Optional[float] = None
    clipvalue: Optional[float] = None
    global_clipnorm: Optional[float] = None


@dataclass(frozen=True)
class _Ftrl(Optimizer):
    learning_rate_power: float = -0.5
    initial_accumulator_value: float = 0.1
    l1_regularization_strength: float = 0.0
    l2_regularization_strength: float = 0.0
    l2_shrinkage_regularization_strength: float = 0.0
    beta: float = 0.0


@dataclass(frozen=True)
class Ftrl(_Common, _Ftrl):
    pass


@dataclass(frozen=True)
class _Adagrad(Optimizer):
    initial_accumulator_value: float = 0.1
    epsilon: float = 1e-7


@dataclass(frozen=True)
class Adagrad(_Common, _Adagrad):
    pass


@dataclass(frozen=True)
class _Adam(Optimizer):
    beta_1: float = 0.9
    beta_2: float = 0.999
    epsilon: float = 1e-7
    amsgrad: bool = False


@dataclass(frozen=True)
class Adam(_Common, _Adam):
    pass


@dataclass(frozen=True)
class AdamW(Adam):
    """Adam whose weights decay by weight_decay times the learning rate before each update."""

    weight_decay: Optional[float] = 0.004


@dataclass(frozen=True)
class _RMSprop(Optimizer):
    rho: float = 0.9
    momentum: float = 0.0
    epsilon: float = 1e-7
    centered: bool = False


@dataclass(frozen=True)
class RMSprop(_Common, _RMSprop):
    pass


@dataclass(frozen=True)
class _SGD(Optimizer):
    learning_rate: Union[float, Mapping[str, Any]] = 0.01
    momentum: float = 0.0
    nesterov: bool = False


@dataclass(frozen=True)
class SGD(_Common, _SGD):
    pass


# Argument here and in Keras -> name in the model file.
_WORDS = {
    "learning_rate": "learning_rate",
    "learning_rate_power": "learning_rate_power",
    "initial_accumulator_value": "initial_accumulator",
    "l1_regularization_strength": "l1",
    "l2_regularization_strength": "l2",
    "l2_shrinkage_regularization_strength": "l2_shrinkage",
    "beta": "beta",
    "beta_1": "beta1",
    "beta_2": "beta2",
    "epsilon": "epsilon",
    "rho": "rho",
    "momentum": "momentum",
    "centered": "centered",
    "nesterov": "nesterov",
    "weight_decay": "weight_decay",
}
_CLASSES = {
    "ftrl": Ftrl,
    "adagrad": Adagrad,
    "adam": Adam,
    "adamw": AdamW,
    "rmsprop": RMSprop,
    "sgd": SGD,
}
_KINDS = {"adamw": "adam"}  # class -> name in the model file, if it differs
# Arguments without effect, or which must have the value that has no effect.
_NEUTRAL: Dict[str, Any] = {
    "name": None,
    "is_legacy_optimizer": None,
    "decay": 0.0,
    "amsgrad": False,
    "use_ema": False,
    "jit_compile": None,
    "ema_momentum": None,
    "ema_overwrite_frequency": None,
}
_CLIPPING = {"clipvalue": "value", "clipnorm": "norm", "global_clipnorm": "global_norm"}
_FTRL = ("learning_rate", *(f.name for f in fields(_Ftrl) if f.name != "learning_rate"))
_RMS_PROP = (
    "RMSProp of TensorFlow 1 begins with a mean square of 1, Muster's with 0, as Keras's: give "
    "tf.keras.optimizers.RMSprop, or muster.estimator.optimizers.RMSprop"
)
# Arguments of newer Keras that have no effect unless set, and what to do if they are set.
_UNSET = {
    "gradient_accumulation_steps": "leave it out, and make batches of as many times the rows",
    "loss_scale_factor": "leave it out, since Muster computes gradients in float32",
}
_SILENT = ("name", "is_legacy_optimizer", "jit_compile", "ema_momentum", "ema_overwrite_frequency")


def entry(given: Any, learning_rate: Optional[float]) -> Dict[str, Any]:
    """Returns the optimizer's entry in the model file. If it is given by name, its rate is
    `learning_rate`, or Keras's default.

    Raises ValueError for what is not an optimizer, or one that Muster does not have.
    """
    if isinstance(given, str):
        kind = _CLASSES.get(given.lower())
        if kind is None:
            names = ", ".join(f"'{c.__name__}'" for c in _CLASSES.values())
            raise ValueError(f"Unsupported optimizer name: {given}. Supported names are: {names}")
        return entry(kind() if learning_rate is None else kind(learning_rate), None)
    word, config = _config(given)
    if word not in _CLASSES:
        raise ValueError(f"optimizer {word}: Muster has {', '.join(sorted(_CLASSES))}")
    if getattr(given, "_exclude_from_weight_decay_names", None):
        raise ValueError(f"optimizer {word}: Muster's weight_decay is that of a whole part's weights")
    return {_KINDS.get(word, word): _options(word, config)}


def of_version_1(given: Any, learning_rate: float) -> Any:
    """Converts an optimizer given by name as an estimator of TensorFlow 1 does; returns others as
    given."""
    if not isinstance(given, str):
        return given
    if given == "RMSProp":
        raise ValueError(_RMS_PROP)
    found = {
        "Adagrad": Adagrad(learning_rate, epsilon=0.0),
        "Adam": Adam(learning_rate, epsilon=1e-8),
        "Ftrl": Ftrl(learning_rate),
        "SGD": SGD(learning_rate),
    }
    if given not in found:
        names = ", ".join(f"'{name}'" for name in found)
        raise ValueError(f"Unsupported optimizer name: {given}. Supported names are: {names}")
    return found[given]


def clipping(*given: Any) -> Optional[Dict[str, float]]:
    """Returns how the model's gradients are clipped, as in the model file; None: they are not.

    Raises ValueError if the optimizers of its parts disagree.
    """
    found = []
    for optimizer in given:
        config = {} if isinstance(optimizer, str) else _config(optimizer)[1]
        clips = {
            word: float(config[name])
            for name, word in _CLIPPING.items()
            if config.get(name) is not None
        }
        if len(clips) > 1:
            raise ValueError(
                f"an optimizer clips by one of clipnorm, clipvalue, global_clipnorm: {clips}"
            )
        found.append(clips)
    if any(clips != found[0] for clips in found) or ("global_norm" in found[0] and len(found) > 1):
        raise ValueError(
            "Muster clips the gradients of the whole model: give both optimizers the same clipnorm "
            "or clipvalue"
        )
    return found[0] or None


def _config(given: Any) -> Tuple[str, Dict[str, Any]]:
    """Returns the optimizer's name and arguments."""
    if not isinstance(given, Optimizer) and not hasattr(given, "get_config") and callable(given):
        given = given()
    if type(given).__module__.startswith("tensorflow.python.training."):
        given = _of_tensorflow_1(given)
    name = type(given).__name__.lower()
    if isinstance(given, Optimizer):
        return name, {f.name: getattr(given, f.name) for f in fields(given)}
    if hasattr(given, "get_config"):
        return name, dict(given.get_config())
    raise ValueError(
        "The given object is not an Optimizer instance: a name, an optimizer of "
        f"muster.estimator.optimizers or of Keras is wanted. Given: {given}"
    )


def _of_tensorflow_1(given: Any) -> Optimizer:
    """Converts an optimizer of tf.compat.v1.train, whose arguments are in its attributes."""

    def of(name: str) -> float:
        value = getattr(given, f"_{name}")
        if isinstance(value, (int, float)):
            return float(value)
        raise ValueError(
            f"{kind}: {name} is no number but {value!r}; a learning rate that changes is one of "
            "tf.keras.optimizers.schedules, in an optimizer of Keras's"
        )

    kind = type(given).__name__
    if kind == "AdagradOptimizer":
        start = of("initial_accumulator_value")
        return Adagrad(of("learning_rate"), initial_accumulator_value=start, epsilon=0.0)
    if kind == "AdamOptimizer":
        return Adam(of("lr"), beta_1=of("beta1"), beta_2=of("beta2"), epsilon=of("epsilon"))
    if kind == "FtrlOptimizer":
        names = [name for name in _FTRL if hasattr(given, f"_{name}")]
        return Ftrl(**{name: of(name) for name in names})
    if kind == "GradientDescentOptimizer":
        return SGD(of("learning_rate"))
    if kind == "MomentumOptimizer":
        nesterov = bool(getattr(given, "_use_nesterov", False))
        return SGD(of("learning_rate"), momentum=of("momentum"), nesterov=nesterov)
    raise ValueError(
        _RMS_PROP
        if kind == "RMSPropOptimizer"
        else f"{kind}: Muster has TensorFlow 1's AdagradOptimizer, AdamOptimizer, FtrlOptimizer, "
        "GradientDescentOptimizer and MomentumOptimizer"
    )


def _options(word: str, config: Mapping[str, Any]) -> Dict[str, Any]:
    known = {f.name for f in fields(_CLASSES[word])}
    options: Dict[str, Any] = {}
    for name, value in config.items():
        if name in _CLIPPING or (name == "weight_decay" and not value):
            continue
        if word == "ftrl" and name == "weight_decay":
            raise ValueError("optimizer ftrl: no weight_decay; say l2_regularization_strength")
        if name in _NEUTRAL:
            if name not in _SILENT and value not in (_NEUTRAL[name], None, False, 0):
                raise ValueError(
                    f"optimizer {word}: Muster does not know {name}={value}: leave it out"
                )
        elif name in known and name in _WORDS:
            options[_WORDS[name]] = _value(name, value)
        elif value is not None and value is not False:
            advice = _UNSET.get(name, f"leave it out, or give {_CLASSES[word].__name__} of "
                                "muster.estimator.optimizers")
            raise ValueError(f"optimizer {word}: Muster does not know {name}={value}: {advice}")
    return options


def _value(name: str, value: Any) -> Any:
    if isinstance(value, (bool, str)):
        return value
    if name == "learning_rate" and isinstance(value, Mapping):
        return schedule(value) if "class_name" in value else dict(value)
    return _shortest(float(value))


def _shortest(value: float) -> float:
    """Returns the shortest digits: Keras gives numbers as float32, so that 0.05 is 0.0500000007."""
    import struct

    single: float = struct.unpack("<f", struct.pack("<f", value))[0]
    if single == value:
        for digits in range(1, 10):
            short = float(f"{value:.{digits}g}")
            if struct.unpack("<f", struct.pack("<f", short))[0] == single:
                return short
    return value


# Schedule in Keras -> schedule in the model file, and its arguments.
_SCHEDULES: Dict[str, Tuple[str, Dict[str, str]]] = {
    "ExponentialDecay": (
        "exponential",
        {
            "initial_learning_rate": "initial",
            "decay_steps": "decay_steps",
            "decay_rate": "decay_rate",
            "staircase": "staircase",
        },
    ),
    "InverseTimeDecay": (
        "inverse_time",
        {
            "initial_learning_rate": "initial",
            "decay_steps": "decay_steps",
            "decay_rate": "decay_rate",
            "staircase": "staircase",
        },
    ),
    "PolynomialDecay": (
        "polynomial",
        {
            "initial_learning_rate": "initial",
            "decay_steps": "decay_steps",
            "end_learning_rate": "end",
            "power": "power",
            "cycle": "cycle",
        },
    ),
    "CosineDecay": (
        "cosine",
        {"initial_learning_rate": "initial", "decay_steps": "decay_steps", "alpha": "alpha"},
    ),
    "CosineDecayRestarts": (
        "cosine_restarts",
        {
            "initial_learning_rate": "initial",
            "first_decay_steps": "decay_steps",
            "t_mul": "t_mul",
            "m_mul": "m_mul",
            "alpha": "alpha",
        },
    ),
    "PiecewiseConstantDecay": ("piecewise", {"boundaries": "boundaries", "values": "values"}),
}


def schedule(serialized: Mapping[str, Any]) -> Dict[str, Any]:
    """Converts a serialised tf.keras.optimizers.schedules object to the model file's entry."""
    name = serialized["class_name"]
    config = serialized["config"]
    if name not in _SCHEDULES or config.get("warmup_target") is not None:
        raise ValueError(
            f"learning rate schedule {name}: Muster has {', '.join(_SCHEDULES)}; warm_up_steps are "
            "said as a model file does (docs/spec.md), with muster.estimator.optimizers and "
            "learning_rate={...}"
        )
    word, arguments = _SCHEDULES[name]
    return {word: {ours: config[theirs] for theirs, ours in arguments.items() if theirs in config}}
