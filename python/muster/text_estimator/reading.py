"""What a map_fun calls to read: _read_data(max_records=64, consume_threads=1)."""

from __future__ import annotations

import json
import logging
import queue
import threading
from typing import Any, Generator, List, NamedTuple, Sequence

from muster.text_estimator.ranges import Range, share
from muster.text_estimator.rows import BadRecord, RowDecoder

logger = logging.getLogger("muster")

_WAITING_BATCHES = 4  # of each thread, which then waits
_POLL_SECONDS = 0.2


class Data(NamedTuple):
    """The rows of a fit, or a worker's share of them. Any process of the job may read them."""

    topic: Any  # Topic or MockTopic
    ranges: List[Range]
    schema: str  # of the rows, as Spark has it in JSON
    max_bad_records: int = 0

    def share(self, index: int, count: int) -> Data:
        return self._replace(ranges=share(self.ranges, index, count))

    def read(
        self, max_records: int = 64, consume_threads: int = 1, print_consume_time: bool = False
    ) -> Generator[List[Any], None, None]:
        """Yields lists of max_records rows, the last one of what is left: each row once, from the first.

        It begins anew with each call, ends after the last row, and commits nothing. Rows come in their
        order with one thread; with more, each thread reads a part of them. print_consume_time is taken
        for programs that give it, and does nothing.

        Raises BadRecord, a ValueError, with the place of a record that is no row, unless max_bad_records allows it,
        and MusterError if the records cannot be read.
        """
        if max_records < 1 or consume_threads < 1:
            raise ValueError(
                f"_read_data: max_records is {max_records} and consume_threads {consume_threads}: each is 1 "
                "or more"
            )
        rows = _Rows(self)
        threads = min(consume_threads, sum(part.size for part in self.ranges))
        read = rows.of(self.ranges) if threads < 2 else _read_at_once(rows, self.ranges, threads)
        batch: List[Any] = []
        try:
            for row in read:
                batch.append(row)
                if len(batch) == max_records:
                    yield batch
                    batch = []
            if batch:
                yield batch
        finally:
            read.close()


class _Rows:
    """Decodes the records of one call of _read_data. Threads use it together."""

    def __init__(self, data: Data) -> None:
        from pyspark.sql.types import StructType

        self._data = data
        self._decoder = RowDecoder(StructType.fromJson(json.loads(data.schema)))
        self._lock = threading.Lock()
        self._bad = 0

    def of(self, ranges: Sequence[Range]) -> Generator[Any, None, None]:
        records = self._data.topic.records(ranges)
        try:
            for record in records:
                try:
                    row, wrong = self._decoder.decode(record["record"]), ""
                except BadRecord as error:
                    row, wrong = None, f"{record['where']}: {error}"
                if row is None:
                    self._count_bad(wrong)
                else:
                    yield row
        finally:
            records.close()

    def _count_bad(self, message: str) -> None:
        with self._lock:
            self._bad += 1
            if self._bad > self._data.max_bad_records:
                raise BadRecord(message)
        logger.warning("left out: %s", message)


class _End(NamedTuple):
    """The last that a thread says."""

    error: Any


def _read_at_once(rows: _Rows, ranges: Sequence[Range], threads: int) -> Generator[Any, None, None]:
    """The rows of all parts, each read by a thread of its own, as they come."""
    waiting: queue.Queue[Any] = queue.Queue(_WAITING_BATCHES * threads * 64)
    stopped = threading.Event()

    def put(what: Any) -> bool:
        while not stopped.is_set():
            try:
                waiting.put(what, timeout=_POLL_SECONDS)
                return True
            except queue.Full:
                continue
        return False

    def run(part: Sequence[Range]) -> None:
        read = rows.of(part)
        try:
            for row in read:
                if not put(row):
                    return
            put(_End(None))
        except BaseException as error:  # raised again by the reader
            put(_End(error))
        finally:
            read.close()

    running = [
        threading.Thread(target=run, args=(share(ranges, index, threads),), daemon=True)
        for index in range(threads)
    ]
    for thread in running:
        thread.start()
    left = threads
    try:
        while left > 0:
            row = waiting.get()
            if not isinstance(row, _End):
                yield row
            elif row.error is not None:
                raise row.error
            else:
                left -= 1
    finally:
        stopped.set()
        for thread in running:
            thread.join()
