"""A file system with little room, for tests of full disks."""

from __future__ import annotations

import contextlib
import pathlib
import subprocess
from typing import Iterator

import pytest


@contextlib.contextmanager
def mounted(folder: pathlib.Path, size: str) -> Iterator[pathlib.Path]:
    """The folder, which is made, on a file system of `size` (such as "512k") of its own, where this
    machine lets the test mount one; else the test is skipped."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "muster-test", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("may not mount a tmpfs; the unit tests make full disks in memory")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
