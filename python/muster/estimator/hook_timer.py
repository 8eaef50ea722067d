"""SecondOrStepTimer: tells a program's hook when it is time to act again."""

from __future__ import annotations

import time
from typing import Optional, Tuple


class SecondOrStepTimer:
    """Triggers every so many seconds or steps, and also the first time it is asked."""

    def __init__(
        self, every_secs: Optional[float] = None, every_steps: Optional[int] = None
    ) -> None:
        if every_secs is None and every_steps is None:
            raise ValueError("Either every_secs or every_steps should be provided.")
        if every_secs is not None and every_steps is not None:
            raise ValueError("Can not provide both every_secs and every_steps.")
        self._secs, self._steps = every_secs, every_steps
        self.reset()

    def reset(self) -> None:
        self._last_step: Optional[int] = None
        self._last_time = 0.0

    def should_trigger_for_step(self, step: int) -> bool:
        if self._last_step is None:
            return True
        if self._last_step == step:
            return False
        if self._secs is not None:
            return time.time() >= self._last_time + self._secs
        return self._steps is not None and step >= self._last_step + self._steps

    def update_last_triggered_step(self, step: int) -> Tuple[Optional[float], Optional[int]]:
        """Returns the seconds and steps since the last time; None and None the first time."""
        now = time.time()
        since: Tuple[Optional[float], Optional[int]] = (None, None)
        if self._last_step is not None:
            since = now - self._last_time, step - self._last_step
        self._last_step, self._last_time = step, now
        return since

    def last_triggered_step(self) -> Optional[int]:
        return self._last_step
