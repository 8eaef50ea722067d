"""A container that is a process of this machine, and how much memory it has."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess

from testbed.kubernetes.api import Object
from testbed.kubernetes.container_log import ContainerLog
from testbed.kubernetes.node import Node

UNITS = {"": 1, "k": 1000, "M": 10**6, "G": 10**9, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}


def parse_quantity(text: str) -> int:
    found = re.fullmatch(r"(\d+)([kMG]?i?)", str(text))
    assert found, f"a quantity of memory, not {text}"
    return int(found[1]) * UNITS[found[2]]


def resident_bytes(process: int) -> int:
    """Of the process and all below it."""
    try:
        pages = int(pathlib.Path(f"/proc/{process}/statm").read_text().split()[1])
        below = [
            int(child)
            for task in pathlib.Path(f"/proc/{process}/task").iterdir()
            for child in (task / "children").read_text().split()
        ]
    except (OSError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") + sum(map(resident_bytes, below))


class Container:
    def __init__(self, spec: Object):
        self.spec = spec
        self.name = str(spec["name"])
        self.restarts = 0
        self.logs: list[ContainerLog] = []
        self.process: subprocess.Popen[bytes] | None = None
        self.state: Object = {"waiting": {"reason": "ContainerCreating"}}
        self.last: Object = {}
        self.out_of_memory = False
        self.over = False  # it has ended and will not start again
        limit = spec.get("resources", {}).get("limits", {}).get("memory")
        self.limit = parse_quantity(limit) if limit else 0

    def signal(self, number: int) -> None:
        process = self.process
        if process and (first := Node.first_of(process)):
            try:
                os.kill(first, number)
            except ProcessLookupError:
                pass

    def status(self) -> Object:
        return {"name": self.name, "image": self.spec["image"], "imageID": self.spec["image"],
                "ready": "running" in self.state, "started": "running" in self.state,
                "restartCount": self.restarts, "state": self.state,
                "lastState": self.last}  # fmt: skip
