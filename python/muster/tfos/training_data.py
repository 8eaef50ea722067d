"""What TFCluster.train() was called with, and the job of Spark that feeds it."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from muster.tfos.arrow_batches import TEXTS
from muster.tfos.feeder import Feed, FeedError


class TrainingData(NamedTuple):
    """Rows for programs that train."""

    rows: Any  # an RDD or a DataFrame
    timeout: float
    queue: str

    def deliver(self, feed: Feed) -> None:
        """Feeds all rows. Raises FeedError, or what Spark raises where the rows cannot be made."""
        if _is_table(self.rows):
            found = self.rows.mapInArrow(feed.train_batches(), TEXTS).collect()
            failures = [row.text for row in found]
        else:
            failures = self.rows.mapPartitions(feed.train()).collect()
        if failures:
            raise FeedError(failures[0])


def repeat(rows: Any, times: int, sc: Any) -> Any:
    """The RDD or DataFrame so many times over."""
    if _is_table(rows):
        return functools.reduce(lambda made, more: made.union(more), [rows] * times)
    return sc.union([rows] * times)


def _is_table(rows: Any) -> bool:
    return hasattr(rows, "mapInArrow")
