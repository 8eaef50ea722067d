"""python -m muster.spark prints the path of the jar with TFRecord's formats of Hadoop, for `spark-submit --jars`."""

from __future__ import annotations

import sys

from muster.binary import MusterError
from muster.spark.jar import find


def main() -> int:
    try:
        print(find())
    except MusterError as error:
        print(f"muster: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
