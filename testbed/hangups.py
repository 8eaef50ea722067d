"""A fixture for tests that send SIGHUP to programs."""

from __future__ import annotations

import signal
from typing import Iterator

import pytest


@pytest.fixture
def hangups_are_heard() -> Iterator[None]:
    """Programs inherit a signal that is ignored, as by a test run under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)
