"""`tf.estimator.export`: what an exported model is fed with.

A SavedModel of Muster always takes both: parsed features (signature `serving_default`) and
serialised tf.Examples (`predict`, `classification`, `regression`). A receiver says which features
the program means to serve, and is checked against the model's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterable, Mapping, Optional

from muster.estimator.absent import refuse

__all__ = [
    "ServingInputReceiver",
    "build_parsing_serving_input_receiver_fn",
    "build_raw_serving_input_receiver_fn",
]


@dataclass(frozen=True)
class ServingInputReceiver:
    """The features that are served; `examples`: as serialised tf.Examples."""

    features: Mapping[str, Any]
    examples: bool


class _ReceiverFn:
    def __init__(self, receiver: ServingInputReceiver) -> None:
        self._receiver = receiver

    def __call__(self) -> ServingInputReceiver:
        return self._receiver


def build_parsing_serving_input_receiver_fn(
    feature_spec: Mapping[str, Any], default_batch_size: Optional[int] = None
) -> Callable[[], ServingInputReceiver]:
    """`feature_spec`: of feature_column.make_parse_example_spec."""
    _check_batch_size(default_batch_size)
    return _ReceiverFn(ServingInputReceiver(dict(feature_spec), examples=True))


def build_raw_serving_input_receiver_fn(
    features: Mapping[str, Any], default_batch_size: Optional[int] = None
) -> Callable[[], ServingInputReceiver]:
    """`features`: their names, with anything behind them."""
    _check_batch_size(default_batch_size)
    return _ReceiverFn(ServingInputReceiver(dict(features), examples=False))


def check_receiver(function: Any) -> None:
    """Raises ValueError for what is none of the two above."""
    if not function:
        raise ValueError("An input_receiver_fn must be defined.")
    if not isinstance(function, _ReceiverFn):
        raise ValueError(
            "serving_input_receiver_fn: Muster exports without running TensorFlow code; make it "
            "with muster.estimator.export.build_parsing_serving_input_receiver_fn or "
            "build_raw_serving_input_receiver_fn"
        )


def check_features(function: Any, wanted: Iterable[str]) -> None:
    """Raises ValueError when the receiver lacks a feature that the model reads."""
    check_receiver(function)
    features: Dict[str, Any] = dict(function().features)
    for name in wanted:
        if name not in features:
            raise ValueError(
                f"Feature {name} is not in features dictionary: the model reads it, the "
                f"serving_input_receiver_fn has {sorted(features)}"
            )


def _check_batch_size(default_batch_size: Optional[int]) -> None:
    if default_batch_size is not None:
        raise ValueError("default_batch_size: models of Muster take any number of rows; say None")


def __getattr__(name: str) -> Any:
    refuse("muster.estimator.export", name)
