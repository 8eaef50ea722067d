"""A Python that is too old is told so."""

from __future__ import annotations

import os
import subprocess
import sys

PROGRAM = "import sys; sys.version_info = (3, 7, 16, 'final', 0); import muster"


def test_an_old_python_is_told_which_it_needs(repository) -> None:
    environment = {**os.environ, "PYTHONPATH": str(repository / "python")}
    done = subprocess.run([sys.executable, "-c", PROGRAM], check=False, env=environment, timeout=60,
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 1
    assert "ImportError: muster needs Python 3.8 or later, and this is Python 3.7" in done.stderr
