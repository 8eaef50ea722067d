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

import importlib
from typing import TYPE_CHECKING, Any

from muster.binary import MusterError

if TYPE_CHECKING:
    from muster import estimator as estimator
    from muster import feature_column as feature_column
    from muster.learn import Classifier as Classifier
    from muster.learn import Regressor as Regressor

__version__ = "0.1.0"
# Classifier and Regressor are not listed, so that `import *` works without numpy.
__all__ = ["MusterError", "estimator", "feature_column", "__version__"]


def __getattr__(name: str) -> Any:
    """Imports a module when it is first used: Python workers and nodes of Spark, of which many start, need none."""
    if name in ("estimator", "feature_column"):
        return importlib.import_module(f"muster.{name}")
    if name not in ("Classifier", "Regressor"):
        raise AttributeError(f"module 'muster' has no attribute {name!r}")
    try:
        from muster import learn
    except ImportError as error:
        raise ImportError(f"muster.{name} needs numpy: pip install numpy") from error
    return getattr(learn, name)
