"""A trained model as its files, which travel to the executors and into Spark ML's saved models."""

from __future__ import annotations

import os
from typing import Any, Dict, List, NamedTuple, Optional

from muster.spark.own_folder import OwnFolder

_CHECKPOINT = "checkpoint"
_PREFIX = "model.ckpt-"


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

    def __init__(self, path: str, own: Optional[OwnFolder] = None) -> None:
        """own: the folder itself, if it is removed at the end."""
        self.path = path
        self._own = own

    @property
    def descriptors(self) -> List[int]:
        """What a program that reads the folder inherits, so that nobody else removes it meanwhile."""
        return [] if self._own is None else self._own.descriptors

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, *error: object) -> None:
        if self._own is not None:
            self._own.remove()


def _temporary_folder() -> Folder:
    """In the executor's own folder, which Spark removes, where there is one. Spark kills its Python workers."""
    parent = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
    own = OwnFolder(parent if os.path.isdir(parent) else None)
    return Folder(str(own.path), own)


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
