"""The queues and the state of a node, as `ctx.mgr`. They live in the node's own process."""

from __future__ import annotations

import collections
import queue
import threading
import time
from typing import Any, Callable, Deque, Dict, List, Optional, Sequence

from muster.tfos.arrow_batches import View, rows_of
from muster.tfos.marker import EndFeed

Taken = Callable[[int], None]  # told how many rows were taken


class _Block:
    """Rows, or one marker, in a list; or rows in a record batch of Arrow."""

    def __init__(self, items: Any, taken: Optional[Taken]) -> None:
        self.items, self.taken = items, taken
        self.next = 0
        self._view: Any = None
        self._viewed: Any = items  # the view of the items

    def take(self, count: int, view: View) -> Any:
        if not isinstance(self.items, list) and self._view is not view:
            self._view, self._viewed = view, view(self.items)
        part = self._viewed[self.next : self.next + count]
        self.next += len(part)
        return part

    def is_end(self) -> bool:
        return isinstance(self.items, list) and isinstance(self.items[0], EndFeed)


class FeedQueue:
    """A queue of rows and markers, in blocks. All methods may be called by any thread.

    A None that is put is the end of the feed, and a row that is None is not. A row counts as done once it
    was taken out: task_done() is there for programs that call it.
    """

    def __init__(self) -> None:
        self._change = threading.Condition()
        self._blocks: Deque[_Block] = collections.deque()

    def put(self, item: Any, block: bool = True, timeout: Optional[float] = None) -> None:
        self.put_block([EndFeed() if item is None else item])

    def put_block(self, items: Any, taken: Optional[Taken] = None) -> None:
        """items: a list, or a record batch. taken: called by the thread that takes rows of this block."""
        with self._change:
            self._blocks.append(_Block(items, taken))
            self._change.notify_all()

    def get(self, block: bool = True, timeout: Optional[float] = None) -> Any:
        item = self.take(1, block, timeout)[0]
        return None if isinstance(item, EndFeed) else item

    def take(
        self, count: int, block: bool = True, timeout: Optional[float] = None, view: View = rows_of
    ) -> Any:
        """At least one item, in a list: at most `count` rows, or one marker. Raises queue.Empty.

        view: what was put as a record batch is taken as a slice of its view, which may be no list.
        """
        end = None if timeout is None else time.monotonic() + timeout
        with self._change:
            while not self._blocks:
                left = None if end is None else end - time.monotonic()
                if not block or (left is not None and left <= 0):
                    raise queue.Empty
                self._change.wait(left)
            first = self._blocks[0]
            items = first.take(count, view)
            if first.next == len(first.items):
                self._blocks.popleft()
                self._change.notify_all()
        if first.taken is not None:
            first.taken(len(items))
        return items

    def clear(self) -> None:
        """Drops all rows; markers too, but not the end of the feed."""
        with self._change:
            ends = [block for block in self._blocks if block.is_end()]
            self._blocks = collections.deque(ends)
            self._change.notify_all()

    def empty(self) -> bool:
        return self.qsize() == 0

    def qsize(self) -> int:
        with self._change:
            return sum(len(block.items) - block.next for block in self._blocks)

    def task_done(self) -> None:
        pass

    def join(self) -> None:
        """Waits until all was taken out."""
        with self._change:
            self._change.wait_for(lambda: not self._blocks)


class TFManager:
    """Queues by name, and values by key."""

    def __init__(self, queues: Sequence[str]) -> None:
        self._queues: Dict[str, Any] = {name: FeedQueue() for name in queues}
        self._values: Dict[str, Any] = {"state": "running"}
        self._terminate: List[Callable[[], None]] = []

    def get_queue(self, name: str) -> Any:
        """None if there is no such queue."""
        return self._queues.get(name)

    def set_queue(self, name: str, made: Any) -> None:
        self._queues[name] = made

    def get(self, key: str) -> Any:
        return self._values[key]

    def set(self, key: str, value: Any) -> None:
        self._values[key] = value
        if key == "state" and value == "terminating":
            for call in self._terminate:
                call()

    def when_terminating(self, call: Callable[[], None]) -> None:
        """`call` is called when the program wants no more rows, by the thread that says so."""
        self._terminate.append(call)


def start(authkey: bytes, queues: Sequence[str], mode: str = "local") -> TFManager:
    """A manager of this process. authkey and mode, TensorFlowOnSpark's, have no meaning here."""
    return TFManager(queues)
