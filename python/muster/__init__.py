"""Muster from Python: programs of `tf.estimator` hardly change.

    from muster import estimator, feature_column

This package turns arguments into runs of the `muster` program, which it contains (muster.binary),
and results into Python objects. docs/python.md says what differs from TensorFlow.
"""

from __future__ import annotations

import sys

if sys.version_info < (3, 8):
    raise ImportError(
        "muster needs Python 3.8 or later, and this is Python %d.%d" % sys.version_info[:2]
    )

from typing import TYPE_CHECKING, Any

from muster import estimator, feature_column
from muster.binary import MusterError

if TYPE_CHECKING:
    from muster.learn import Classifier as Classifier
    from muster.learn import Regressor as Regressor

__version__ = "0.1.0"
# Classifier and Regressor are not listed, so that `import *` works without numpy.
__all__ = ["MusterError", "estimator", "feature_column", "__version__"]


def __getattr__(name: str) -> Any:
    """Imports Classifier and Regressor when they are first used, since they need numpy."""
    if name not in ("Classifier", "Regressor"):
        raise AttributeError(f"module 'muster' has no attribute {name!r}")
    try:
        from muster import learn
    except ImportError as error:
        raise ImportError(f"muster.{name} needs numpy: pip install numpy") from error
    return getattr(learn, name)
