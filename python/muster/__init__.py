"""Muster from Python: `tf.estimator` programs keep their words.

    from muster import estimator, feature_column

Everything here is arguments and results: the work is done by the `muster` program, which this
package carries (see muster.binary). docs/python.md says what differs from TensorFlow.
"""

from __future__ import annotations

from typing import Any

from muster import estimator, feature_column
from muster.binary import MusterError

__version__ = "0.1.0"
__all__ = [
    "Classifier",
    "MusterError",
    "Regressor",
    "estimator",
    "feature_column",
    "__version__",
]


def __getattr__(name: str) -> Any:
    """Classifier and Regressor need numpy, so that they are imported when they are first used."""
    if name in ("Classifier", "Regressor"):
        from muster import learn

        return getattr(learn, name)
    raise AttributeError(f"module 'muster' has no attribute {name!r}")
