"""Runs the muster binary that MUSTER_BINARY names."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
from typing import Any


class Muster:
    """`run` expects success, `fail` failure, `refuse` wrong use; all return what was printed."""

    def __init__(self, binary: str | None = None):
        self.binary = binary or os.environ["MUSTER_BINARY"]

    def call(self, *arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
        command = [self.binary, *map(str, arguments)]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=600, check=False, **options
        )

    def run(self, *arguments: object) -> str:
        result = self.call(*arguments)
        assert result.returncode == 0, f"{arguments}: {result.stderr}"
        return result.stdout

    def fail(self, *arguments: object) -> str:
        result = self.call(*arguments)
        assert result.returncode == 1, f"{arguments}: exit {result.returncode}: {result.stderr}"
        return result.stderr

    def refuse(self, *arguments: object) -> str:
        result = self.call(*arguments)
        assert result.returncode == 2, f"{arguments}: exit {result.returncode}: {result.stderr}"
        return result.stderr

    def json(self, *arguments: object) -> list[dict[str, Any]]:
        """Returns the objects that --json printed, one per line."""
        return [json.loads(line) for line in self.run(*arguments, "--json").splitlines()]

    def event(self, name: str, *arguments: object) -> dict[str, Any]:
        """Returns the last object whose "event" is `name`."""
        return [o for o in self.json(*arguments) if o.get("event") == name][-1]


def data_file(name: str) -> pathlib.Path | None:
    """Returns a file of the real data in MUSTER_DATA; None if there is none."""
    folder = os.environ.get("MUSTER_DATA")
    path = pathlib.Path(folder, name) if folder else None
    return path if path is not None and path.exists() else None
