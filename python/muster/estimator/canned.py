"""The canned estimators, with tf.estimator's arguments in its order and its defaults."""

from __future__ import annotations

from typing import Any, Optional, Sequence

from muster import columns as fc
from muster.estimator.core import Estimator
from muster.estimator.heads import RegressionHead, binary_or_multi_class
from muster.estimator.parts import baseline_model, combined_model, dnn_model, linear_model
from muster.estimator.run_config import RunConfig

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
        head = binary_or_multi_class(n_classes, weight_column, label_vocabulary, loss_reduction)
        model = linear_model(head, feature_columns, optimizer, sparse_combiner)
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
        head = RegressionHead(label_dimension, weight_column, loss_reduction)
        model = linear_model(head, feature_columns, optimizer, sparse_combiner)
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
        head = binary_or_multi_class(n_classes, weight_column, label_vocabulary, loss_reduction)
        network = (hidden_units, activation_fn, dropout, batch_norm)
        model = dnn_model(head, feature_columns, optimizer, network)
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
        head = RegressionHead(label_dimension, weight_column, loss_reduction)
        network = (hidden_units, activation_fn, dropout, batch_norm)
        model = dnn_model(head, feature_columns, optimizer, network)
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
        head = binary_or_multi_class(n_classes, weight_column, label_vocabulary, loss_reduction)
        linear = (linear_feature_columns, linear_optimizer, linear_sparse_combiner)
        network = (dnn_hidden_units, dnn_activation_fn, dnn_dropout, batch_norm)
        model = combined_model(head, linear, dnn_feature_columns, dnn_optimizer, network)
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
        head = RegressionHead(label_dimension, weight_column, loss_reduction)
        linear = (linear_feature_columns, linear_optimizer, linear_sparse_combiner)
        network = (dnn_hidden_units, dnn_activation_fn, dnn_dropout, batch_norm)
        model = combined_model(head, linear, dnn_feature_columns, dnn_optimizer, network)
        super().__init__(model, model_dir, config, warm_start_from=warm_start_from)


class BaselineClassifier(Estimator):
    """Learns only how frequent each class is."""

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
        head = binary_or_multi_class(n_classes, weight_column, label_vocabulary, loss_reduction)
        super().__init__(baseline_model(head, optimizer), model_dir, config)


class BaselineRegressor(Estimator):
    """Learns only the mean of the labels."""

    def __init__(
        self,
        model_dir: Any = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        optimizer: Any = "Ftrl",
        config: Optional[RunConfig] = None,
        loss_reduction: Any = _SUM_OVER_BATCH_SIZE,
    ) -> None:
        head = RegressionHead(label_dimension, weight_column, loss_reduction)
        super().__init__(baseline_model(head, optimizer), model_dir, config)
