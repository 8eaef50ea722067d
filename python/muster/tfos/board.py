"""TensorBoard beside a node's program."""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
from typing import Optional

_END_SECONDS = 10.0


class Board:
    """A TensorBoard that runs."""

    def __init__(self, process: subprocess.Popen[bytes], port: int) -> None:
        self._process = process
        self.pid = process.pid
        self.port = port

    def end(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def start(log_dir: Optional[str], executor_id: int) -> Board:
    """At the port of TENSORBOARD_PORT, or a free one. Raises RuntimeError if it is not installed."""
    if importlib.util.find_spec("tensorboard") is None:
        raise RuntimeError(
            f"tensorboard=True: {sys.executable} has no module tensorboard: install it where the "
            "executors' Python is, or leave tensorboard out"
        )
    port = int(os.environ.get("TENSORBOARD_PORT", "0")) or _free_port()
    logs = log_dir or f"tensorboard_{executor_id}"
    process = subprocess.Popen(
        [sys.executable, "-m", "tensorboard.main", "--reload_multifile=true", f"--logdir={logs}",
         "--bind_all", f"--port={port}"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    return Board(process, port)


def _free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])
