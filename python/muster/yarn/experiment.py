"""What an experiment function returns."""

from __future__ import annotations

from typing import Any, Callable, Dict, NamedTuple, Optional


class Experiment(NamedTuple):
    """What tf.estimator.train_and_evaluate takes."""

    estimator: Any  # a tf.estimator.Estimator
    train_spec: Any
    eval_spec: Any

    @property
    def config(self) -> Any:
        return self.estimator.config


class KerasExperiment(NamedTuple):
    """A compiled Keras model, and what its fit() takes."""

    model: Any
    model_dir: str  # where it is saved, for the evaluator
    train_params: Dict[str, Any]  # of fit(), without the data
    input_data_fn: Optional[Callable[[], Any]]
    target_data_fn: Optional[Callable[[], Any]]
    validation_data_fn: Optional[Callable[[], Any]]
