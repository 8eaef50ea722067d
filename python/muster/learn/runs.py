"""Runs the muster program to train a model and predict with it, on columns in memory.

A trained model is kept as its files by name: model.yaml and one checkpoint. They are written to a
temporary folder for each run, so that an estimator contains its whole model and can be pickled.
"""

from __future__ import annotations

import contextlib
import json
import logging
import pathlib
import tempfile
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from muster import binary
from muster.batch_stream import BatchWriter, StreamColumn

_NEVER = 10**9  # steps between summaries, which nobody reads
_PREDICTED_ROWS = 1024  # rows per batch of predictions

# What the program's flags are called in Python, for errors.
_PARAMETERS = {
    "--batch-size": "batch_size",
    "--epochs": "epochs",
    "--seed": "seed",
    "--threads": "n_jobs",
}

Columns = Mapping[str, Any]
Files = Dict[str, bytes]


@dataclass(frozen=True)
class Training:
    """How a model is trained. patience: how many epochs without a better evaluation; None: all
    epochs."""

    batch_size: int
    epochs: int
    seed: int
    threads: int
    patience: Optional[int]
    quiet: bool


@contextlib.contextmanager
def shown(verbose: bool) -> Iterator[None]:
    """If `verbose`, prints what the logger "muster" is told on stderr, unless the program has
    configured logging."""
    logger = binary.logger
    if not verbose or logger.hasHandlers():
        yield
        return
    handler, level = logging.StreamHandler(), logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(level)
        logger.removeHandler(handler)


def train(
    spec: Mapping[str, Any],
    stream: Sequence[StreamColumn],
    data: Columns,
    evaluation: Optional[Columns],
    how: Training,
) -> Tuple[Files, List[binary.Event]]:
    """Returns the trained model, and the evaluations, one for each epoch.

    With `evaluation` the model is the one after the epoch with the lowest loss on it.
    """
    rows = _rows(data)
    steps = -(-rows // how.batch_size)
    with tempfile.TemporaryDirectory(prefix="muster-") as name:
        folder = pathlib.Path(name)
        model = folder / "model"
        (folder / "model.json").write_text(json.dumps(spec), encoding="utf-8")
        command: List[object] = ["train", folder / "model.json", "--train", "-", "--json"]
        command += ["--model-dir", model, "--seed", how.seed, "--threads", how.threads]
        command += ["--summary-steps", _NEVER, "--rate-steps", _NEVER, "--histogram-steps", 0]
        command += ["--quiet"] if how.quiet else []
        if evaluation is not None:
            with open(folder / "evaluation.batches", "wb") as file:
                _write(file.write, stream, evaluation, [slice(0, _rows(evaluation))])
            command += ["--eval", folder / "evaluation.batches", "--save-steps", steps]
            command += ["--eval-throttle-secs", 0, "--eval-start-delay-secs", 0]
            if how.patience is not None:
                command += ["--early-stop", f"loss:no_decrease:{how.patience * steps}"]
        batches = _shuffled(rows, how)
        events = binary.run(
            command, lambda write: _write(write, stream, data, batches), names=_PARAMETERS
        )
        evaluations = [event for event in events if event.get("event") == "evaluated"]
        return _kept(model, evaluations), evaluations


def predict(
    files: Files, stream: Sequence[StreamColumn], data: Columns, output: str, threads: int
) -> Any:
    """Returns the output of that name as float64 [rows, values]."""
    rows = _rows(data)
    with tempfile.TemporaryDirectory(prefix="muster-") as name:
        write_model(files, pathlib.Path(name))
        command: List[object] = ["predict", "--model-dir", name]
        command += ["--data", "-", "--out", "-", "--json", "--quiet"]
        command += ["--threads", threads]
        batches = [slice(i, min(i + _PREDICTED_ROWS, rows)) for i in range(0, rows, _PREDICTED_ROWS)]
        found = binary.stream(
            command, lambda write: _write(write, stream, data, batches), names=_PARAMETERS
        )
        return np.array([row[output] for row in found], np.float64)


def write_model(files: Files, folder: pathlib.Path) -> None:
    for name, content in files.items():
        (folder / name).write_bytes(content)


def _kept(model: pathlib.Path, evaluations: Sequence[binary.Event]) -> Files:
    """Returns model.yaml and the files of the best checkpoint, or of the newest one without
    evaluations."""
    if evaluations:
        best = json.loads((model / "best_checkpoint").read_text(encoding="utf-8"))["checkpoint"]
    else:
        best = (model / "checkpoint").read_text(encoding="utf-8").split('"')[1]
    prefix = pathlib.PurePath(best).name
    files = {path.name: path.read_bytes() for path in model.glob(f"{prefix}.*")}
    files["model.yaml"] = (model / "model.yaml").read_bytes()
    files["checkpoint"] = (
        f'model_checkpoint_path: "{prefix}"\nall_model_checkpoint_paths: "{prefix}"\n'.encode()
    )
    return files


def _shuffled(rows: int, how: Training) -> Iterator[Any]:
    """Yields the row numbers of each batch, in another order in each epoch."""
    random = np.random.default_rng(how.seed)
    for _ in range(how.epochs):
        order = random.permutation(rows)
        for i in range(0, rows, how.batch_size):
            yield order[i : i + how.batch_size]


def _write(
    write: binary.Write, stream: Sequence[StreamColumn], data: Columns, batches: Any
) -> None:
    writer = BatchWriter(write, stream)
    for rows in batches:
        writer.write({column.name: data[column.name][rows] for column in stream})
    writer.end()


def _rows(data: Columns) -> int:
    return len(next(iter(data.values())))
