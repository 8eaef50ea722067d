"""A trained model as its files, which travel to the executors and into Spark ML's saved models."""

from __future__ import annotations

import contextlib
import os
import tempfile
from typing import Any, Dict, Iterator, NamedTuple, Optional

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


class Place(NamedTuple):
    """Where an executor finds a model: in a folder, or as the files of a broadcast."""

    folder: Optional[str]
    files: Any

    @contextlib.contextmanager
    def opened(self) -> Iterator[str]:
        """The model's folder."""
        if self.folder is not None:
            yield self.folder
            return
        with tempfile.TemporaryDirectory(prefix="muster-model-") as folder:
            unpack(self.files.value, folder)
            yield folder
