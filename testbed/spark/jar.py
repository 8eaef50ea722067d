"""The jar of java/tfrecord."""

from __future__ import annotations

import pathlib
import subprocess

SCRIPT = pathlib.Path(__file__).parents[2] / "java/tfrecord/build.sh"


def built() -> str:
    """Its path; it is compiled once for each content of its sources."""
    done = subprocess.run([SCRIPT], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout.strip()
