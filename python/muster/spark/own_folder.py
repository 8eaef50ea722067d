"""Folders for temporary files of a process, which do not outlast it for long.

Such a folder is locked while the process that has made it lives, or one that has inherited its descriptor. A process that
was killed cannot remove its folder: the next process that makes one at that place removes it, too.
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import os
import pathlib
import shutil
import tempfile
from typing import List, Optional

_PREFIX = "muster-spark-own-"


class OwnFolder:
    """A new folder that only this user may enter. remove(), or the end of a `with` block, removes it."""

    def __init__(self, parent: Optional[str] = None) -> None:
        """parent: where; by default in the folder for temporary files."""
        parent = parent or tempfile.gettempdir()
        _remove_left(parent)
        self._descriptor: Optional[int] = None
        while self._descriptor is None:
            self.path = pathlib.Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
            with contextlib.suppress(FileNotFoundError):  # another process found it before it was locked
                self._descriptor = _lock(str(self.path), fcntl.LOCK_SH)
                if not self.path.exists():
                    self._unlock()

    @property
    def descriptors(self) -> List[int]:
        """What a program that uses the folder inherits, so that nobody else removes it meanwhile."""
        return [] if self._descriptor is None else [self._descriptor]

    def remove(self) -> None:
        if self._descriptor is not None:
            shutil.rmtree(self.path, ignore_errors=True)
            self._unlock()

    def _unlock(self) -> None:
        assert self._descriptor is not None
        os.close(self._descriptor)
        self._descriptor = None

    def __enter__(self) -> OwnFolder:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


def _remove_left(parent: str) -> None:
    for path in glob.glob(os.path.join(glob.escape(parent), _PREFIX + "*")):
        with contextlib.suppress(OSError):  # it is used, or is being removed, or another user's
            descriptor = _lock(path, fcntl.LOCK_EX | fcntl.LOCK_NB)
            try:
                if os.fstat(descriptor).st_uid == os.geteuid():  # root may lock those of others
                    shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(descriptor)


def _lock(path: str, how: int) -> int:
    """The descriptor of a folder, locked. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, how)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
