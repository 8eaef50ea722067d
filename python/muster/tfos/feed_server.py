"""A node's side of feeds: partitions of rows arrive, one after the other, and results leave.

A feed is one call of train() or one inference. The other side is muster.tfos.feeder. Messages are
tuples; from the feeder: ("feed", Hello), ("rows", number of the first one, rows), ("batch", number of
its first row, schema, record batch of Arrow), ("end",); from the node: ("wait", rows taken by the program
so far), ("start", rows that earlier attempts have brought), ("taken", rows of the partition taken by the
program), ("results", list), ("terminated",), ("failed", text).
"""

from __future__ import annotations

import collections
import os
import socket
import threading
import time
from typing import Any, Deque, Dict, List, NamedTuple, Optional, Tuple

from muster.tfos import arrow_batches
from muster.tfos.channel import Channel, Closed, listen
from muster.tfos.marker import EndPartition
from muster.tfos.TFManager import FeedQueue, TFManager

SOCKET = "feed.sock"
_LOOK_SECONDS = 0.2
_SEND_SECONDS = 600.0
_HELLO_SECONDS = 10.0
_TELL_ROWS, _TELL_SECONDS = 64, 0.5  # how often a feeder hears of rows that were taken


class Hello(NamedTuple):
    """What a feeder says first. Each attempt of an inference is a feed of its own."""

    feed: str
    partition: int
    queue: str
    train: bool


class _Partition:
    """The rows of a partition that have arrived here, by whichever attempt."""

    def __init__(self) -> None:
        self.arrived = 0
        self.taken = 0
        self.untold = 0  # taken rows that the feeder does not know of
        self.told_at = 0.0
        self.channel: Optional[Channel] = None  # of the attempt that feeds now


class FeedServer:
    """Threads of the node's process. The program's own thread calls only what the queues do."""

    def __init__(self, folder: str, manager: TFManager, name: str = SOCKET) -> None:
        self._manager = manager
        self._turn = threading.Lock()  # of the partition that is fed now
        self._lock = threading.Lock()
        self._partitions: Dict[Tuple[str, int], _Partition] = {}
        self._feeds: Deque[str] = collections.deque(maxlen=8)
        self._taken = 0
        self._terminated = False
        self._error: Optional[str] = None
        self._waiting: Deque[List[Any]] = collections.deque()  # [channel, rows without a result]
        self._channels: List[Channel] = []
        self._listener = listen(folder, name)
        self.address = os.path.join(folder, name)
        manager.when_terminating(self.terminate)
        threading.Thread(target=self._accept, daemon=True).start()

    def terminate(self) -> None:
        """The program takes no more rows."""
        self._terminated = True

    def fail(self, error: str) -> None:
        """The program has failed: feeders are told at once."""
        self._error = error

    def unanswered(self) -> int:
        """Rows that were taken and have no result yet, of an inference."""
        with self._lock:
            return sum(count for _, count in self._waiting)

    def put_results(self, results: List[Any]) -> None:
        """Sends them to those whose rows were taken first. Raises ValueError if there are too many."""
        while results:
            with self._lock:
                if not self._waiting:
                    raise ValueError(
                        f"batch_results() got {len(results)} results more than rows were taken: an "
                        "inference has one result for each row"
                    )
                channel, count = self._waiting[0]
                part, results = results[:count], results[count:]
                self._waiting[0][1] -= len(part)
                if self._waiting[0][1] == 0:
                    self._waiting.popleft()
            try:
                channel.send(("results", part))
            except Closed:
                pass  # its rows are fed again by another attempt

    def _accept(self) -> None:
        while True:
            try:
                peer, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(peer,), daemon=True).start()

    def _serve(self, peer: socket.socket) -> None:
        try:
            channel = Channel(peer, _SEND_SECONDS)
        except PermissionError:
            peer.close()
            return
        try:
            message = channel.receive(_HELLO_SECONDS)
            if message is not None and message[0] == "feed":
                self._serve_partition(channel, Hello(*message[1]))
        except Closed:
            pass  # the feeder has ended; what it has brought stays
        finally:
            channel.close()

    def _serve_partition(self, channel: Channel, hello: Hello) -> None:
        queue = self._manager.get_queue(hello.queue)
        if queue is None:
            channel.send(("failed", f"there is no queue '{hello.queue}' on this node"))
            return
        partition = self._find(hello)
        with self._lock:
            earlier, partition.channel = partition.channel, channel
        if earlier is not None:
            earlier.close()  # an attempt that hangs must not keep its successor waiting
        while not self._turn.acquire(timeout=1.0):
            if self._has_ended(channel):
                return
            channel.send(("wait", self._taken))
        try:
            channel.send(("start", partition.arrived))
            self._receive(channel, hello, partition, queue)
        finally:
            if not hello.train:
                queue.put(EndPartition())
            self._turn.release()

    def _find(self, hello: Hello) -> _Partition:
        with self._lock:
            if hello.feed not in self._feeds:
                if len(self._feeds) == self._feeds.maxlen:
                    old = self._feeds[0]
                    self._partitions = {k: v for k, v in self._partitions.items() if k[0] != old}
                self._feeds.append(hello.feed)
            return self._partitions.setdefault((hello.feed, hello.partition), _Partition())

    def _has_ended(self, channel: Channel) -> bool:
        if self._error is not None:
            channel.send(("failed", self._error))
        elif self._terminated:
            channel.send(("terminated",))
        else:
            return False
        return True

    def _receive(self, channel: Channel, hello: Hello, partition: _Partition, queue: FeedQueue) -> None:
        """Until the feeder closes the channel, which it does when all rows were taken or answered."""
        channel.send(("taken", partition.taken))
        while not self._has_ended(channel):
            message = channel.receive(_LOOK_SECONDS)
            if message is None:
                continue
            if message[0] == "end":
                if not hello.train:
                    queue.put(EndPartition())  # a short batch is not kept back
                continue
            is_batch, first = message[0] == "batch", message[1]
            rows = arrow_batches.load(*message[2:]) if is_batch else message[2]
            rows = rows[partition.arrived - first :]
            partition.arrived += len(rows)
            if len(rows):
                tell_rows = len(rows) if is_batch else _TELL_ROWS
                queue.put_block(rows, self._taker(channel, hello, partition, tell_rows))

    def _taker(self, channel: Channel, hello: Hello, partition: _Partition, tell_rows: int) -> Any:
        def taken(count: int) -> None:
            now = time.monotonic()
            with self._lock:
                self._taken += count
                partition.taken += count
                partition.untold += count
                if not hello.train:
                    self._waiting.append([channel, count])
                tells = (
                    partition.taken == partition.arrived
                    or partition.untold >= tell_rows
                    or now - partition.told_at >= _TELL_SECONDS
                )
                if tells:
                    partition.untold, partition.told_at = 0, now
                listens = partition.channel
            if tells and listens is not None:
                try:
                    listens.send(("taken", partition.taken))
                except Closed:
                    pass

        return taken


class ResultQueue:
    """The queue of results of a node that is fed."""

    def __init__(self, server: FeedServer) -> None:
        self._server = server

    def put(self, item: Any, block: bool = True, timeout: Optional[float] = None) -> None:
        self._server.put_results([item])

    def put_block(self, items: List[Any]) -> None:
        self._server.put_results(items)
