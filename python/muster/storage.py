"""Files of this machine or of HDFS, by one set of functions.

Of HDFS the program reads and writes them (`muster fs`); MusterError has what it says.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
from typing import Iterator, List, Optional, Sequence

from muster import binary, places

_MISSING = "no file matches"
_MOVED_AT_ONCE = 500  # a command line has room for so many paths


def exists(path: str) -> bool:
    if not places.is_remote(path):
        return os.path.exists(path)
    return _fs("ls", path) is not None


def read_text(path: str) -> Optional[str]:
    """The text of a file; None if there is none."""
    if places.is_remote(path):
        return _fs("cat", path)
    file = pathlib.Path(path)
    return file.read_text(encoding="utf-8") if file.is_file() else None


def make_folder(path: str) -> None:
    """Makes the folder and its parents where they are missing."""
    if places.is_remote(path):
        _fs("mkdir", path)
    else:
        os.makedirs(path, exist_ok=True)


def put(source: str, target: str) -> None:
    """Copies a file of this machine; `target` is replaced, and whole at every moment."""
    if places.is_remote(target):
        _fs("put", "--force", source, target)
        return
    part = os.path.join(os.path.dirname(target), f".{os.path.basename(target)}.tmp-{os.getpid()}")
    shutil.copyfile(source, part)
    os.replace(part, target)


def move(sources: Sequence[str], folder: str) -> None:
    """Moves files into a folder of the same file system."""
    if places.is_remote(folder):
        for i in range(0, len(sources), _MOVED_AT_ONCE):
            _fs("mv", *sources[i : i + _MOVED_AT_ONCE], folder)
    else:
        for source in sources:
            os.replace(source, os.path.join(folder, os.path.basename(source)))


def rename(source: str, target: str) -> None:
    """`target` must not exist."""
    if places.is_remote(target):
        _fs("mv", source, target)
    else:
        os.rename(source, target)


def names(folder: str) -> Optional[List[str]]:
    """The names in the folder, sorted; None if there is no such folder."""
    if places.is_remote(folder):
        text = _fs("ls", "--json", folder)
        if text is None:
            return None
        return sorted(json.loads(line)["path"].rpartition("/")[2] for line in text.splitlines())
    return sorted(os.listdir(folder)) if os.path.isdir(folder) else None


def modified(path: str) -> Optional[float]:
    """When the file or folder was changed, in seconds by the file system's clock; None without one."""
    if not places.is_remote(path):
        return os.stat(path).st_mtime if os.path.exists(path) else None
    parent, _, name = path.rpartition("/")
    for line in (_fs("ls", "--json", parent) or "").splitlines():
        entry = json.loads(line)
        if entry["path"].rpartition("/")[2] == name:
            return datetime.datetime.fromisoformat(entry["modified"]).timestamp()
    return None


def remove_folder(path: str) -> None:
    """Removes a folder with all that is in it, if it is there."""
    if places.is_remote(path):
        if exists(path):
            _fs("rm", "--recursive", path)
    else:
        shutil.rmtree(path, ignore_errors=True)


def remove(path: str) -> None:
    """Removes a file."""
    if places.is_remote(path):
        _fs("rm", path)
    else:
        os.unlink(path)


@contextlib.contextmanager
def fetched(pattern: str) -> Iterator[str]:
    """A folder of this machine with the files of the glob: their own, or one with copies."""
    if not places.is_remote(pattern):
        yield os.path.dirname(pattern)
        return
    with tempfile.TemporaryDirectory(prefix="muster-") as folder:
        if _fs("get", pattern, folder) is None:
            raise binary.MusterError(f"{_MISSING} '{pattern}'")
        yield folder


def _fs(*words: str) -> Optional[str]:
    """What `muster fs` prints; None if it finds no file."""
    done = subprocess.run([binary.find(), "fs", *words], capture_output=True, check=False)
    if done.returncode == 0:
        return done.stdout.decode()
    said = done.stderr.decode(errors="replace").strip()
    if _MISSING in said:
        return None
    raise binary.MusterError(re.sub("^muster: ", "", said))
