"""Paths of this machine, which is all that Muster reads and writes."""

from __future__ import annotations

import os
import re
from typing import Any

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)


def local_path(path: Any) -> str:
    """`path` as a text, without `file://`; any other scheme is a ValueError that names the known ones.

    Ask before pathlib does: it makes "hdfs:/host/model", a folder of this machine, of a URL.
    """
    text = str(os.fspath(path))
    found = _SCHEME.fullmatch(text)
    if found is None:
        return text
    scheme, rest = found.groups()
    if scheme != "file" or not rest.startswith("/"):
        raise ValueError(
            f"{text}: there is no file system for '{scheme}://' here; known are paths of this "
            "machine, plain or as file:///PATH"
        )
    return rest
