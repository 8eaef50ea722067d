"""pip install . finds what ./quickstart compiled: both give ccache the same settings."""

from __future__ import annotations

import os
import subprocess

import pytest

# The wheel of this build is its settings of ccache.
PROGRAM = """
import os, sys
sys.path.insert(0, "packaging")
import build_backend
class Backend:
    def build_wheel(self, folder):
        print("".join(f"{k}={v}\\n" for k, v in sorted(os.environ.items()) if k in sys.argv))
build_backend._backend = Backend()
build_backend.build_wheel("dist")
"""
SETTINGS = ("CCACHE_BASEDIR", "CCACHE_DIR", "CCACHE_NOHASHDIR")


@pytest.mark.parametrize("given", ["HOME", "MUSTER_CACHE", "CCACHE_DIR"])
def test_ccache_has_quickstarts_settings(given, repository, tmp_path) -> None:
    hidden = (*SETTINGS, "MUSTER_CACHE", "MUSTER_PREBUILT")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    environment.update({"HOME": str(tmp_path / "home"), given: str(tmp_path / "given")})

    def settings(*command: str) -> list[str]:
        said = subprocess.run(command, cwd=repository, env=environment, capture_output=True,
                              text=True, timeout=60, check=True).stdout  # fmt: skip
        return sorted(line for line in said.splitlines() if line.startswith(SETTINGS))

    wanted = settings("bash", "-c", "source tools/environment.sh && env")
    assert len(wanted) == len(SETTINGS)
    assert any(str(tmp_path / "given") in line for line in wanted)
    assert settings(os.environ["MUSTER_PYTHON_TOOLS"], "-c", PROGRAM, *SETTINGS) == wanted
