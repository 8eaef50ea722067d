"""Writes the rows of a DataFrame to the topic of a fit: a task of Spark for each partition."""

from __future__ import annotations

import json
from typing import Any, Callable, Dict, Iterable, Iterator, List

from muster.spark import sessions
from muster.text_estimator import rows
from muster.text_estimator.ranges import Range
from muster.text_estimator.reading import Data
from muster.text_estimator.topic import FIRST_PARTITION

_MOST_PARTITIONS = 200  # a broker keeps files for each
_WRITTEN = "partition int, begin long, end long"


def write(df: Any, topic: Any) -> Data:
    """Writes the rows, and then the end record. The topic must be new.

    Each row is once in the ranges that this returns, however often Spark repeats a task. Raises
    ValueError for a DataFrame without rows and for a column that has no JSON.
    """
    written = written_by_tasks(df, topic)
    topic.create(written.getNumPartitions())
    with sessions.naming_unfit_python(df.sparkSession.sparkContext):
        ranges = written.collect()
    return end(topic, ranges, df.schema)


def end(topic: Any, written: Iterable[Any], schema: Any) -> Data:
    """Writes the end record: these ranges, and the schema of the DataFrame."""
    ranges = sorted(Range(*row) for row in written)
    if sum(part.size for part in ranges) == 0:
        raise ValueError("the DataFrame has no rows to train on")
    data = Data(topic, ranges, rows.schema_text(rows.row_schema(schema).jsonValue()))
    topic.write_end(json.dumps({"ranges": ranges, "schema": json.loads(data.schema)}))
    return data


def read_end(topic: Any) -> Data:
    """What a fit that has ended has written to this topic. Raises MusterError if none has."""
    said: Dict[str, Any] = json.loads(topic.read_end())
    ranges = [Range(*numbers) for numbers in said["ranges"]]
    return Data(topic, ranges, rows.schema_text(said["schema"]))


def written_by_tasks(df: Any, topic: Any) -> Any:
    """An RDD of one row for each partition: the range that the attempt which Spark takes has written."""
    # As an RDD, so that an adaptive plan is made once, and is the one whose partitions are counted.
    records = rows.encoded(df).coalesce(_MOST_PARTITIONS)
    return records.mapInArrow(_writer(topic), _WRITTEN).rdd


def _writer(topic: Any) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def write_partition(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow
        from pyspark import TaskContext

        texts = (text.as_py() for batch in batches for text in batch.column(0))
        part = topic.write(FIRST_PARTITION + TaskContext.get().partitionId(), texts)
        numbers: List[int] = list(part)
        types = (pyarrow.int32(), pyarrow.int64(), pyarrow.int64())
        arrays = [pyarrow.array([number], type_) for number, type_ in zip(numbers, types)]
        yield pyarrow.RecordBatch.from_arrays(arrays, names=["partition", "begin", "end"])

    return write_partition
