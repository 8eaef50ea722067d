"""Measures how much memory a program takes."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import tempfile
from typing import Any, Sequence

# Runs its arguments and prints exit code and peak KiB. This is a separate process, since a child's
# peak begins with the memory of the process that forked it, here one that may have TensorFlow
# loaded.
MEASURE = """
import os, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)
print(os.waitstatus_to_exitcode(status), usage.ru_maxrss)
"""


def resident_bytes(pid: int) -> int:
    """Returns a running process's memory, with its share of what it shares with others."""
    rollup = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in rollup if line.startswith("Pss:"))


def run_measured(command: Sequence[str], **options: Any) -> tuple[int, str, int]:
    """Returns exit code, stderr, and peak memory in bytes."""
    with tempfile.TemporaryFile() as errors:
        measured = subprocess.run(
            [sys.executable, "-S", "-c", MEASURE, *command],
            stdout=subprocess.PIPE, stderr=errors, text=True, check=True, **options,
        )  # fmt: skip
        code, peak_kib = map(int, measured.stdout.split())
        errors.seek(0)
        return code, errors.read().decode(), peak_kib * 1024
