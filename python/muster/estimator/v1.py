"""`tf.compat.v1.estimator`: the estimators of TensorFlow 1, whose arguments and defaults differ.

Their loss is the sum over a batch, an optimizer given by name is TensorFlow 1's with its learning
rate, and they accept a partitioner, which has no effect. All other names are those of
muster.estimator.
"""

from __future__ import annotations

import math
from typing import Any, Callable, Dict, Mapping, Tuple

import muster.estimator as _second
from muster.estimator import optimizers as _optimizers
from muster.estimator.heads import SUM

_WITHOUT_EFFECT = ("partitioner", "input_layer_partitioner")

Rate = Callable[[Mapping[str, Any]], float]  # computed from an estimator's arguments


def _is(rate: float) -> Rate:
    return lambda given: rate


def _of_linear_part(given: Mapping[str, Any]) -> float:
    return min(0.005, 1 / math.sqrt(max(1, len(given.get("linear_feature_columns") or ()))))


def _first_version(base: Any, arguments: str, **named: Tuple[str, Rate]) -> Any:
    """Makes a class with `arguments`, in this order; `named` has each optimizer's default and rate.
    """
    names = arguments.split()

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        if len(args) > len(names):
            raise TypeError(f"{base.__name__} takes {len(names)} arguments, {len(args)} were given")
        given: Dict[str, Any] = dict(zip(names, args))
        for name, value in kwargs.items():
            if name in given or name not in names:
                fault = "twice" if name in given else "which it does not have"
                raise TypeError(f"{base.__name__} got the argument '{name}' {fault}")
            given[name] = value
        for name in _WITHOUT_EFFECT:
            given.pop(name, None)
        if "loss_reduction" in names:
            given.setdefault("loss_reduction", SUM)
        for name, (default, rate) in named.items():
            given[name] = _optimizers.of_version_1(given.get(name, default), rate(given))
        base.__init__(self, **given)

    members = {"__init__": __init__, "__doc__": base.__doc__, "__module__": __name__}
    return type(base.__name__, (base,), members)


_CLASSES = "model_dir n_classes weight_column label_vocabulary"
_NUMBERS = "model_dir label_dimension weight_column"
_END = "config warm_start_from loss_reduction batch_norm"
_PARTS = (
    "linear_feature_columns linear_optimizer dnn_feature_columns dnn_optimizer "
    "dnn_hidden_units dnn_activation_fn dnn_dropout"
)
_LINEAR_END = "optimizer config partitioner warm_start_from loss_reduction sparse_combiner"
_DNN_OPTIONS = "optimizer activation_fn dropout input_layer_partitioner"
_LINEAR = ("Ftrl", _is(0.2))
_DNN = ("Adagrad", _is(0.05))
_BASELINE = ("Ftrl", _is(0.3))
_COMBINED: Dict[str, Tuple[str, Rate]] = {
    "linear_optimizer": ("Ftrl", _of_linear_part),
    "dnn_optimizer": ("Adagrad", _is(0.001)),
}

LinearClassifier = _first_version(
    _second.LinearClassifier, f"feature_columns {_CLASSES} {_LINEAR_END}", optimizer=_LINEAR
)
LinearRegressor = _first_version(
    _second.LinearRegressor, f"feature_columns {_NUMBERS} {_LINEAR_END}", optimizer=_LINEAR
)
LinearEstimator = _first_version(
    _second.LinearEstimator,
    "head feature_columns model_dir optimizer config partitioner sparse_combiner warm_start_from",
    optimizer=_LINEAR,
)
DNNClassifier = _first_version(
    _second.DNNClassifier,
    f"hidden_units feature_columns {_CLASSES} {_DNN_OPTIONS} {_END}",
    optimizer=_DNN,
)
DNNRegressor = _first_version(
    _second.DNNRegressor,
    f"hidden_units feature_columns {_NUMBERS} {_DNN_OPTIONS} {_END}",
    optimizer=_DNN,
)
DNNEstimator = _first_version(
    _second.DNNEstimator,
    f"head hidden_units feature_columns model_dir {_DNN_OPTIONS} config warm_start_from batch_norm",
    optimizer=_DNN,
)
DNNLinearCombinedClassifier = _first_version(
    _second.DNNLinearCombinedClassifier,
    f"model_dir {_PARTS} n_classes weight_column label_vocabulary input_layer_partitioner {_END} "
    "linear_sparse_combiner",
    **_COMBINED,
)
DNNLinearCombinedRegressor = _first_version(
    _second.DNNLinearCombinedRegressor,
    f"model_dir {_PARTS} label_dimension weight_column input_layer_partitioner {_END} "
    "linear_sparse_combiner",
    **_COMBINED,
)
DNNLinearCombinedEstimator = _first_version(
    _second.DNNLinearCombinedEstimator,
    f"head model_dir {_PARTS} input_layer_partitioner config batch_norm linear_sparse_combiner",
    **_COMBINED,
)
BaselineClassifier = _first_version(
    _second.BaselineClassifier, f"{_CLASSES} optimizer config loss_reduction", optimizer=_BASELINE
)
BaselineRegressor = _first_version(
    _second.BaselineRegressor, f"{_NUMBERS} optimizer config loss_reduction", optimizer=_BASELINE
)
BaselineEstimator = _first_version(
    _second.BaselineEstimator, "head model_dir optimizer config", optimizer=_BASELINE
)

__all__ = list(_second.__all__)


def __getattr__(name: str) -> Any:
    return getattr(_second, name)
