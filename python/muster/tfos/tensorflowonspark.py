"""The module `tensorflowonspark` of a program that cannot be changed: spark-submit --py-files THIS_FILE."""

from __future__ import annotations

import muster.tfos.as_tensorflowonspark  # noqa: F401  puts muster.tfos in this module's place
