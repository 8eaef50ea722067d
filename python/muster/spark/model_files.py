"""A trained model as its files, which travel to the executors and into Spark ML's saved models."""

from __future__ import annotations

import contextlib
import fcntl
import glob
import os
import shutil
import tempfile
from typing import Any, Dict, List, NamedTuple, Optional

_CHECKPOINT = "checkpoint"
_PREFIX = "model.ckpt-"
_TEMPORARY = "muster-model-"


def collect(folder: str) -> Dict[str, bytes]:
    """What scoring needs of a model's folder: the newest checkpoint, and all but event files."""
    newest = _newest(folder)
    files = {}
    for at, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(at, name)
            relative = os.path.relpath(path, folder)
            other = name.startswith(_PREFIX) and not name.startswith(newest + ".")
            if other or name.startswith((".", "events.out")) or name == "muster.lease":
                continue
            with open(path, "rb") as file:
                files[relative] = file.read()
    files[_CHECKPOINT] = (
        f'model_checkpoint_path: "{newest}"\nall_model_checkpoint_paths: "{newest}"\n'.encode()
    )
    return files


def _newest(folder: str) -> str:
    with open(os.path.join(folder, _CHECKPOINT), encoding="utf-8") as file:
        return os.path.basename(file.read().split('"')[1])


def unpack(files: Dict[str, bytes], folder: str) -> None:
    for name, content in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content)


class Folder:
    """A model's folder, to be read until the end of a `with` block."""

    def __init__(self, path: str, lock: Optional[int] = None) -> None:
        """lock: the folder's descriptor, if the folder is a temporary one (_temporary_folder)."""
        self.path = path
        self._lock = lock

    @property
    def descriptors(self) -> List[int]:
        """What a program that reads the folder inherits, so that nobody else removes it meanwhile."""
        return [] if self._lock is None else [self._lock]

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, *error: object) -> None:
        if self._lock is not None:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._lock)


def _temporary_folder() -> Folder:
    """A folder that is locked while this process, or one that inherits its descriptor, lives.

    Spark kills its Python workers: the next one removes what they have left. They lie in the executor's own folder,
    which Spark removes, where there is one.
    """
    parent = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
    parent = parent if os.path.isdir(parent) else tempfile.gettempdir()
    for path in glob.glob(os.path.join(parent, _TEMPORARY + "*")):
        with contextlib.suppress(OSError):  # others use it, or are removing it
            _lock(path, fcntl.LOCK_EX | fcntl.LOCK_NB).__exit__()
    while True:
        folder = _lock(tempfile.mkdtemp(prefix=_TEMPORARY, dir=parent), fcntl.LOCK_SH)
        if os.path.exists(folder.path):
            return folder
        folder.__exit__()  # another worker found it before it was locked


def _lock(path: str, how: int) -> Folder:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, how)
    except BaseException:
        os.close(descriptor)
        raise
    return Folder(path, descriptor)


class Place(NamedTuple):
    """Where an executor finds a model: in a folder, or as the files of a broadcast."""

    folder: Optional[str]
    files: Any
    name: str  # of these files, another one for each model

    def open(self) -> Folder:
        if self.folder is not None:
            return Folder(self.folder)
        folder = _temporary_folder()
        try:
            unpack(self.files.value, folder.path)
        except BaseException:
            folder.__exit__()
            raise
        return folder

    def version(self) -> Optional[str]:
        """What tells the model of now from another one, also from a later one in the same folder; None: nothing."""
        if self.folder is None:
            return self.name
        try:
            found = os.stat(os.path.join(self.folder, _CHECKPOINT))
        except OSError:  # of HDFS, too
            return None
        return f"{self.folder} {found.st_ino} {found.st_mtime_ns}"
