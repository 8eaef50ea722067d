"""Model folders that TensorFlow wrote: the checkpoints have Muster's names, but there is no
model.yaml to describe the model. The constructor's arguments describe it."""

from __future__ import annotations

import contextlib
import os
import pathlib
import tempfile
from typing import Iterator, Mapping

from muster import storage
from muster.binary import MusterError
from muster.estimator.model import CannedModel
from muster.model_file import SampleInput

_FILE = "model.yaml"
_SLOTS = "checkpoint of another spec: 'training/"


@contextlib.contextmanager
def adopting(
    model: CannedModel, model_dir: str, sample: Mapping[str, SampleInput], label: str
) -> Iterator[None]:
    """For an evaluation or prediction in this context: writes model.yaml if there is none.

    The program compares it with the checkpoint's names and shapes; if it fails, the file is
    removed.
    """
    if storage.exists(os.path.join(model_dir, _FILE)):
        yield
        return
    wanted = dict(sample)
    if model.head.weight is not None:  # predictions do not need it
        wanted.setdefault(model.head.weight, SampleInput("float"))
    with tempfile.TemporaryDirectory(prefix="muster-") as name:
        made = model.write(pathlib.Path(name), wanted, label)
        others = [path for path in made.parent.iterdir() if path != made]
        written = [_place(path, model_dir) for path in [*others, made]]
    try:
        yield
    except MusterError:
        for path in reversed(written):
            storage.remove(path)
        raise


@contextlib.contextmanager
def continuing(model_dir: str) -> Iterator[None]:
    """For a training in this context: explains what to do about slots of TensorFlow 1's optimizers.
    """
    file = os.path.join(model_dir, _FILE)
    was_there = storage.exists(file)
    try:
        yield
    except MusterError as error:
        if was_there or _SLOTS not in str(error):
            raise
        if storage.exists(file):
            storage.remove(file)
        raise MusterError(
            f"{model_dir} has a checkpoint whose optimizer's slots are not under Muster's names, as "
            "TensorFlow 1's are not: evaluate and predict read it; to train on, give another "
            f"model_dir, and warm_start_from='{model_dir}', which takes the weights"
        ) from error


def _place(path: pathlib.Path, folder: str) -> str:
    """Writes a file into `folder` atomically."""
    target = os.path.join(folder, path.name)
    storage.put(str(path), target)
    return target
