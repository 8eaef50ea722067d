"""How nodes and tasks that feed them reach the driver's table of nodes (muster.tfos.nodes)."""

from __future__ import annotations

import time
from typing import Any, Dict, NamedTuple

from muster import binary
from muster.spark.reach import Reach

_ANSWER_SECONDS = 10.0
_TRIES = 3
_PAUSE_SECONDS = 0.5


class Link(NamedTuple):
    """Plain data, which travels in what Spark sends to its tasks."""

    reach: Reach

    def ask(self, what: str, **fields: Any) -> Dict[str, Any]:
        """The driver's answer. Raises MusterError if it does not answer."""
        error: Exception = OSError("not tried")
        for number in range(_TRIES):
            if number > 0:
                time.sleep(_PAUSE_SECONDS)
            try:
                return self.reach.post({"what": what, **fields}, _ANSWER_SECONDS)
            except (OSError, ValueError) as failure:
                error = failure
        raise binary.MusterError(f"the driver of the cluster does not answer at {self.reach.url}: {error}")
