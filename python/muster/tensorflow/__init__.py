"""TensorFlow, with Muster's estimator and feature_column in the places of its own.

For programs that say `tf.estimator` and `tf.feature_column` all over:

    import muster.tensorflow as tf
    import muster.tensorflow.compat.v1 as tf     # programs of TensorFlow 1

Everything else is the installed TensorFlow's, which is imported when first used; 2.16 and later,
which have no estimator of their own, serve as well.
"""

from __future__ import annotations

import importlib
from typing import Any

from muster import estimator, feature_column

__all__ = ["estimator", "feature_column"]


def __getattr__(name: str) -> Any:
    if name == "compat":
        return importlib.import_module("muster.tensorflow.compat")
    import tensorflow

    found = getattr(tensorflow, name, None)
    if found is None and hasattr(tensorflow.compat.v1, name):
        raise AttributeError(
            f"TensorFlow {tensorflow.__version__} has no tf.{name}, which is of TensorFlow 1: "
            "import muster.tensorflow.compat.v1 as tf"
        )
    return found if found is not None else getattr(tensorflow, name)
