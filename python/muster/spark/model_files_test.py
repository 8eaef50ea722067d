"""Where executors unpack models, without Spark."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import time

import pytest

from muster.spark import model_files

OPENS = """
import sys, time
from muster.spark import model_files

class Files:
    value = {"model.yaml": b"a", "checkpoint": b"b", "sub/c": b"c"}

with model_files.Place(None, Files(), "x").open() as folder:
    if len(sys.argv) > 1:  # in another process, which lives longer
        import subprocess
        subprocess.Popen(["sleep", sys.argv[1]], pass_fds=folder.descriptors)
    print(folder.path, flush=True)
    time.sleep(600)
"""


class Files:
    """As a broadcast."""

    value = {"model.yaml": b"a", "sub/c": b"c"}


def open_elsewhere(*arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(
        [sys.executable, "-c", OPENS, *arguments], stdout=subprocess.PIPE, text=True, env=environment
    )


def kill(process: subprocess.Popen[str]) -> pathlib.Path:
    assert process.stdout is not None
    folder = pathlib.Path(process.stdout.readline().strip())
    process.kill()
    process.wait()
    process.stdout.close()
    return folder


def test_what_killed_workers_leave_is_removed(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path},/nowhere")
    left, read = kill(open_elsewhere()), kill(open_elsewhere("3"))  # the second one has removed the first one
    assert read.parent == tmp_path and not left.exists() and read.exists()
    place = model_files.Place(None, Files(), "x")
    with place.open() as folder, place.open() as other:
        assert sorted(os.listdir(tmp_path)) == sorted(pathlib.Path(p).name for p in (folder.path, other.path, read))
        assert pathlib.Path(folder.path, "sub/c").read_bytes() == b"c"
    assert list(tmp_path.iterdir()) == [read]
    end = time.monotonic() + 60
    while read.exists() and time.monotonic() < end:  # until the program that reads it has ended
        with place.open():
            time.sleep(0.1)
    assert not read.exists()


def test_a_later_model_of_a_folder_is_another_one(tmp_path: pathlib.Path) -> None:
    place = model_files.Place(str(tmp_path), None, "")
    assert place.version() is None
    (tmp_path / "checkpoint").write_text("1")
    first = place.version()
    (tmp_path / "new").write_text("2")
    os.replace(tmp_path / "new", tmp_path / "checkpoint")
    assert first and place.version() not in (None, first)
    assert model_files.Place("hdfs://host/model", None, "").version() is None
