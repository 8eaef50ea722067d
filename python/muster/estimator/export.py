"""`tf.estimator.export`: the inputs of an exported model.

Muster's SavedModels always accept both parsed features (signature `serving_default`) and serialised
tf.Examples (`predict`, `classification`, `regression`). A receiver, made here or by the program
with TensorFlow, only says which features it will serve; these are checked against the model's.
"""

from __future__ import annotations

import logging
import os
import pathlib
import sys
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterable, Mapping, Optional

from muster import storage
from muster.estimator.absent import refuse

__all__ = [
    "ServingInputReceiver",
    "build_parsing_serving_input_receiver_fn",
    "build_raw_serving_input_receiver_fn",
]


logger = logging.getLogger("muster")

_RECEIVERS = (
    "make it with muster.estimator.export.build_parsing_serving_input_receiver_fn or "
    "build_raw_serving_input_receiver_fn"
)


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
    """`feature_spec` comes from feature_column.make_parse_example_spec."""
    _check_batch_size(default_batch_size)
    return _ReceiverFn(ServingInputReceiver(dict(feature_spec), examples=True))


def build_raw_serving_input_receiver_fn(
    features: Mapping[str, Any], default_batch_size: Optional[int] = None
) -> Callable[[], ServingInputReceiver]:
    """`features` has their names as keys; the values are not used."""
    _check_batch_size(default_batch_size)
    return _ReceiverFn(ServingInputReceiver(dict(features), examples=False))


def check_receiver(function: Any) -> None:
    """Raises ValueError if the receiver is not a function."""
    if not function:
        raise ValueError("An input_receiver_fn must be defined.")
    if not callable(function):
        raise ValueError(f"serving_input_receiver_fn must be callable, given: {function}")


def check_features(function: Any, wanted: Iterable[str]) -> None:
    """Raises ValueError if the receiver lacks a feature that the model reads, or computes one."""
    check_receiver(function)
    if isinstance(function, _ReceiverFn):
        features: Dict[str, Any] = dict(function().features)
    else:
        features = _features_of_tensorflow(function)
    for name in wanted:
        if name not in features:
            raise ValueError(
                f"Feature {name} is not in features dictionary: the model reads it, the "
                f"serving_input_receiver_fn has {sorted(features)}"
            )


def _features_of_tensorflow(function: Any) -> Dict[str, Any]:
    """Returns the features of a program's own receiver: placeholders, or results of
    tf.io.parse_example."""
    tf = sys.modules.get("tensorflow")
    if tf is None:
        raise ValueError(f"serving_input_receiver_fn: {_RECEIVERS}")
    with tf.Graph().as_default():
        receiver = function()
    features = getattr(receiver, "features", None)
    if not isinstance(features, Mapping):
        raise ValueError(
            f"serving_input_receiver_fn must return a ServingInputReceiver with a dict of features, "
            f"not {type(receiver)}; {_RECEIVERS}"
        )
    for name, tensor in features.items():
        operation = _source_of(tensor)
        if not operation.startswith(("Placeholder", "ParseExample", "ParseSingleExample")):
            raise ValueError(
                f"serving_input_receiver_fn: feature '{name}' is computed (by {operation}), and what "
                "Muster exports takes features as they are in records: compute it in a column, such "
                f"as normalizer_fn; {_RECEIVERS}"
            )
    named = getattr(receiver, "receiver_tensors", None)
    if isinstance(named, Mapping) and len(named) == len(features) and set(named) != set(features):
        logger.warning(
            "serving_input_receiver_fn: the exported inputs are called as the features are, %s, not "
            "%s", sorted(features), sorted(named),
        )  # fmt: skip
    return dict(features)


def _source_of(tensor: Any) -> str:
    """Returns the type of the operation that computes a tensor, or the values of a sparse one."""
    operation = getattr(tensor, "values", tensor).op
    while operation.type == "Identity" or _makes_a_column(operation):
        operation = operation.inputs[0].op
    return str(operation.type)


def _makes_a_column(operation: Any) -> bool:
    """Whether it makes [n, 1] of [n], as an exported model does by itself."""
    shape = operation.outputs[0].shape
    return bool(operation.type == "ExpandDims" and shape.rank == 2 and shape.as_list()[1] == 1)


class Finishing:
    """Adds files to a SavedModel that the program has written."""

    def __init__(self, assets_extra: Optional[Mapping[str, str]], as_text: bool) -> None:
        """Raises ValueError if the text cannot be written."""
        self._assets, self._as_text = dict(assets_extra or {}), as_text
        if as_text:
            _text_writer()

    def finish(self, folder: str) -> None:
        for name, source in self._assets.items():
            target = os.path.join(folder, "assets.extra", name)
            storage.make_folder(os.path.dirname(target))
            storage.put(source, target)
        if self._as_text:
            binary = os.path.join(folder, "saved_model.pb")
            with storage.fetched(binary) as here:
                text = _text_writer()(pathlib.Path(here, "saved_model.pb").read_bytes())
                made = pathlib.Path(here, "saved_model.pbtxt")
                made.write_text(text)
                if made.parent != pathlib.Path(folder):
                    storage.put(str(made), f"{binary}txt")
            storage.remove(binary)


def _text_writer() -> Callable[[bytes], str]:
    try:
        from google.protobuf import text_format
        from tensorflow.core.protobuf import saved_model_pb2
    except ImportError as error:
        raise ValueError(f"as_text needs TensorFlow, to write saved_model.pbtxt: {error}") from None
    return lambda data: str(
        text_format.MessageToString(saved_model_pb2.SavedModel.FromString(data))
    )


def _check_batch_size(default_batch_size: Optional[int]) -> None:
    if default_batch_size is not None:
        raise ValueError("default_batch_size: models of Muster take any number of rows; say None")


def __getattr__(name: str) -> Any:
    refuse("muster.estimator.export", name)
