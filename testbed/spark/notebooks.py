"""Notebooks, run as a reader runs them: their cells of code in order, in one namespace and one process."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

from testbed.spark import sessions

DEADLINE = 300.0


def run(notebook: pathlib.Path, folder: pathlib.Path) -> str:
    """Runs it in this folder, on a Spark of this machine; returns what it has printed."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    program = folder / f"{notebook.stem}.py"
    program.write_text("\n\n".join(code) + "\n", encoding="utf-8")
    options = (
        f"--master {sessions.RETRYING} --driver-memory 768m --driver-java-options '{sessions.JAVA_FLAGS}' "
        "--conf spark.ui.enabled=false pyspark-shell"
    )
    environment = {**os.environ, "PYTHONPATH": sessions.PYTHONPATH, "PYSPARK_SUBMIT_ARGS": options}
    done = subprocess.run(
        [sys.executable, program.name], cwd=folder, env=environment, timeout=DEADLINE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    return done.stdout
