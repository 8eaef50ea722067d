"""Runs commands and measures what they cost: CPU seconds of all their threads, not wall time."""

import json
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Run:
    cpu_seconds: float
    wall_seconds: float
    max_rss_mib: float
    output: str  # stdout

    def events(self) -> dict[str, Any]:
        """The keys of every JSON object on a line of its own, later ones over earlier ones."""
        merged: dict[str, Any] = {}
        for line in self.output.splitlines():
            if line.startswith("{"):
                merged.update(json.loads(line))
        return merged


class CommandFailed(Exception):
    """A measured command ended badly; its output is the message."""


def run(command: Sequence[str | Path], **environment: str) -> Run:
    """Runs to the end; the cost is the process's own and that of the children it waited for."""
    words = [str(word) for word in command]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        start = time.monotonic()
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env={**os.environ, **environment}
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        output = out.read().decode(errors="replace")
        if process.returncode != 0:
            tail = err.read().decode(errors="replace")[-3000:]
            raise CommandFailed(f"{' '.join(words)}\nexit code {process.returncode}\n{output}{tail}")
    return Run(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024, output)


@dataclass(frozen=True)
class Series:
    """One figure, measured several times."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    def text(self, form: Callable[[float], str]) -> str:
        return f"{form(self.median)} ({form(min(self.values))} to {form(max(self.values))})"

    def over(self, other: "Series") -> "Series":
        """The ratio, round by round: both sides of a round ran under the same load."""
        return Series(tuple(a / b for a, b in zip(self.values, other.values, strict=True)))


def interleave(sides: dict[str, Callable[[], float]], rounds: int) -> dict[str, Series]:
    """Measures every side once a round, in turn from the front and from the back."""
    values: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(rounds):
        names = list(sides) if number % 2 == 0 else list(reversed(sides))
        for name in names:
            values[name].append(sides[name]())
            print(f"  round {number + 1}/{rounds}  {name}: {count(values[name][-1])}", flush=True)
    return {name: Series(tuple(v)) for name, v in values.items()}


def count(value: float) -> str:
    """1234567 as 1.23M."""
    for limit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= limit:
            return f"{value / limit:.3g}{letter}"
    return f"{value:.3g}"


def times(value: float) -> str:
    return f"{value:.3g}x"
