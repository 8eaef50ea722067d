"""The canned estimators, with tf.estimator's arguments in its order and its defaults."""

from __future__ import annotations

import math
from typing import Any, Dict, List, Mapping, Optional, Sequence

from muster import columns as fc
from muster.estimator import optimizers
from muster.estimator.core import Estimator
from muster.estimator.heads import binary_or_multi_class, regression
from muster.estimator.model import CannedModel
from muster.estimator.run_config import RunConfig

# Where an optimizer is given by name, as in tf.estimator; None: Keras's default, as DNN* there.
_LINEAR_RATE = 0.2
_DNN_RATE = None
_COMBINED_LINEAR_RATE = 0.005
_COMBINED_DNN_RATE = 0.001
_BASELINE_RATE = 0.3

_ACTIVATIONS = {"relu": "relu", "tanh": "tanh", "sigmoid": "sigmoid", "linear": "linear"}
_SUM_OVER_BATCH_SIZE = "sum_over_batch_size"


class LinearClassifier(Estimator):
    def __init__(
        self,
        feature_columns: Sequence[fc.FeatureColumn],
        model_dir: Any = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Optional[Sequence[str]] = None,
        optimizer: Any = "Ftrl",
        config: Optional[RunConfig] = None,
        warm_start_from: Any = None,
        loss_reduction: Any = _SUM_OVER_BATCH_SIZE,
        sparse_combiner: str = "sum",
    ) -> None:
        head = binary_or_multi_class(n_classes, weight_column, label_vocabulary)
        _check_reduction(loss_reduction)
        model = _linear_model(head, feature_columns, optimizer, sparse_combiner)
        super().__init__(model, model_dir, config, warm_start_from=warm_start_from)


class LinearRegressor(Estimator):
    def __init__(
        self,
        feature_columns: Sequence[fc.FeatureColumn],
        model_dir: Any = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        optimizer: Any = "Ftrl",
        config: Optional[RunConfig] = None,
        warm_start_from: Any = None,
        loss_reduction: Any = _SUM_OVER_BATCH_SIZE,
        sparse_combiner: str = "sum",
    ) -> None:
        head = regression(label_dimension, weight_column)
        _check_reduction(loss_reduction)
        model = _linear_model(head, feature_columns, optimizer, sparse_combiner)
        super().__init__(model, model_dir, config, warm_start_from=warm_start_from)


class DNNClassifier(Estimator):
    def __init__(
        self,
        hidden_units: Sequence[int],
        feature_columns: Sequence[fc.FeatureColumn],
        model_dir: Any = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Optional[Sequence[str]] = None,
        optimizer: Any = "Adagrad",
        activation_fn: Any = "relu",
        dropout: Optional[float] = None,
        config: Optional[RunConfig] = None,
        warm_start_from: Any = None,
        loss_reduction: Any = _SUM_OVER_BATCH_SIZE,
        batch_norm: bool = False,
    ) -> None:
        head = binary_or_multi_class(n_classes, weight_column, label_vocabulary)
        _check_reduction(loss_reduction)
        columns = _columns(feature_columns, linear=False)
        dnn = _dnn(hidden_units, optimizer, _DNN_RATE, activation_fn, dropout, batch_norm)
        model = CannedModel("dnn", head, dnn_columns=columns, dnn=dnn)
        super().__init__(model, model_dir, config, warm_start_from=warm_start_from)


class DNNRegressor(Estimator):
    def __init__(
        self,
        hidden_units: Sequence[int],
        feature_columns: Sequence[fc.FeatureColumn],
        model_dir: Any = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        optimizer: Any = "Adagrad",
        activation_fn: Any = "relu",
        dropout: Optional[float] = None,
        config: Optional[RunConfig] = None,
        warm_start_from: Any = None,
        loss_reduction: Any = _SUM_OVER_BATCH_SIZE,
        batch_norm: bool = False,
    ) -> None:
        head = regression(label_dimension, weight_column)
        _check_reduction(loss_reduction)
        columns = _columns(feature_columns, linear=False)
        dnn = _dnn(hidden_units, optimizer, _DNN_RATE, activation_fn, dropout, batch_norm)
        model = CannedModel("dnn", head, dnn_columns=columns, dnn=dnn)
        super().__init__(model, model_dir, config, warm_start_from=warm_start_from)


class DNNLinearCombinedClassifier(Estimator):
    def __init__(
        self,
        model_dir: Any = None,
        linear_feature_columns: Optional[Sequence[fc.FeatureColumn]] = None,
        linear_optimizer: Any = "Ftrl",
        dnn_feature_columns: Optional[Sequence[fc.FeatureColumn]] = None,
        dnn_optimizer: Any = "Adagrad",
        dnn_hidden_units: Optional[Sequence[int]] = None,
        dnn_activation_fn: Any = "relu",
        dnn_dropout: Optional[float] = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Optional[Sequence[str]] = None,
        config: Optional[RunConfig] = None,
        warm_start_from: Any = None,
        loss_reduction: Any = _SUM_OVER_BATCH_SIZE,
        batch_norm: bool = False,
        linear_sparse_combiner: str = "sum",
    ) -> None:
        head = binary_or_multi_class(n_classes, weight_column, label_vocabulary)
        _check_reduction(loss_reduction)
        model = _combined_model(
            head,
            linear_feature_columns,
            linear_optimizer,
            dnn_feature_columns,
            dnn_optimizer,
            dnn_hidden_units,
            dnn_activation_fn,
            dnn_dropout,
            batch_norm,
            linear_sparse_combiner,
        )
        super().__init__(model, model_dir, config, warm_start_from=warm_start_from)


class DNNLinearCombinedRegressor(Estimator):
    def __init__(
        self,
        model_dir: Any = None,
        linear_feature_columns: Optional[Sequence[fc.FeatureColumn]] = None,
        linear_optimizer: Any = "Ftrl",
        dnn_feature_columns: Optional[Sequence[fc.FeatureColumn]] = None,
        dnn_optimizer: Any = "Adagrad",
        dnn_hidden_units: Optional[Sequence[int]] = None,
        dnn_activation_fn: Any = "relu",
        dnn_dropout: Optional[float] = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        config: Optional[RunConfig] = None,
        warm_start_from: Any = None,
        loss_reduction: Any = _SUM_OVER_BATCH_SIZE,
        batch_norm: bool = False,
        linear_sparse_combiner: str = "sum",
    ) -> None:
        head = regression(label_dimension, weight_column)
        _check_reduction(loss_reduction)
        model = _combined_model(
            head,
            linear_feature_columns,
            linear_optimizer,
            dnn_feature_columns,
            dnn_optimizer,
            dnn_hidden_units,
            dnn_activation_fn,
            dnn_dropout,
            batch_norm,
            linear_sparse_combiner,
        )
        super().__init__(model, model_dir, config, warm_start_from=warm_start_from)


class BaselineClassifier(Estimator):
    """Learns how often each class comes, and nothing else."""

    def __init__(
        self,
        model_dir: Any = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Optional[Sequence[str]] = None,
        optimizer: Any = "Ftrl",
        config: Optional[RunConfig] = None,
        loss_reduction: Any = _SUM_OVER_BATCH_SIZE,
    ) -> None:
        head = binary_or_multi_class(n_classes, weight_column, label_vocabulary)
        _check_reduction(loss_reduction)
        super().__init__(_baseline_model(head, optimizer), model_dir, config)


class BaselineRegressor(Estimator):
    """Learns the labels' mean, and nothing else."""

    def __init__(
        self,
        model_dir: Any = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        optimizer: Any = "Ftrl",
        config: Optional[RunConfig] = None,
        loss_reduction: Any = _SUM_OVER_BATCH_SIZE,
    ) -> None:
        head = regression(label_dimension, weight_column)
        _check_reduction(loss_reduction)
        super().__init__(_baseline_model(head, optimizer), model_dir, config)


def _linear_model(
    head: Any, feature_columns: Sequence[fc.FeatureColumn], optimizer: Any, combiner: str
) -> CannedModel:
    columns = _columns(feature_columns, linear=True)
    if optimizer is None:
        optimizer = optimizers.Ftrl(min(_LINEAR_RATE, 1 / math.sqrt(len(columns))))
    _check_combiner(combiner)
    linear = {"optimizer": optimizers.entry(optimizer, _LINEAR_RATE)}
    return CannedModel("linear", head, linear_columns=columns, linear=linear)


def _combined_model(
    head: Any,
    linear_feature_columns: Optional[Sequence[fc.FeatureColumn]],
    linear_optimizer: Any,
    dnn_feature_columns: Optional[Sequence[fc.FeatureColumn]],
    dnn_optimizer: Any,
    dnn_hidden_units: Optional[Sequence[int]],
    dnn_activation_fn: Any,
    dnn_dropout: Optional[float],
    batch_norm: bool,
    linear_sparse_combiner: str,
) -> CannedModel:
    if not linear_feature_columns and not dnn_feature_columns:
        raise ValueError("Either linear_feature_columns or dnn_feature_columns must be defined.")
    linear: Mapping[str, Any] = {}
    dnn: Mapping[str, Any] = {}
    linear_columns: List[fc.FeatureColumn] = []
    dnn_columns: List[fc.FeatureColumn] = []
    if linear_feature_columns:
        linear_columns = _columns(linear_feature_columns, linear=True)
        rate = min(_COMBINED_LINEAR_RATE, 1 / math.sqrt(len(linear_columns)))
        _check_combiner(linear_sparse_combiner)
        linear = {"optimizer": optimizers.entry(linear_optimizer, rate)}
    if dnn_feature_columns:
        if not dnn_hidden_units:
            raise ValueError(
                "dnn_hidden_units must be defined when dnn_feature_columns is specified."
            )
        dnn_columns = _columns(dnn_feature_columns, linear=False)
        dnn = _dnn(
            dnn_hidden_units,
            dnn_optimizer,
            _COMBINED_DNN_RATE,
            dnn_activation_fn,
            dnn_dropout,
            batch_norm,
        )
    kind = "wide_deep" if linear and dnn else "linear" if linear else "dnn"
    return CannedModel(kind, head, linear_columns, linear, dnn_columns, dnn)


def _baseline_model(head: Any, optimizer: Any) -> CannedModel:
    other = {"optimizer": optimizers.entry(optimizer, _BASELINE_RATE)}
    return CannedModel("baseline", head, other=other)


def _dnn(
    hidden_units: Sequence[int],
    optimizer: Any,
    learning_rate: Optional[float],
    activation_fn: Any,
    dropout: Optional[float],
    batch_norm: bool,
) -> Dict[str, Any]:
    units = [int(size) for size in hidden_units]
    if any(size < 1 for size in units):
        raise ValueError(f"hidden_units must be positive: {list(hidden_units)}")
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


def _columns(given: Any, linear: bool) -> List[fc.FeatureColumn]:
    if isinstance(given, fc.FeatureColumn):
        given = [given]
    if isinstance(given, Mapping):
        raise ValueError("Expected feature_columns to be iterable, found dict.")
    columns = list(given)
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
        if not linear and isinstance(column, fc.CategoricalColumn):
            raise ValueError(
                "Items of feature_columns must be a DenseColumn. You can wrap a categorical "
                f"column with an embedding_column or indicator_column. Given: {column}"
            )
    return columns


def _check_combiner(combiner: str) -> None:
    if combiner != "sum":
        raise ValueError(f"sparse_combiner '{combiner}': Muster's linear models sum")


def _check_reduction(reduction: Any) -> None:
    if str(getattr(reduction, "value", reduction)) != _SUM_OVER_BATCH_SIZE:
        raise ValueError(
            f"loss_reduction {reduction}: Muster's loss is the mean over the batch, "
            "'sum_over_batch_size'; scale the learning rate instead"
        )
