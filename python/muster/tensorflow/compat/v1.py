"""tf.compat.v1, with Muster's estimators of TensorFlow 1 and feature_column in the places of its own.

    import muster.tensorflow.compat.v1 as tf     # for `import tensorflow.compat.v1 as tf`

Everything else is the installed TensorFlow's, which is imported when first used.
"""

from __future__ import annotations

from typing import Any

from muster import feature_column
from muster.estimator import v1 as estimator

__all__ = ["estimator", "feature_column"]


def __getattr__(name: str) -> Any:
    import tensorflow

    return getattr(tensorflow.compat.v1, name)
