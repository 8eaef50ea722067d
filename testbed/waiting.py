"""Waits for what another process does."""

from __future__ import annotations

import time
from typing import Any, Callable

SECONDS = 180.0


def wait(what: Callable[[], Any], why: str) -> Any:
    """What `what` returns once that is true."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        found = what()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f"waited in vain for {why}")
