"""A training by replicas on executors: tasks of a job that run `muster worker`, by all-reduce."""

from __future__ import annotations

import os
import posixpath
from typing import Any, List, Sequence

from muster import places, storage
from muster.spark import job

# The program of the machine where the task runs, as the place there has found it.
_PROGRAM = ["sh", "-c", 'exec "$MUSTER_BINARY" "$@"', "muster"]


def train(spark: Any, spec: str, data: str, model_dir: str, flags: Sequence[object], *, workers: int, shared: str) -> None:
    """Trains as `muster train SPEC --train DATA --model-dir DIR --workers N` does, each replica in a slot of Spark.

    All executors reach `data`, `model_dir` and the folder `shared`, into which a model file or an exported Keras
    model of this machine is copied. flags: further ones of `muster worker`. Raises ValueError where Spark has too
    few slots, MusterError with the last lines of a replica where the training fails.
    """
    command = [
        *_PROGRAM, "worker", _share(spec, shared), "--train", data, "--model-dir", model_dir, *map(str, flags),
    ]  # fmt: skip
    job.run(spark, command, chief=True, workers=workers - 1)


def _share(spec: str, shared: str) -> str:
    """Where executors find the model file, or the folder of an exported model."""
    if places.is_remote(spec):
        return spec
    target = posixpath.join(shared, "spec")
    storage.make_folder(target)
    if not os.path.isdir(spec):
        copy = posixpath.join(target, os.path.basename(spec))
        storage.put(spec, copy)
        return copy
    for name in _files(spec):
        storage.make_folder(posixpath.join(target, posixpath.dirname(name)))
        storage.put(os.path.join(spec, name), posixpath.join(target, name))
    return target


def _files(folder: str) -> List[str]:
    """The files below a folder, by their paths there."""
    return [
        os.path.relpath(os.path.join(at, name), folder) for at, _, names in os.walk(folder) for name in names
    ]
