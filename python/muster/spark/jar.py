"""Finds the jar with TFRecordFileInputFormat and TFRecordFileOutputFormat (java/tfrecord)."""

from __future__ import annotations

import os
import pathlib

from muster import binary

_NAME = "muster-tfrecord.jar"


def find() -> str:
    """Returns the path of the jar: MUSTER_TFRECORD_JAR, else the one that was installed with the muster program.

    Raises MusterError if there is none.
    """
    named = os.environ.get("MUSTER_TFRECORD_JAR")
    if named:
        if not os.path.isfile(named):
            raise binary.MusterError(f"MUSTER_TFRECORD_JAR names no file: {named}")
        return named
    folder = pathlib.Path(binary.find()).resolve().parent
    beside, shared = folder / _NAME, folder.parent / "share" / "muster" / _NAME
    for path in (beside, shared):
        if path.is_file():
            return str(path)
    raise binary.MusterError(
        f"{_NAME} is neither at {beside} nor at {shared}: java/tfrecord/build.sh of Muster's sources makes it, "
        "and MUSTER_TFRECORD_JAR may name it"
    )
