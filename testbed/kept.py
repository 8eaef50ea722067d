"""Keeps what TensorFlow makes for the tests, such as exports, trainings and reference numbers: it
is made once for the programs that make it, the test whose function makes it, the TensorFlow that
runs them and this processor, and kept in MUSTER_CACHE/kept. MUSTER_RUN_AGAIN=1 makes everything anew."""

from __future__ import annotations

import hashlib
import inspect
import os
import pathlib
import shutil
import tempfile
import time
from typing import Callable

ROOT = pathlib.Path(__file__).parent.parent
# Programs import these.
SOURCES = ("testbed", "python/muster", "src/muster/optim")
DAYS = 30


def cache() -> pathlib.Path:
    home = pathlib.Path(os.environ.get("HOME", "/tmp"))
    return pathlib.Path(os.environ.get("MUSTER_CACHE", home / ".cache/muster")) / "kept"


def processor() -> str:
    """Returns the processor features on which TensorFlow's last digits depend."""
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    return next((line for line in lines if line.startswith("flags")), "")


def file_of(make: Callable[[pathlib.Path], bool]) -> pathlib.Path:
    """Returns the file in which `make` is written."""
    function = make if inspect.isfunction(make) else type(make).__call__
    return pathlib.Path(inspect.getfile(function))


def key_of(make: Callable[[pathlib.Path], bool], interpreter: str, *inputs: str) -> str:
    """Returns the name under which results are kept. `interpreter`, a path, has the checksum of its
    requirements in it."""
    digest = hashlib.sha256("\0".join((interpreter, processor(), *inputs)).encode())
    programs = {path for source in SOURCES for path in (ROOT / source).rglob("*.py")}
    for path in [*sorted(programs), file_of(make)]:
        digest.update(f"{os.path.relpath(path, ROOT)}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:32]


def folder(
    wanted: pathlib.Path, interpreter: str, *inputs: str, make: Callable[[pathlib.Path], bool]
) -> pathlib.Path:
    """Returns `wanted` with what `make(wanted)` makes from the inputs; it is kept if `make` returns
    True."""
    kept = cache() / key_of(make, interpreter, *inputs)
    if kept.is_dir() and not os.environ.get("MUSTER_RUN_AGAIN"):
        os.utime(kept)
        return pathlib.Path(shutil.copytree(kept, wanted, dirs_exist_ok=True))
    wanted.mkdir(exist_ok=True)
    if make(wanted):
        keep(wanted, kept)
    return wanted


def keep(made: pathlib.Path, kept: pathlib.Path) -> None:
    kept.parent.mkdir(parents=True, exist_ok=True)
    for old in kept.parent.iterdir():
        if old.stat().st_mtime < time.time() - DAYS * 86_400:
            shutil.rmtree(old, ignore_errors=True)
    copy = pathlib.Path(tempfile.mkdtemp(dir=kept.parent))
    shutil.copytree(made, copy, dirs_exist_ok=True)
    try:
        copy.rename(kept)
    except OSError:  # another process has kept it in the meantime
        shutil.rmtree(copy)
