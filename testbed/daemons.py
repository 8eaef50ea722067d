"""Daemons that a test bed runs: how they end, and fixtures that run them."""

from __future__ import annotations

import signal
import subprocess
from typing import Any, Iterator, Protocol, TypeVar


class Daemons:
    """What has processes by name or number; the class that has them starts them."""

    processes: dict[Any, subprocess.Popen[bytes]]

    def kill(self, name: Any, number: int = signal.SIGKILL) -> None:
        process = self.processes.pop(name)
        process.send_signal(number)
        process.wait()

    def stop(self) -> None:
        for process in self.processes.values():
            process.kill()
        for process in self.processes.values():
            process.wait()
        self.processes.clear()


class Bed(Protocol):
    def start(self) -> None: ...
    def stop(self) -> None: ...


AnyBed = TypeVar("AnyBed", bound=Bed)


def run(bed: AnyBed) -> Iterator[AnyBed]:
    """For a fixture: `yield from run(...)` starts the bed, and stops it whatever happens."""
    try:
        bed.start()
        yield bed
    finally:
        bed.stop()
