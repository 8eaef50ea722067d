"""A task of Spark that feeds the rows of its partition into a node: the other side of feed_server."""

from __future__ import annotations

import time
import uuid
from typing import Any, Callable, Iterable, Iterator, List, NamedTuple, Optional

from muster.binary import MusterError
from muster.spark.reach import machine_id
from muster.tfos import arrow_batches
from muster.tfos.channel import Channel, Closed, connect
from muster.tfos.feed_server import Hello
from muster.tfos.link import Link

_BLOCK_BYTES = 1 << 18
_BLOCK_ROWS = 1024
_WINDOW_BLOCKS = 4  # how many blocks may be on their way: the program's queue holds no more
_LOOK_SECONDS = 1.0
_GONE_SECONDS = 120.0  # for the driver to say what has become of a node that has hung up


class FeedError(MusterError):
    """Why the rows of a partition could not be fed."""


class Feed(NamedTuple):
    """One call of train() or inference(); plain data for tasks of Spark."""

    link: Link
    name: str
    restarts: int  # of the cluster before the feed began
    queue: str
    timeout: float  # seconds without progress

    def train(self) -> Callable[[Iterator[Any]], Iterator[str]]:
        """For RDD.mapPartitions. Yields why the rows of a partition could not be fed, or nothing.

        It is no error of Spark's task: another attempt could not mend it, and would fill the log.
        """

        def feed_rows(rows: Iterator[Any]) -> Iterator[str]:
            partition = _partition_id()
            feeder = _Feeder(self, partition, Hello(self.name, partition, self.queue, True))
            return iter(_train(feeder, rows))

        return feed_rows

    def train_batches(self) -> Callable[[Iterator[Any]], Iterator[Any]]:
        """For DataFrame.mapInArrow, with the schema TEXTS of arrow_batches: what train() yields."""

        def feed_batches(batches: Iterator[Any]) -> Iterator[Any]:
            partition = _partition_id()
            feeder = _BatchFeeder(self, partition, Hello(self.name, partition, self.queue, True))
            return arrow_batches.of_texts(_train(feeder, (batch for batch in batches if len(batch))))

        return feed_batches

    def inference(self) -> Callable[[Iterator[Any]], Iterator[Any]]:
        """For RDD.mapPartitions."""

        def feed_rows(rows: Iterator[Any]) -> Iterator[Any]:
            partition = _partition_id()
            attempt = f"{self.name}-{uuid.uuid4().hex}"
            return _Feeder(self, partition, Hello(attempt, partition, self.queue, False)).run(rows)

        return feed_rows


def _train(feeder: _Feeder, rows: Iterable[Any]) -> List[str]:
    try:
        for _ in feeder.run(rows):
            raise FeedError("a program that trains has given results: use inference()")
    except FeedError as error:
        return [str(error)]
    return []


def _partition_id() -> int:
    from pyspark import TaskContext

    return int(TaskContext.get().partitionId())


class _Feeder:
    """Feeds one partition."""

    def __init__(self, feed: Feed, partition: int, hello: Hello) -> None:
        self._feed = feed
        self._partition = partition
        self._hello = hello
        self._task = ""
        self._taken_by_node = -1
        self._skip = 0  # rows that an earlier attempt has brought
        self._sent = 0  # rows, with those
        self._taken = 0
        self._results: List[Any] = []
        self._answered = 0
        self._started = False
        self._terminated = False
        self._progress_at = time.monotonic()

    def run(self, rows: Iterable[Any]) -> Iterator[Any]:
        """Yields results. Ends when all rows were taken by the program, and those of an inference answered."""
        rows = iter(rows)
        first = next(rows, _NOTHING)
        if first is _NOTHING:
            return
        rows = _joined(first, rows)
        while True:
            channel = self._open()
            if channel is None:
                break
            try:
                yield from self._run(channel, rows)
            except Closed as error:
                self._explain(error)
            finally:
                channel.close()
            if self._started or not self._terminated:
                break
            self._terminated = False  # the node had enough before this partition's turn: another one
        self._drop(rows)
        self._feed.link.ask("release", feed=self._hello.feed, partition=self._partition)

    def _open(self) -> Optional[Channel]:
        """None if no node wants rows any more."""
        channel = None
        while channel is None:
            answer = self._feed.link.ask(
                "assign", feed=self._hello.feed, partition=self._partition, machine=machine_id(),
                restarts=self._feed.restarts,
            )  # fmt: skip
            why = answer.get("wait", "")
            if "failed" in answer:
                raise FeedError(f"Exception in the cluster:\n{answer['failed']}")
            if "stale" in answer:
                raise FeedError(f"partition {self._partition}: {answer['stale']}")
            if "terminated" in answer:
                self._terminated = True
                return None
            if "addr" in answer:
                self._task = answer["task"]
                try:
                    channel = connect(answer["addr"], self._feed.timeout)
                    channel.send(("feed", tuple(self._hello)))
                except (OSError, Closed) as error:
                    channel, why = None, f"{self._task} does not listen: {error}"
            if channel is None:
                self._check_timeout(why)
                time.sleep(_LOOK_SECONDS / 2)
        return channel

    def _run(self, channel: Channel, rows: Iterator[Any]) -> Iterator[Any]:
        while not self._started and not self._terminated:
            self._listen(channel, _LOOK_SECONDS)
        if self._terminated:
            return
        window: List[int] = []  # for each block on its way, how many rows were sent with it
        for block in self._blocks(rows):
            self._send(channel, block)
            self._sent += len(block)
            window.append(self._sent)
            self._progress_at = time.monotonic()
            wait = 0.0
            while not self._terminated:
                self._listen(channel, wait)
                yield from self._take_results()
                window = [end for end in window if end > self._taken]
                if len(window) < _WINDOW_BLOCKS:
                    break
                wait = _LOOK_SECONDS
            if self._terminated:
                break
        if not self._terminated:
            channel.send(("end",))
            self._progress_at = time.monotonic()
        while not self._is_finished():
            self._listen(channel, _LOOK_SECONDS)
            yield from self._take_results()

    def _is_finished(self) -> bool:
        if self._terminated:
            return True
        if not self._hello.train:
            return self._answered == self._sent
        return self._taken >= self._sent

    def _blocks(self, rows: Iterator[Any]) -> Iterator[Any]:
        """Rows that no earlier attempt has brought, by blocks."""
        for _ in range(self._skip):
            next(rows, None)
        self._sent = self._skip
        self._block_rows = 16
        block: List[Any] = []
        for row in rows:
            block.append(row)
            if len(block) >= self._block_rows:
                yield block
                block = []
        if block:
            yield block

    def _send(self, channel: Channel, block: Any) -> None:
        size = channel.send(("rows", self._sent, block))
        self._block_rows = max(1, min(_BLOCK_ROWS, _BLOCK_BYTES * len(block) // max(size, 1)))

    def _listen(self, channel: Channel, seconds: float) -> None:
        """Takes all messages that are there; waits so long for the first one."""
        message = channel.receive(seconds)
        if message is None and seconds > 0:
            self._check_timeout(self._describe())
        while message is not None:
            self._hear(message)
            try:
                message = channel.receive(0)
            except Closed:
                return  # the next call says so, after the results that were heard are out

    def _hear(self, message: Any) -> None:
        kind = message[0]
        if kind == "failed":
            raise FeedError(f"Exception in {self._task}:\n{message[1]}")
        if kind == "terminated":
            self._terminated = True
        elif kind == "wait":
            if message[1] == self._taken_by_node:
                self._check_timeout(f"{self._task} takes no rows of the partition before")
                return
            self._taken_by_node = message[1]
        elif kind == "start":
            self._started = True
            self._skip = message[1]
        elif kind == "taken":
            if message[1] == self._taken:
                return
            self._taken = message[1]
        elif kind == "results":
            self._results += message[1]
        self._progress_at = time.monotonic()

    def _take_results(self) -> Iterator[Any]:
        results, self._results = self._results, []
        self._answered += len(results)
        yield from results
        if results:
            self._progress_at = time.monotonic()  # what the results went to may have been slow

    def _describe(self) -> str:
        text = f"{self._task} has taken {self._taken} of {self._sent} rows"
        if not self._hello.train:
            text += f", and given {self._answered} results: an inference has one for each row"
        return text

    def _check_timeout(self, why: str) -> None:
        if time.monotonic() - self._progress_at > self._feed.timeout:
            raise FeedError(
                f"Timeout while feeding partition {self._partition}: no progress for "
                f"{self._feed.timeout:g} s (feed_timeout): {why}"
            )

    def _explain(self, error: Closed) -> None:
        """Returns if the program wants no more rows; otherwise raises what has become of the node."""
        end = time.monotonic() + _GONE_SECONDS
        while time.monotonic() < end:
            state = self._feed.link.ask("state", task=self._task)
            if state["restarts"] != self._feed.restarts:
                raise FeedError(f"partition {self._partition}: {self._task} was lost and started again")
            if state["error"] is not None:
                raise FeedError(f"Exception in {self._task}:\n{state['error']}")
            if state["terminated"]:
                self._terminated = True
                return
            if state["ended"]:
                raise FeedError(f"partition {self._partition}: the cluster has ended")
            time.sleep(_LOOK_SECONDS / 2)
        raise FeedError(f"partition {self._partition}: {self._task} has hung up: {error}")

    def _drop(self, rows: Iterator[Any]) -> None:
        """Reads the rest, as Spark wants it. Raises FeedError where rows need results."""
        if not self._terminated:
            return
        if not self._hello.train:
            raise FeedError(
                f"the program of {self._task or 'each node'} has ended, or called terminate(), before all "
                f"rows of partition {self._partition} had results: {self._describe()}"
            )
        for _ in rows:
            pass


class _BatchFeeder(_Feeder):
    """Feeds a partition that is record batches of Arrow, none of them empty."""

    def _blocks(self, rows: Iterator[Any]) -> Iterator[Any]:
        self._sent = self._skip
        return arrow_batches.blocks_of(rows, self._skip)

    def _send(self, channel: Channel, block: Any) -> None:
        schema, data = arrow_batches.dump(block)
        channel.send(("batch", self._sent, schema), data)


_NOTHING = object()


def _joined(first: Any, rows: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from rows
