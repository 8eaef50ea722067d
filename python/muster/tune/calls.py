"""The process of `muster tune --serve`, which keeps a study (docs/formats/study_calls.md)."""

from __future__ import annotations

import json
import math
import subprocess
import tempfile
import threading
from typing import Any, Dict, IO

from muster import binary

_END_SECONDS = 30


class StudyCalls:
    """Calls of one study. Thread-safe: calls are made one after the other."""

    def __init__(self, search: str, folder: str) -> None:
        self._lock = threading.Lock()
        self._errors: IO[bytes] = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            [binary.find(), "tune", search, folder, "--serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,  # Ctrl-C is for the program that runs the trials
        )

    def call(self, name: str, **members: Any) -> Dict[str, Any]:
        """Returns the answer.

        Raises ValueError for a call that cannot be done, MusterError if the process has ended.
        """
        line = json.dumps({"call": name, **members}, allow_nan=False).encode() + b"\n"
        with self._lock:
            answer = self._exchange(line)
        if "error" in answer:
            raise ValueError(answer["error"])
        return answer

    def _exchange(self, line: bytes) -> Dict[str, Any]:
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(line)
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        except (BrokenPipeError, ValueError):  # ValueError: the study was closed
            answer = b""
        if not answer.endswith(b"\n"):
            raise binary.MusterError(self._why_ended())
        parsed: Dict[str, Any] = json.loads(answer)
        return parsed

    def _why_ended(self) -> str:
        if self._errors.closed:
            return "the study was closed"
        try:
            code = self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        self._errors.seek(0)
        text = self._errors.read().decode(errors="replace").strip()
        if text.startswith("muster: "):
            return text[len("muster: ") :]
        return text or f"muster tune ended with code {code}"

    def close(self) -> None:
        """Ends the process. The study's folder stays."""
        with self._lock:
            if self._errors.closed:
                return
            assert self._process.stdin is not None and self._process.stdout is not None
            try:
                self._process.stdin.close()
            except BrokenPipeError:
                pass
            try:
                self._process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process.stdout.close()
            self._errors.close()


def number_or_none(value: float) -> Any:
    """JSON has no number for what is not finite."""
    return float(value) if math.isfinite(value) else None
