"""TensorFlowOnSpark's names on Muster's jobs (docs/tensorflowonspark.md).

    from muster.tfos import TFCluster, TFNode

in place of `from tensorflowonspark import ...`. `import muster.tfos.as_tensorflowonspark`, or `python -m
muster.tfos PROGRAM`, serves programs that cannot be changed. Needs pyspark 3.5 or later.
"""

from __future__ import annotations

__version__ = "2.2.5"  # of TensorFlowOnSpark, whose names these are
