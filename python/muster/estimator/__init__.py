"""`tf.estimator` on top of the muster program, with the same names, arguments and results.

    from muster import estimator, feature_column

docs/python.md says what exists, what differs, and what replaces the rest.
"""

from __future__ import annotations

from typing import Any

from muster.estimator import experimental, export, inputs, optimizers
from muster.estimator.absent import refuse
from muster.estimator.canned import (
    BaselineClassifier,
    BaselineRegressor,
    DNNClassifier,
    DNNLinearCombinedClassifier,
    DNNLinearCombinedRegressor,
    DNNRegressor,
    LinearClassifier,
    LinearRegressor,
)
from muster.estimator.core import Estimator
from muster.estimator.exporter import BestExporter, Exporter, FinalExporter, LatestExporter
from muster.estimator.heads import (
    BinaryClassHead,
    LogisticRegressionHead,
    MultiClassHead,
    MultiLabelHead,
    PoissonRegressionHead,
    RegressionHead,
)
from muster.estimator.hook_calls import (
    CheckpointSaverListener,
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)
from muster.estimator.hook_timer import SecondOrStepTimer
from muster.estimator.hooks import (
    CheckpointSaverHook,
    LoggingTensorHook,
    NanTensorHook,
    ProfilerHook,
    StepCounterHook,
    StopAtStepHook,
    SummarySaverHook,
)
from muster.estimator.run_config import RunConfig
from muster.estimator.spec import EvalSpec, ModeKeys, TrainSpec, WarmStartSettings
from muster.estimator.training import train_and_evaluate
from muster.estimator.with_head import (
    BaselineEstimator,
    DNNEstimator,
    DNNLinearCombinedEstimator,
    LinearEstimator,
)

__all__ = [
    "BaselineClassifier",
    "BaselineEstimator",
    "BaselineRegressor",
    "BestExporter",
    "BinaryClassHead",
    "CheckpointSaverHook",
    "CheckpointSaverListener",
    "DNNClassifier",
    "DNNEstimator",
    "DNNLinearCombinedClassifier",
    "DNNLinearCombinedEstimator",
    "DNNLinearCombinedRegressor",
    "DNNRegressor",
    "Estimator",
    "EvalSpec",
    "Exporter",
    "FinalExporter",
    "LatestExporter",
    "LinearClassifier",
    "LinearEstimator",
    "LinearRegressor",
    "LoggingTensorHook",
    "LogisticRegressionHead",
    "ModeKeys",
    "MultiClassHead",
    "MultiLabelHead",
    "NanTensorHook",
    "PoissonRegressionHead",
    "ProfilerHook",
    "RegressionHead",
    "RunConfig",
    "SecondOrStepTimer",
    "SessionRunArgs",
    "SessionRunContext",
    "SessionRunHook",
    "SessionRunValues",
    "StepCounterHook",
    "StopAtStepHook",
    "SummarySaverHook",
    "TrainSpec",
    "WarmStartSettings",
    "experimental",
    "export",
    "inputs",
    "optimizers",
    "train_and_evaluate",
]


def __getattr__(name: str) -> Any:
    """Raises AttributeError; for names that only tf.estimator has, it says what to use instead."""
    refuse("muster.estimator", name)
