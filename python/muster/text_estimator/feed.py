"""The rows of a task as TensorFlowOnSpark feeds them: ctx.mgr with its queue, and ctx.get_data_feed()."""

from __future__ import annotations

import queue
from typing import Any, Dict, Generator, List, Mapping, Optional, Union

from muster.text_estimator.reading import Data

_READ_AT_ONCE = 64
_INPUT = "input"


class Rows:
    """The queue "input": all rows of the task, so many times, and then None."""

    def __init__(self, data: Data, epochs: int) -> None:
        self._rows = _all_rows(data, epochs)
        self._ended = False

    def get(self, block: bool = True, timeout: Optional[float] = None) -> Any:
        """The next row; None after the last one. Raises queue.Empty after that, and when it is closed."""
        if self._ended:
            raise queue.Empty
        for row in self._rows:
            return row
        self._ended = True
        return None

    def task_done(self) -> None:
        """It is known without being told."""

    def close(self) -> None:
        self._rows.close()
        self._ended = True


class Manager:
    """ctx.mgr, for programs that make a TFNode.DataFeed of it."""

    def __init__(self, data: Data, epochs: int) -> None:
        self._input = Rows(data, epochs)
        self._others: Dict[str, queue.Queue[Any]] = {}
        self._values: Dict[str, Any] = {"state": "running"}

    def get_queue(self, name: str) -> Any:
        if name == _INPUT:
            return self._input
        return self._others.setdefault(name, queue.Queue())

    def get(self, key: str) -> Any:
        return self._values.get(key)

    def set(self, key: str, value: Any) -> None:
        self._values[key] = value
        if (key, value) == ("state", "terminating"):
            self._input.close()


class DataFeed:
    """Batches of any size. Rows come as they are or, with an input_mapping, as lists of values by name.

    input_mapping: which columns, and what they are called in the batch.
    """

    def __init__(self, manager: Manager, input_mapping: Optional[Mapping[str, str]]) -> None:
        self._manager = manager
        self._queue = manager.get_queue(_INPUT)
        self._mapping = input_mapping
        self._next: List[Any] = []  # the row after the last batch, if there is one

    def should_stop(self) -> bool:
        """Whether no row is left."""
        if not self._next:
            self._next = self._take(1)
        return not self._next

    def next_batch(self, batch_size: int) -> Union[List[Any], Dict[str, List[Any]]]:
        """The next rows, fewer at the end."""
        rows = self._next + self._take(batch_size - len(self._next))
        self._next = []
        if self._mapping is None:
            return rows
        columns = sorted(self._mapping)
        return {self._mapping[name]: [row[name] for row in rows] for name in columns}

    def terminate(self) -> None:
        """Gives no more rows."""
        self._manager.set("state", "terminating")
        self._next = []

    def _take(self, count: int) -> List[Any]:
        rows: List[Any] = []
        while len(rows) < count:
            try:
                row = self._queue.get()
            except queue.Empty:
                break
            if row is None:
                break
            rows.append(row)
        return rows


def _all_rows(data: Data, epochs: int) -> Generator[Any, None, None]:
    for _ in range(epochs):
        for batch in data.read(_READ_AT_ONCE):
            yield from batch
