"""The estimators that take a head: LinearEstimator, DNNEstimator and the others."""

from __future__ import annotations

from typing import Any, Optional, Sequence

from muster import columns as fc
from muster.estimator.core import Estimator
from muster.estimator.heads import Head
from muster.estimator.parts import baseline_model, combined_model, dnn_model, linear_model
from muster.estimator.run_config import RunConfig


class LinearEstimator(Estimator):
    def __init__(
        self,
        head: Head,
        feature_columns: Sequence[fc.FeatureColumn],
        model_dir: Any = None,
        optimizer: Any = "Ftrl",
        config: Optional[RunConfig] = None,
        sparse_combiner: str = "sum",
        warm_start_from: Any = None,
    ) -> None:
        model = linear_model(_checked(head), feature_columns, optimizer, sparse_combiner)
        super().__init__(model, model_dir, config, warm_start_from=warm_start_from)


class DNNEstimator(Estimator):
    def __init__(
        self,
        head: Head,
        hidden_units: Sequence[int],
        feature_columns: Sequence[fc.FeatureColumn],
        model_dir: Any = None,
        optimizer: Any = "Adagrad",
        activation_fn: Any = "relu",
        dropout: Optional[float] = None,
        config: Optional[RunConfig] = None,
        warm_start_from: Any = None,
        batch_norm: bool = False,
    ) -> None:
        network = (hidden_units, activation_fn, dropout, batch_norm)
        model = dnn_model(_checked(head), feature_columns, optimizer, network)
        super().__init__(model, model_dir, config, warm_start_from=warm_start_from)


class DNNLinearCombinedEstimator(Estimator):
    def __init__(
        self,
        head: Head,
        model_dir: Any = None,
        linear_feature_columns: Optional[Sequence[fc.FeatureColumn]] = None,
        linear_optimizer: Any = "Ftrl",
        dnn_feature_columns: Optional[Sequence[fc.FeatureColumn]] = None,
        dnn_optimizer: Any = "Adagrad",
        dnn_hidden_units: Optional[Sequence[int]] = None,
        dnn_activation_fn: Any = "relu",
        dnn_dropout: Optional[float] = None,
        config: Optional[RunConfig] = None,
        batch_norm: bool = False,
        linear_sparse_combiner: str = "sum",
    ) -> None:
        linear = (linear_feature_columns, linear_optimizer, linear_sparse_combiner)
        network = (dnn_hidden_units, dnn_activation_fn, dnn_dropout, batch_norm)
        model = combined_model(_checked(head), linear, dnn_feature_columns, dnn_optimizer, network)
        super().__init__(model, model_dir, config)


class BaselineEstimator(Estimator):
    def __init__(
        self,
        head: Head,
        model_dir: Any = None,
        optimizer: Any = "Ftrl",
        config: Optional[RunConfig] = None,
    ) -> None:
        super().__init__(baseline_model(_checked(head), optimizer), model_dir, config)


def _checked(head: Any) -> Head:
    if not isinstance(head, Head):
        raise ValueError(
            f"head must be one of muster.estimator's: BinaryClassHead() and others. Given: {head}"
        )
    return head
