"""What TFCluster.train() was called with, and the job of Spark that feeds it."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from muster.tfos.feeder import Feed


class TrainingData(NamedTuple):
    """Rows for programs that train."""

    rows: Any  # an RDD or a DataFrame
    timeout: float
    queue: str

    def deliver(self, feed: Feed) -> None:
        """Feeds all rows."""
        if _is_table(self.rows):
            self.rows.mapInArrow(feed.train_batches(), "nothing int").collect()
        else:
            self.rows.foreachPartition(feed.train())


def repeat(rows: Any, times: int, sc: Any) -> Any:
    """The RDD or DataFrame so many times over."""
    if _is_table(rows):
        return functools.reduce(lambda made, more: made.union(more), [rows] * times)
    return sc.union([rows] * times)


def _is_table(rows: Any) -> bool:
    return hasattr(rows, "mapInArrow")
