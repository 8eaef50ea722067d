"""Muster from Python: `tf.estimator` programs keep their words.

    from muster import estimator, feature_column

Everything here is arguments and results: the work is done by the `muster` program, which this
package carries (see muster.binary). docs/python.md says what differs from TensorFlow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from muster import estimator, feature_column
from muster.binary import MusterError

if TYPE_CHECKING:
    from muster.learn import Classifier as Classifier
    from muster.learn import Regressor as Regressor

__version__ = "0.1.0"
# Classifier and Regressor are not here, so that `import *` works without numpy.
__all__ = ["MusterError", "estimator", "feature_column", "__version__"]


def __getattr__(name: str) -> Any:
    """Classifier and Regressor need numpy, so that they are imported when they are first used."""
    if name not in ("Classifier", "Regressor"):
        raise AttributeError(f"module 'muster' has no attribute {name!r}")
    try:
        from muster import learn
    except ImportError as error:
        raise ImportError(f"muster.{name} needs numpy: pip install numpy") from error
    return getattr(learn, name)
