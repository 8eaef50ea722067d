"""Temporary folders, and what killed processes leave of them."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

from muster.spark import own_folder
from muster.spark.own_folder import OwnFolder

HOLDS = """
import subprocess, sys, time
from muster.spark.own_folder import OwnFolder

own = OwnFolder(sys.argv[1])
(own.path / "token").touch()
with subprocess.Popen(["sh", "-c", "echo; read _"], stdin=0, stdout=1, pass_fds=own.descriptors):
    time.sleep(600)
"""


def test_folders_of_killed_processes_are_removed(tmp_path: pathlib.Path) -> None:
    other = tmp_path / (own_folder._PREFIX + "link")
    other.symlink_to(tmp_path)
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as process:  # fmt: skip
        assert process.stdin is not None and process.stdout is not None
        process.stdout.readline()
        held = next(path.parent for path in tmp_path.glob("*/token"))
        process.kill()
        process.wait()
        with OwnFolder(str(tmp_path)) as first, OwnFolder(str(tmp_path)) as second:
            assert first.path.stat().st_mode & 0o777 == 0o700
            # Its owner was killed, but the program that it has started lives.
            assert sorted(tmp_path.iterdir()) == sorted([other, held, first.path, second.path])
        process.stdin.close()
        process.stdout.read()  # until that program has ended
    with OwnFolder(str(tmp_path)) as last:
        assert sorted(tmp_path.iterdir()) == sorted([other, last.path])
    assert list(tmp_path.iterdir()) == [other]


def test_folders_of_others_are_let_alone(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other, left = tmp_path / "muster-spark-own", tmp_path / (own_folder._PREFIX + "left")
    other.mkdir()
    left.mkdir()
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    OwnFolder(str(tmp_path)).remove()
    assert sorted(tmp_path.iterdir()) == [other, left]
    monkeypatch.undo()
    OwnFolder(str(tmp_path)).remove()
    assert list(tmp_path.iterdir()) == [other]
