"""Folders for what a Spark job has written and not yet published or used.

A staging folder has a file that its driver writes anew every minute. One whose file is older than
`STALE` was left by a driver that was killed, and the next job that makes a staging folder of that
kind at that place removes it.
"""

from __future__ import annotations

import contextlib
import posixpath
import re
import tempfile
import threading
import uuid
from typing import Iterator

from muster import binary, storage

_OPEN = ".open"  # a file that is there for as long as the job takes the results of tasks
_ENDED = "-ended"
RENEWAL = 60.0  # seconds
STALE = 900.0  # seconds, by the clock of the file system


@contextlib.contextmanager
def folder(target: str) -> Iterator[str]:
    """Makes the hidden folder beside a target in which tasks write, until all is there.

    At the end removes it with all that is still in it.
    """
    parent, name = posixpath.split(target)
    with _made(parent, f".{name}.writing-") as staging:
        yield staging


@contextlib.contextmanager
def spool(parent: str) -> Iterator[str]:
    """Makes a folder for rows that are there for as long as they are needed."""
    with _made(parent, "muster-") as staging:
        yield staging


@contextlib.contextmanager
def _made(parent: str, prefix: str) -> Iterator[str]:
    staging = posixpath.join(parent, prefix + uuid.uuid4().hex[:12])
    with _naming(parent):
        storage.make_folder(staging)
    done = threading.Event()
    renewal = threading.Thread(target=_renew, args=(staging, done), daemon=True)
    try:
        with _naming(parent):
            _put_marker(staging)
        renewal.start()
        _remove_stale(parent, prefix, _time_of_marker(staging))
        yield staging
    finally:
        done.set()
        if renewal.is_alive():
            renewal.join()  # or it would make the folder again
        # Spark ends attempts that it does not need a little later: what they still write would be
        # added to a folder that is being removed. They do not find it by its new name.
        storage.rename(staging, staging + _ENDED)
        storage.remove_folder(staging + _ENDED)


@contextlib.contextmanager
def _naming(parent: str) -> Iterator[None]:
    """Makes one line of what the operating system says of a folder in which nothing can be made."""
    try:
        yield
    except OSError as error:
        raise binary.MusterError(
            f"the driver cannot write the rows into {parent}: {error.strerror}. Give a folder with room that the driver and "
            "all executors may write, such as hdfs://NAMENODE/tmp"
        ) from error


def _put_marker(staging: str) -> None:
    with tempfile.NamedTemporaryFile() as empty:
        storage.put(empty.name, posixpath.join(staging, _OPEN))


def _renew(staging: str, done: threading.Event) -> None:
    while not done.wait(RENEWAL):
        with contextlib.suppress(OSError, binary.MusterError):  # the next time may go better
            _put_marker(staging)


def _time_of_marker(staging: str) -> float:
    """The time of the file system at which the marker was written; 0 without one."""
    return storage.modified(posixpath.join(staging, _OPEN)) or 0.0


def _remove_stale(parent: str, prefix: str, now: float) -> None:
    pattern = re.compile(re.escape(prefix) + f"[0-9a-f]{{12}}({_ENDED})?")
    for name in storage.names(parent) or []:
        if not pattern.fullmatch(name):
            continue
        path = posixpath.join(parent, name)
        # A driver that was killed at once has left a folder without the file.
        last = _time_of_marker(path) or storage.modified(path) or now
        if now - last > STALE:
            storage.remove_folder(path)


def attempt_folder(staging: str, partition: int, attempt: int) -> str:
    """Where an attempt of a task writes the file of its partition."""
    return posixpath.join(staging, f"{partition}-{attempt}")


@contextlib.contextmanager
def attempt(staging: str, partition: int, number: int) -> Iterator[str]:
    """The folder of an attempt, which leaves nothing if its job ends before it does.

    Raises ValueError if the staging folder is not there.
    """
    _check_open(staging)
    try:
        yield attempt_folder(staging, partition, number)
        _check_open(staging)
    finally:
        if not _is_open(staging):
            storage.remove_folder(staging)  # which this attempt has made again


def _is_open(staging: str) -> bool:
    return storage.exists(posixpath.join(staging, _OPEN))


def _check_open(staging: str) -> None:
    if not _is_open(staging):
        raise ValueError(
            f"an executor does not find {staging}: give a path that all machines reach, such as "
            "hdfs://NAMENODE/PATH (or the job of this task has ended)"
        )
