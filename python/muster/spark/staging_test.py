"""What is left by drivers that were killed, and what of living ones is let alone."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import time

import pytest

from muster import binary
from muster.spark import staging


def age(folder: pathlib.Path, seconds: float) -> None:
    before = time.time() - seconds
    for path in (folder / staging._OPEN, folder):
        if path.exists():
            os.utime(path, (before, before))


def names(folder: pathlib.Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def killed_driver(target: pathlib.Path) -> pathlib.Path:
    """The staging folder of a driver that was killed while its tasks wrote."""
    program = (
        "import sys, time\n"
        "from muster.spark import staging\n"
        "with staging.folder(sys.argv[1]) as folder:\n"
        "    print(folder, flush=True)\n"
        "    time.sleep(1000)\n"
    )
    driver = subprocess.Popen(
        [sys.executable, "-c", program, str(target)], stdout=subprocess.PIPE, text=True
    )
    assert driver.stdout is not None
    folder = pathlib.Path(driver.stdout.readline().strip())
    driver.kill()
    driver.wait()
    driver.stdout.close()
    (folder / "0-1").mkdir()
    (folder / "0-1" / "part-00000").write_bytes(b"rows")
    return folder


def test_the_next_job_removes_what_a_killed_driver_has_left(tmp_path: pathlib.Path) -> None:
    left = killed_driver(tmp_path / "data")
    with staging.folder(str(tmp_path / "data")):
        assert left.exists(), "its driver may live: it wrote a moment ago"
    age(left, staging.STALE + 60)
    with staging.folder(str(tmp_path / "data")) as own:
        assert names(tmp_path) == [pathlib.Path(own).name]
    assert names(tmp_path) == []


def test_a_folder_without_a_sign_of_its_driver(tmp_path: pathlib.Path) -> None:
    for name, seconds in (("muster-0123456789ab", 3600), ("muster-0123456789ab-ended", 3600),
                          ("muster-ba9876543210", 10), ("muster-models", 3600)):  # fmt: skip
        (tmp_path / name).mkdir()
        age(tmp_path / name, seconds)
    with staging.spool(str(tmp_path)):
        pass
    assert names(tmp_path) == ["muster-ba9876543210", "muster-models"]


def test_a_driver_that_lives_says_so(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "RENEWAL", 0.01)
    with staging.spool(str(tmp_path)) as own:
        marker = pathlib.Path(own) / staging._OPEN
        age(pathlib.Path(own), 10_000)
        deadline = time.monotonic() + 60
        while time.time() - marker.stat().st_mtime > 1000:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        with staging.spool(str(tmp_path)):
            assert marker.exists()
    assert names(tmp_path) == []


def test_a_folder_in_which_nothing_can_be_made_is_named(tmp_path: pathlib.Path) -> None:
    (tmp_path / "staging").write_text("a file")
    with pytest.raises(binary.MusterError, match=f"cannot write the rows into {tmp_path}/staging: Not a directory. Give"):
        with staging.spool(str(tmp_path / "staging")):
            raise AssertionError("unreachable")
