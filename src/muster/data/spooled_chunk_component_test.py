"""A large compressed file is shuffled without being held in memory."""

from __future__ import annotations

import gzip
import os
import pathlib
import re
import subprocess

import pytest

from testbed.muster import Muster
from testbed.studies import checkpoint_bytes

ROW_BYTES = 4096
ROWS = 25_000  # 100 MB in each of two files
MOST_BYTES = 90_000_000  # of memory that is the process's own, with 200 MB of rows open
MODEL = """
inputs: {x: float, y: int}
label: y
columns:
  x: {numeric: x}
model:
  type: linear
  linear: {columns: [x], optimizer: {ftrl: {learning_rate: 0.1}}}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("compressed")
    (folder / "model.yaml").write_text(MODEL)
    for part in range(2):
        with gzip.open(folder / f"part-{part}.csv.gz", "wt", compresslevel=1) as file:
            file.write("y,x,more\n")
            for row in range(ROWS):
                file.write(f"{row % 2},{(row * 37 + part) % 100 / 100},{'m' * ROW_BYTES}\n")
    return folder


def train(muster: Muster, folder: pathlib.Path, model: str, spool: pathlib.Path) -> tuple[int, int]:
    """Returns the most bytes of anonymous memory that were seen, and the last step."""
    process = subprocess.Popen(
        [muster.binary, "train", "model.yaml", model, "--train", "part-*.csv.gz", "--epochs", "2"],
        cwd=folder, env={**os.environ, "TMPDIR": str(spool)}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    most = 0
    status = pathlib.Path(f"/proc/{process.pid}/status")
    while process.poll() is None:
        found = re.search(r"RssAnon:\s*(\d+) kB", status.read_text())
        most = max(most, int(found[1]) * 1024 if found else 0)
        try:
            process.wait(0.01)
        except subprocess.TimeoutExpired:
            pass
    output, errors = process.communicate()
    assert process.returncode == 0, errors
    step = re.search(r"checkpoint \S*model\.ckpt-(\d+)", output)
    assert step and most > 0, output
    return most, int(step[1])


def test_a_large_compressed_file_is_not_held_in_memory(muster: Muster, folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    spool = tmp_path / "spool"
    spool.mkdir()
    spooled, step = train(muster, folder, "spooled", spool)
    assert spooled < MOST_BYTES
    assert list(spool.iterdir()) == []
    # Without a place for it, it is held in memory, with the same model.
    held, _ = train(muster, folder, "held", tmp_path / "absent")
    assert held > 200_000_000
    assert checkpoint_bytes(folder / "spooled", step) == checkpoint_bytes(folder / "held", step)
