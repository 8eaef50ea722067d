"""Turns the results of input functions into what `muster` reads.

An input function may return files (inputs.csv, inputs.records), a tf.data.Dataset or its tensors
(graph_input.py), an iterable or a generator of batches, or a single batch, which is then used for
every step. A batch is (features, labels), or features alone: a dict with a column of values for
each feature.
"""

from __future__ import annotations

import inspect
import itertools
from dataclasses import dataclass
from typing import Any, Dict, Iterator, Mapping, Optional, Sequence, Tuple

from muster.batch_stream import BatchWriter, StreamColumn
from muster.binary import Write
from muster.cells import INT, cells
from muster.estimator import graph_input
from muster.estimator.inputs import FilesInput
from muster.estimator.spec import ModeKeys, check_input_fn
from muster.model_file import SampleInput

_ROWS = StreamColumn("rows", INT)
_CONTEXT = "input_context"

Batch = Tuple[Dict[str, Any], Any]  # features, labels or None


@dataclass
class Batches:
    """The remaining batches; `first` has already been taken, to see what batches look like."""

    first: Batch
    rest: Iterator[Batch]

    def all(self) -> Iterator[Batch]:
        return itertools.chain([self.first], self.rest)

    def close(self) -> None:
        """Closes the source of the batches, such as a session of TensorFlow."""
        if hasattr(self.rest, "close"):
            self.rest.close()

    def dealt(self, index: int, count: int) -> Optional[Batches]:
        """Returns every `count`th batch from `index` on; None if there are too few."""
        share = itertools.islice(self.all(), index, None, count)
        first = next(share, None)
        return None if first is None else Batches(first, share)

    def labels_are_ids(self) -> bool:
        """Whether the labels of a multi-label head are class numbers, and not a 0 or 1 for each
        class."""
        given = cells(self.first[1], "labels")
        return given.kind == INT and given.lengths is not None and not given.padded

    def sample(self) -> Dict[str, SampleInput]:
        features, _ = self.first
        out = {}
        for name, value in features.items():
            given = cells(value, name)
            out[name] = SampleInput(given.kind, given.lengths is not None)
        return out


def call_input_fn(input_fn: Any, mode: str, config: Any, params: Any = None) -> Any:
    """Calls an input function with those of mode, config and params that it has as arguments.

    Returns its result; if that has TensorFlow's tensors, returns graph_input.GraphBatches.
    """
    check_input_fn(input_fn)
    names = _parameters(input_fn)
    offered = {"mode": mode, "config": config, "params": params}
    if _CONTEXT in names and config is not None:
        task = config.task
        offered[_CONTEXT] = InputContext(task.workers, task.rank) if task.trains else InputContext()
    given = {name: value for name, value in offered.items() if name in names}
    seed = getattr(config, "tf_random_seed", None)
    return graph_input.call(lambda: input_fn(**given), seed)


@dataclass(frozen=True)
class InputContext:
    """tf.distribute.InputContext: which part of the data a task's input function must return."""

    num_input_pipelines: int = 1
    input_pipeline_id: int = 0

    @property
    def num_replicas_in_sync(self) -> int:
        return self.num_input_pipelines

    def get_per_replica_batch_size(self, global_batch_size: int) -> int:
        if global_batch_size % self.num_input_pipelines != 0:
            raise ValueError(
                f"The `global_batch_size` {global_batch_size} is not divisible by "
                f"`num_replicas_in_sync` {self.num_input_pipelines} "
            )
        return global_batch_size // self.num_input_pipelines


def takes_context(input_fn: Any) -> bool:
    """Whether the input function distributes the data among the tasks of a cluster itself."""
    return _CONTEXT in _parameters(input_fn)


def _parameters(input_fn: Any) -> Mapping[str, Any]:
    try:
        return inspect.signature(input_fn).parameters
    except (TypeError, ValueError):
        return {}


def open_batches(returned: Any, mode: str, bounded: bool) -> Batches:
    """`bounded`: the number of steps is limited. Raises ValueError if there is no batch."""
    iterator = _iterate(returned, mode, bounded)
    first = next(iterator, None)
    if first is None:
        raise ValueError("input_fn gave no batch: its data is empty")
    return Batches(first, iterator)


def _iterate(returned: Any, mode: str, bounded: bool) -> Iterator[Batch]:
    if hasattr(returned, "as_numpy_iterator"):
        returned = _dataset(returned)
    elif _is_batch(returned) or getattr(returned, "constant", False):
        if mode == ModeKeys.TRAIN and not bounded:
            raise ValueError(
                "input_fn returned one batch, which is every batch of the training: say steps or "
                "max_steps, or return an iterable of batches"
            )
        if isinstance(returned, graph_input.GraphBatches):
            returned = next(iter(returned))
        once = mode != ModeKeys.TRAIN
        returned = [returned] if once else itertools.repeat(returned)
    elif not hasattr(returned, "__iter__") and not hasattr(returned, "__next__"):
        raise ValueError(
            "input_fn must return batches: a tf.data.Dataset, an iterable of (features, labels), "
            f"one such tuple, or muster.estimator.inputs.csv(...); it returned {type(returned)}"
        )
    for batch in returned:
        yield _split(batch, mode)


def _dataset(dataset: Any) -> Iterator[Any]:
    iterator: Iterator[Any] = dataset.as_numpy_iterator()
    return iterator


def _is_batch(value: Any) -> bool:
    return isinstance(graph_input.split(value)[0], Mapping)


def _split(batch: Any, mode: str) -> Batch:
    features, labels = batch, None
    if isinstance(batch, (tuple, list)):
        if len(batch) != 2:
            raise ValueError(
                f"input_fn should return (features, labels) as a len 2 tuple. Got {len(batch)}"
            )
        features, labels = batch
    if not isinstance(features, Mapping):
        raise ValueError(
            f"features should be a dictionary of `Tensor`s. Given type: {type(features)}"
        )
    if mode == ModeKeys.PREDICT:
        return dict(features), None
    if labels is None:
        raise ValueError(
            "You must provide a labels Tensor. Given: None. Suggested troubleshooting steps: "
            "Check that your data contains your label feature. Check that your input_fn properly "
            "parses and returns labels."
        )
    if isinstance(labels, Mapping):
        raise ValueError("labels must be one column: heads of several labels are not there")
    return dict(features), labels


@dataclass(frozen=True)
class LabelColumn:
    column: StreamColumn
    classes: int = 0  # labels are numbers from 0 up to, but not including, this; 0: any


def write_batches(
    write: Write,
    batches: Batches,
    columns: Sequence[StreamColumn],
    label: Optional[LabelColumn],
    limit: Optional[int] = None,
    sizes: Optional[Any] = None,
) -> None:
    """Writes up to `limit` batches as a stream; calls `sizes.append` with the rows of each."""
    sent = [*columns, label.column] if label else list(columns)
    writer = BatchWriter(write, sent or [_ROWS])
    for features, labels in itertools.islice(batches.all(), limit):
        if not sent:  # predictions of a baseline only need the number of rows
            features = {_ROWS.name: [0] * _count(features)}
        if label is not None:
            features[label.column.name] = _checked_labels(labels, label)
        rows = writer.write(features)
        if sizes is not None and rows:
            sizes.append(rows)
    writer.end()


def _count(features: Mapping[str, Any]) -> int:
    return max((cells(value, name).rows for name, value in features.items()), default=0)


def _checked_labels(labels: Any, label: LabelColumn) -> Any:
    given = cells(labels, "labels")
    wants_text = label.column.type == "string"
    if wants_text != (given.kind == "string"):
        raise ValueError(
            "labels with a label_vocabulary are strings"
            if wants_text
            else "labels are strings: say the words with label_vocabulary=[...]"
        )
    if label.classes and len(given.values) > 0:
        values = given.values
        low = values.min() if hasattr(values, "min") else min(values)
        high = values.max() if hasattr(values, "max") else max(values)
        if low < 0 or high >= label.classes:
            raise ValueError(
                f"Labels must be in [0, n_classes): there is {low if low < 0 else high}, "
                f"n_classes is {label.classes}"
            )
    return labels


def check_label(files: FilesInput, label: str) -> None:
    if files.label != label:
        raise ValueError(f"label '{files.label}' of the files: the model learns '{label}'")
