"""How nodes and tasks that feed them reach the driver's table of nodes (muster.tfos.nodes)."""

from __future__ import annotations

import json
import time
import urllib.request
from typing import Any, Dict, NamedTuple

from muster import binary

_ANSWER_SECONDS = 10.0
_TRIES = 3
_PAUSE_SECONDS = 0.5


class Link(NamedTuple):
    """Plain data, which travels in what Spark sends to its tasks."""

    url: str
    token: str

    def ask(self, what: str, **fields: Any) -> Dict[str, Any]:
        """The driver's answer. Raises MusterError if it does not answer."""
        request = urllib.request.Request(
            self.url, json.dumps({"what": what, **fields}).encode(), method="POST",
            headers={"Authorization": f"Bearer {self.token}"},
        )  # fmt: skip
        error: Exception = OSError("not tried")
        for number in range(_TRIES):
            if number > 0:
                time.sleep(_PAUSE_SECONDS)
            try:
                with urllib.request.urlopen(request, timeout=_ANSWER_SECONDS) as answer:
                    found: Dict[str, Any] = json.load(answer)
                    return found
            except (OSError, ValueError) as failure:
                error = failure
        raise binary.MusterError(f"the driver of the cluster does not answer at {self.url}: {error}")
