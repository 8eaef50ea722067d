"""Jars of the programs that test beds run."""

from __future__ import annotations

import pathlib
import subprocess


def fetch_jars(pom: pathlib.Path, **properties: str) -> pathlib.Path:
    """The folder of the jars that a POM names, with these properties; they are fetched once."""
    script = pathlib.Path(__file__).parent / "maven_jars.sh"
    command = [str(script), str(pom), *(f"{name}={value}" for name, value in properties.items())]
    fetched = subprocess.run(command, capture_output=True, text=True)
    assert fetched.returncode == 0, fetched.stderr[-4000:]
    return pathlib.Path(fetched.stdout.strip())
