"""The models of the canned estimators: their parts of a model file, with tf.estimator's checks and
default learning rates."""

from __future__ import annotations

import math
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from muster import columns as fc
from muster.estimator import optimizers
from muster.estimator.heads import Head
from muster.estimator.model import CannedModel
from muster.tensorflow_columns import ours

# Learning rates of optimizers given by name, as in tf.estimator; None: Keras's default, which DNN*
# use.
_LINEAR_RATE = 0.2
_DNN_RATE = None
_COMBINED_LINEAR_RATE = 0.005
_COMBINED_DNN_RATE = 0.001
_BASELINE_RATE = 0.3

# Arguments of a DNN: hidden_units, activation_fn, dropout, batch_norm.
Network = Tuple[Optional[Sequence[int]], Any, Optional[float], bool]

_ACTIVATIONS = {"relu": "relu", "tanh": "tanh", "sigmoid": "sigmoid", "linear": "linear"}


def linear_model(
    head: Head, feature_columns: Sequence[fc.FeatureColumn], optimizer: Any, combiner: str
) -> CannedModel:
    columns = check_columns(feature_columns, linear=True)
    if optimizer is None:
        optimizer = optimizers.Ftrl(min(_LINEAR_RATE, 1 / math.sqrt(len(columns))))
    _check_combiner(combiner)
    linear = {"optimizer": optimizers.entry(optimizer, _LINEAR_RATE)}
    other = _clipping(optimizer)
    return CannedModel("linear", head, linear_columns=columns, linear=linear, other=other)


def combined_model(
    head: Head,
    linear_arguments: Tuple[Optional[Sequence[fc.FeatureColumn]], Any, str],
    dnn_feature_columns: Optional[Sequence[fc.FeatureColumn]],
    dnn_optimizer: Any,
    network: Network,
) -> CannedModel:
    """`linear_arguments` are the linear part's columns, optimizer and sparse_combiner."""
    linear_feature_columns, linear_optimizer, combiner = linear_arguments
    if not linear_feature_columns and not dnn_feature_columns:
        raise ValueError("Either linear_feature_columns or dnn_feature_columns must be defined.")
    linear: Mapping[str, Any] = {}
    dnn: Mapping[str, Any] = {}
    linear_columns: List[fc.FeatureColumn] = []
    dnn_columns: List[fc.FeatureColumn] = []
    if linear_feature_columns:
        linear_columns = check_columns(linear_feature_columns, linear=True)
        rate = min(_COMBINED_LINEAR_RATE, 1 / math.sqrt(len(linear_columns)))
        _check_combiner(combiner)
        linear = {"optimizer": optimizers.entry(linear_optimizer, rate)}
    if dnn_feature_columns:
        if not network[0]:
            raise ValueError(
                "dnn_hidden_units must be defined when dnn_feature_columns is specified."
            )
        dnn_columns = check_columns(dnn_feature_columns, linear=False)
        dnn = _dnn_part(network, dnn_optimizer, _COMBINED_DNN_RATE)
    kind = "wide_deep" if linear and dnn else "linear" if linear else "dnn"
    used = [linear_optimizer] if linear else []
    used += [dnn_optimizer] if dnn else []
    return CannedModel(kind, head, linear_columns, linear, dnn_columns, dnn, _clipping(*used))


def baseline_model(head: Head, optimizer: Any) -> CannedModel:
    other = {"optimizer": optimizers.entry(optimizer, _BASELINE_RATE), **_clipping(optimizer)}
    return CannedModel("baseline", head, other=other)


def _clipping(*given: Any) -> Dict[str, Any]:
    clip = optimizers.clipping(*given)
    return {} if clip is None else {"clip_gradients": clip}


def dnn_model(
    head: Head, feature_columns: Sequence[fc.FeatureColumn], optimizer: Any, network: Network
) -> CannedModel:
    columns = check_columns(feature_columns, linear=False)
    dnn = _dnn_part(network, optimizer, _DNN_RATE)
    return CannedModel("dnn", head, dnn_columns=columns, dnn=dnn, other=_clipping(optimizer))


def _dnn_part(network: Network, optimizer: Any, learning_rate: Optional[float]) -> Dict[str, Any]:
    hidden_units, activation_fn, dropout, batch_norm = network
    units = [int(size) for size in hidden_units or ()]
    if any(size < 1 for size in units):
        raise ValueError(f"hidden_units must be positive: {units}")
    part: Dict[str, Any] = {"hidden_units": units, "activation": _activation(activation_fn)}
    if dropout is not None:
        if not 0 <= dropout < 1:
            raise ValueError(f"dropout {dropout}: it must be at least 0 and below 1")
        part["dropout"] = float(dropout)
    if batch_norm:
        part["batch_norm"] = True
    part["optimizer"] = optimizers.entry(optimizer, learning_rate)
    return part


def _activation(function: Any) -> str:
    name = str(getattr(function, "__name__", function)) if function is not None else "relu"
    if name not in _ACTIVATIONS:
        raise ValueError(
            f"activation_fn {name}: Muster has {', '.join(_ACTIVATIONS)}, as names or as "
            "TensorFlow's functions"
        )
    return _ACTIVATIONS[name]


def check_columns(given: Any, linear: bool) -> List[fc.FeatureColumn]:
    if isinstance(ours(given), fc.FeatureColumn):
        given = [given]
    if isinstance(given, Mapping):
        raise ValueError("Expected feature_columns to be iterable, found dict.")
    columns = [ours(column) for column in given]
    if not columns:
        raise ValueError("feature_columns must not be empty.")
    names: Dict[str, fc.FeatureColumn] = {}
    for column in columns:
        if not isinstance(column, fc.FeatureColumn):
            raise ValueError(
                "Items of feature_columns must be a FeatureColumn of muster.feature_column. "
                f"Given (type {type(column)}): {column}."
            )
        if column.name in names:
            raise ValueError(
                "Duplicate feature column name found for columns: "
                f"{column} and {names[column.name]}."
            )
        names[column.name] = column
        if linear and isinstance(column, fc.SequenceColumn):
            raise ValueError(f"{column.name}: a linear model takes no sequence column")
        if linear and isinstance(column, fc.EmbeddingColumn):
            raise ValueError(
                f"{column.name}: a linear model takes the categorical column itself, no embedding"
            )
        if not linear and isinstance(fc.dense(column), fc.CategoricalColumn):
            raise ValueError(
                "Items of feature_columns must be a DenseColumn. You can wrap a categorical "
                f"column with an embedding_column or indicator_column. Given: {column}"
            )
    return columns


def _check_combiner(combiner: str) -> None:
    if combiner != "sum":
        raise ValueError(f"sparse_combiner '{combiner}': Muster's linear models sum")
