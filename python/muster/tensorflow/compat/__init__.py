"""tf.compat, whose `v1` and `v2` have Muster's estimator and feature_column."""

from __future__ import annotations

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    if name == "v1":
        return importlib.import_module("muster.tensorflow.compat.v1")
    if name == "v2":
        return importlib.import_module("muster.tensorflow")
    import tensorflow

    return getattr(tensorflow.compat, name)
