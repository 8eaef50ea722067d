"""How often one side asks the other what is new."""

from __future__ import annotations

import time

_QUICK_SECONDS, _SLOW_SECONDS = 0.05, 0.2
_QUICK_FOR_SECONDS = 5.0


class Pace:
    """Often for a while after a change, since the next one then follows soon: a job starts or ends."""

    def __init__(self) -> None:
        self.note_change()

    def note_change(self) -> None:
        self._quick_until = time.monotonic() + _QUICK_FOR_SECONDS

    def seconds(self) -> float:
        """How long to wait now."""
        return _QUICK_SECONDS if time.monotonic() < self._quick_until else _SLOW_SECONDS
