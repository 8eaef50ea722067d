"""python -m muster.tfos PROGRAM [ARGUMENT...]: runs a program of TensorFlowOnSpark as it is.

python -m muster.tfos alone prints the file that `spark-submit --py-files FILE PROGRAM` wants instead.
"""

from __future__ import annotations

import os
import runpy
import sys

import muster.tfos.as_tensorflowonspark  # noqa: F401

_MODULE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tensorflowonspark.py")
_SUBMIT_ARGS = "PYSPARK_SUBMIT_ARGS"  # what pyspark starts Spark with


def main() -> None:
    if len(sys.argv) < 2:
        print(_MODULE)
        return
    # Tasks of Spark import tensorflowonspark as well, without a cluster.
    given = os.environ.get(_SUBMIT_ARGS, "pyspark-shell")
    if "--py-files" not in given:
        os.environ[_SUBMIT_ARGS] = f"--py-files {_MODULE} {given}"
    del sys.argv[0]
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
