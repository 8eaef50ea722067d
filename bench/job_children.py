"""Children of a job that say when they run and wait until they are let go."""

import os
import select
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from bench.measure import CommandFailed

DEADLINE = 120.0  # for all to have started
CHILD = """#!/bin/sh
echo started > '{folder}/started'
read line < '{folder}/gate'
exit 0
"""


class Children:
    """What they have in common: a script, and two FIFOs, open here both ways so that nobody waits
    for the other side to open its end."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.script = folder / "child.sh"
        self.script.write_text(CHILD.format(folder=folder), encoding="utf-8")
        self.script.chmod(0o755)
        for name in ("started", "gate"):
            os.mkfifo(folder / name)
        self.started = os.open(folder / "started", os.O_RDWR | os.O_NONBLOCK)
        self.gate = os.open(folder / "gate", os.O_RDWR)

    def close(self) -> None:
        os.close(self.started)
        os.close(self.gate)


class Started:
    """A command that starts `count` of them; `seconds` until all ran."""

    def __init__(
        self, children: Children, command: Sequence[str | Path], count: int, **environment: str
    ):
        self.children, self.count = children, count
        self.words = [str(word) for word in command]
        self.log = children.folder / "output.log"
        begin = time.monotonic()
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                self.words, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**os.environ, **environment},
            )  # fmt: skip
        self.wait_for_all(begin + DEADLINE)
        self.seconds = time.monotonic() - begin

    def wait_for_all(self, deadline: float) -> None:
        seen = 0
        while seen < self.count:
            ready, _, _ = select.select([self.children.started], [], [], 0.5)
            if ready:
                seen += os.read(self.children.started, 4096).count(b"\n")
            elif self.process.poll() is not None or time.monotonic() > deadline:
                self.process.kill()
                raise self.failure(f"{seen} of {self.count} children have started")

    def finish(self) -> None:
        """Lets them go; the command is to end well."""
        os.write(self.children.gate, b"\n" * self.count)
        if self.process.wait(DEADLINE) != 0:
            raise self.failure(f"exit code {self.process.returncode}")

    def failure(self, what: str) -> CommandFailed:
        tail = self.log.read_text(encoding="utf-8", errors="replace")[-3000:]
        return CommandFailed(f"{' '.join(self.words)}\n{what}\n{tail}")
