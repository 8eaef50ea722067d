"""Runs the real TensorBoard on a folder, and reads it as its page does: through HTTP."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from typing import Any, Callable

WAIT_SECONDS = 60
FLAGS = ["--port", "0", "--host", "127.0.0.1", "--reload_interval", "1"]


class TensorBoard:
    def __init__(self, address: str):
        self.address = address

    def get(self, path: str, **query: object) -> Any:
        """Returns the answer of data/PATH, parsed if it is JSON."""
        return self._read(f"{path}?{urllib.parse.urlencode(query)}")

    def post(self, path: str, body: dict[str, Any]) -> Any:
        return self._read(path, json.dumps(body).encode())

    def _read(self, path: str, body: bytes | None = None) -> Any:
        request = urllib.request.Request(
            f"{self.address}/data/{path}", body, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=WAIT_SECONDS) as response:
            text = response.read().decode()
            is_json = response.headers.get_content_type() == "application/json"
        return json.loads(text) if is_json else text

    def wait(self, ready: Callable[[], Any]) -> Any:
        """Returns the first true result of `ready`: event files are loaded while it serves."""
        end = time.monotonic() + WAIT_SECONDS
        while not (answer := ready()):
            assert time.monotonic() < end, "TensorBoard has not loaded the events"
            time.sleep(0.1)
        return answer


def serve(folder: pathlib.Path | str) -> contextlib.AbstractContextManager[TensorBoard]:
    """Runs TensorBoard on a free port of this machine, and always ends it."""
    return started([sys.executable, "-m", "tensorboard.main", "--logdir", folder, *FLAGS])


@contextlib.contextmanager
def started(command: Sequence[object]) -> Iterator[TensorBoard]:
    """The TensorBoard that a command runs with FLAGS; it is always ended."""
    process = subprocess.Popen(
        [*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        printed = []
        for line in process.stdout:
            printed.append(line)
            if match := re.search(r"TensorBoard \S+ at (http://\S+?)/? ", line):
                yield TensorBoard(match[1])
                return
        raise AssertionError("TensorBoard did not start: " + "".join(printed))
    finally:
        # This also ends the data server that it starts.
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
