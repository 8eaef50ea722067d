"""Turns the program's output into what tf.estimator returns: rows of predictions, metrics."""

from __future__ import annotations

import importlib.util
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Sequence, Union

from muster.binary import Event
from muster.estimator.heads import Head

_WHOLE = {"class_ids": "int64", "all_class_ids": "int32"}
_WORDS = ("classes", "all_classes")


class RowReader:
    """Turns the program's objects into predictions: numpy arrays if numpy is installed."""

    def __init__(self, predict_keys: Union[None, str, Sequence[str]], head: Head) -> None:
        self._keys = [predict_keys] if isinstance(predict_keys, str) else predict_keys
        self._numpy: Any = None
        if importlib.util.find_spec("numpy") is not None:
            import numpy

            self._numpy = numpy
        self._constant: Dict[str, Any] = {}
        classes = head.classes()
        if head.multi_label:
            self._constant = {"classes": self._array("classes", classes)}
        elif classes is not None:
            self._constant = {
                "all_class_ids": self._array("all_class_ids", list(range(len(classes)))),
                "all_classes": self._array("all_classes", classes),
            }

    def single(self, row: Mapping[str, Any], row_key: str) -> Dict[str, Any]:
        """Returns one prediction without `row_key`, a key that `muster` adds and TensorFlow does
        not have."""
        out = {name: self._array(name, value) for name, value in row.items() if name != row_key}
        for name, value in self._constant.items():
            out.setdefault(name, value)
        return self._picked(out)

    def stacked(self, rows: Sequence[Mapping[str, Any]]) -> Dict[str, Any]:
        """Returns a batch of predictions as one dict."""
        out: Dict[str, Any] = {}
        for name in rows[0]:
            values = [row[name] for row in rows]
            out[name] = values if self._numpy is None else self._numpy.stack(values)
        return out

    def _picked(self, row: Dict[str, Any]) -> Dict[str, Any]:
        if not self._keys:
            return row
        picked = {name: value for name, value in row.items() if name in self._keys}
        if not picked:
            raise ValueError(
                f"Expected to run at least one output from {list(row)}, provided {self._keys}."
            )
        return picked

    def _array(self, name: str, value: Any) -> Any:
        values = value if isinstance(value, list) else [value]
        if name in _WORDS:
            values = [word.encode() for word in values]
        if self._numpy is None:
            return values
        if name in _WORDS:
            return self._numpy.array(values, dtype=object)
        return self._numpy.array(values, dtype=_WHOLE.get(name, "float32"))


def by_batch(
    rows: Iterable[Dict[str, Any]], sizes: Iterator[int]
) -> Iterator[List[Dict[str, Any]]]:
    """Groups rows by the sizes of the batches in which they were sent."""
    held: List[Dict[str, Any]] = []
    wanted = 0
    for row in rows:
        if not held:
            wanted = next(sizes)
        held.append(row)
        if len(held) == wanted:
            yield held
            held = []
    if held:
        yield held


def metrics_of(events: Sequence[Event]) -> Dict[str, Any]:
    """Returns the metrics of the last evaluation among the program's events, {} if there is none;
    NaN for those that it could not compute."""
    evaluations = [event for event in events if event.get("event") == "evaluated"]
    if not evaluations:
        return {}
    found = evaluations[-1]
    metrics = {
        name: float("nan") if value is None else value
        for name, value in found.items()
        if name not in ("event", "checkpoint", "bad_records", "trained_records")
    }
    metrics["global_step"] = int(metrics["global_step"])
    return metrics


def always(size: int) -> Iterator[int]:
    while True:
        yield size
