"""Muster from Python: `tf.estimator` programs keep their words.

    from muster import estimator, feature_column

Everything here is arguments and results: the work is done by the `muster` program, which this
package carries (see muster.binary). docs/python.md says what differs from TensorFlow.
"""

from __future__ import annotations

from muster import estimator, feature_column
from muster.binary import MusterError

__version__ = "0.1.0"
__all__ = ["MusterError", "estimator", "feature_column", "__version__"]
