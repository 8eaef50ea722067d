"""Paths: of this machine, or of an HDFS where the program reads and writes them itself."""

from __future__ import annotations

import os
import re
from typing import Any

# "hdfs:/data" is Hadoop's short form of "hdfs:///data".
_URL = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*)://|(file|s?webhdfs|hdfs):(?=/))(.*)", re.DOTALL)
_HDFS = ("hdfs", "webhdfs", "swebhdfs")


def _split(path: str) -> tuple[str, str]:
    """The scheme, "" if there is none, and what follows it."""
    found = _URL.fullmatch(path)
    return (found[1] or found[2], found[3]) if found else ("", path)


def is_remote(path: str) -> bool:
    """Whether the path is not one of this machine."""
    return _split(path)[0] in _HDFS


def any_path(path: Any) -> str:
    """`path` as a text: of this machine, without `file://`, or of HDFS; else a ValueError."""
    text = str(os.fspath(path))
    if is_remote(text):
        return text
    try:
        return local_path(text)
    except ValueError as error:
        raise ValueError(f"{error}, or of HDFS as hdfs://NAMENODE/PATH") from None


def local_path(path: Any) -> str:
    """`path` as a text, without `file://`; any other scheme is a ValueError that names the known ones.

    Ask before pathlib does: it makes "hdfs:/host/model", another folder, of "hdfs://host/model".
    """
    text = str(os.fspath(path))
    scheme, rest = _split(text)
    if not scheme:
        return text
    if scheme != "file" or not rest.startswith("/"):
        raise ValueError(
            f"{text}: there is no file system for '{scheme}://' here; known are paths of this "
            "machine, plain or as file:///PATH"
        )
    return rest
