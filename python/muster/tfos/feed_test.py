"""The feed between a task of Spark and a node, with both in one process."""

from __future__ import annotations

import os
import pathlib
import threading
from typing import Any, Iterator, Sequence

import numpy as np
import pyarrow
import pytest

from muster.spark.places_server import PlacesServer
from muster.spark.reach import machine_id
from muster.tfos import TFManager, TFNode, arrow_batches, feeder
from muster.tfos.feed_server import SOCKET, FeedServer, Hello, ResultQueue
from muster.tfos.feeder import Feed, FeedError
from muster.tfos.link import Link
from muster.tfos.nodes import Nodes, roles


class Cluster:
    """Nodes without processes: their managers and servers."""

    def __init__(self, folder: pathlib.Path, workers: int) -> None:
        self.nodes = Nodes(roles([("worker", workers)]), gang=True)
        self.server = PlacesServer(self.nodes)
        self.link = Link(self.server.reach)
        self.managers = []
        for number in range(workers):
            place = folder / str(number)
            place.mkdir()
            self.managers.append(self.start(f"worker-{number}", place))

    def start(self, task: str, folder: pathlib.Path) -> TFManager.TFManager:
        manager = TFManager.start(b"", ["input", "output"])
        manager.when_terminating(lambda: self.link.ask("terminated", task=task, requested=True))
        self.feeds = FeedServer(str(folder), manager)
        manager.set_queue("output", ResultQueue(self.feeds))
        info = {"addr": os.path.join(str(folder), SOCKET)}
        self.link.ask("register", task=task, info=info, incarnation=1, machine=machine_id())
        return manager

    def feeding(self, name: str = "feed", timeout: float = 10) -> Feed:
        return Feed(self.link, name, self.nodes.restarts(), "input", timeout)

    def train(self, rows: Any, partition: int = 0, **feed: Any) -> None:
        made = self.feeding(**feed)
        hello = Hello(made.name, partition, "input", True)
        assert list(feeder._Feeder(made, partition, hello).run(iter(rows))) == []

    def train_batches(self, batches: Any, partition: int = 0) -> None:
        made = self.feeding()
        hello = Hello(made.name, partition, "input", True)
        assert list(feeder._BatchFeeder(made, partition, hello).run(iter(batches))) == []

    def infer(self, rows: Any, partition: int = 0, **feed: Any) -> list[Any]:
        made = self.feeding(**feed)
        hello = Hello(f"{made.name}-{threading.get_ident()}", partition, "input", False)
        return list(feeder._Feeder(made, partition, hello).run(iter(rows)))


@pytest.fixture
def cluster(tmp_path: pathlib.Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path, 1)
    yield made
    made.server.close()


def background(call: Any, *arguments: Any) -> threading.Thread:
    thread = threading.Thread(target=call, args=arguments, daemon=True)
    thread.start()
    return thread


def test_rows_arrive_once_and_in_order(cluster: Cluster) -> None:
    feed, got = TFNode.DataFeed(cluster.managers[0]), []

    def program() -> None:
        while not feed.should_stop():
            got.extend(feed.next_batch(7))

    thread = background(program)
    cluster.train(range(10_000))
    cluster.train([], partition=1)
    cluster.train([None, "x"], partition=2)
    cluster.managers[0].get_queue("input").put(None)
    thread.join(10)
    assert got == [*range(10_000), None, "x"]


def test_a_program_that_is_slow_holds_the_feed_back(cluster: Cluster) -> None:
    drawn = []

    def rows() -> Iterator[bytes]:
        for number in range(200):
            drawn.append(number)
            yield bytes(100_000)

    thread = background(cluster.train, rows())
    queue = cluster.managers[0].get_queue("input")
    queue.take(1)
    # Blocks that are on their way, the one that waits, and the size of a block is guessed at first.
    assert len(drawn) <= 2 + 16 * (feeder._WINDOW_BLOCKS + 1)
    taken = 1
    while taken < 200:
        taken += len(queue.take(200))
    thread.join(10)
    assert not thread.is_alive() and len(drawn) == 200


def test_an_attempt_that_fails_repeats_nothing(cluster: Cluster) -> None:
    feed, got = TFNode.DataFeed(cluster.managers[0]), []
    thread = background(lambda: got.extend(feed.next_batch(3000)))

    def broken() -> Iterator[int]:
        yield from range(1500)
        raise OSError("the executor is lost")

    with pytest.raises(OSError):
        cluster.train(broken())
    cluster.train(range(3000))
    thread.join(10)
    assert got == list(range(3000))


def test_a_result_for_each_row(cluster: Cluster) -> None:
    feed = TFNode.DataFeed(cluster.managers[0], False)
    sizes = []

    def program() -> None:
        while not feed.should_stop():
            batch = feed.next_batch(30)
            sizes.append(len(batch))
            feed.batch_results([row * row for row in batch])

    background(program)
    assert cluster.infer(range(100)) == [n * n for n in range(100)]
    assert cluster.infer([], partition=1) == []
    assert cluster.infer(range(20), partition=2) == [n * n for n in range(20)]
    assert sum(sizes) == 120
    assert max(sizes) <= 30


def test_too_few_results_are_an_error(cluster: Cluster) -> None:
    feed = TFNode.DataFeed(cluster.managers[0], False)
    background(lambda: feed.batch_results(feed.next_batch(10)[:8]))
    with pytest.raises(FeedError, match="no progress for 1 s .*taken 10 of 10 rows, and given 8 results"):
        cluster.infer(range(10), timeout=1)


def test_too_many_results_are_an_error(cluster: Cluster) -> None:
    feed = TFNode.DataFeed(cluster.managers[0], False)
    thread = background(cluster.infer, range(10))
    feed.next_batch(10)
    with pytest.raises(ValueError, match="got 2 results more than rows were taken"):
        feed.batch_results(range(12))
    thread.join(10)


def test_a_program_that_hangs(cluster: Cluster) -> None:
    with pytest.raises(FeedError, match="Timeout while feeding partition 0: .*worker-0 has taken 0 of 1"):
        cluster.train(range(1000), timeout=1)
    cluster.managers[0].get_queue("input").take(10)
    with pytest.raises(FeedError, match="worker-0 has taken 10 of 1000 rows"):
        cluster.train(range(1000), timeout=1)


def test_an_error_reaches_the_feeder_while_it_feeds(cluster: Cluster) -> None:
    def program() -> None:
        cluster.managers[0].get_queue("input").take(1)
        cluster.feeds.fail("ValueError: no numbers")

    background(program)
    with pytest.raises(FeedError, match="Exception in worker-0:\nValueError: no numbers"):
        cluster.train(range(1_000_000), timeout=60)


def test_a_program_that_has_enough(tmp_path: pathlib.Path) -> None:
    cluster = Cluster(tmp_path, 2)
    feed = TFNode.DataFeed(cluster.managers[0])

    def program() -> None:
        feed.next_batch(10)
        feed.terminate()

    background(program)
    cluster.train(range(100_000))  # the rest is dropped
    assert feed.should_stop()
    assert cluster.nodes.stop_was_requested()
    thread = background(cluster.train, range(5), 1)  # the other node has not had enough
    assert TFNode.DataFeed(cluster.managers[1]).next_batch(5) == list(range(5))
    thread.join(10)
    TFNode.DataFeed(cluster.managers[1]).terminate()
    cluster.train(range(5), partition=2)
    with pytest.raises(FeedError, match="before all rows of partition 3 had results"):
        cluster.infer(range(5), partition=3)
    cluster.server.close()


def test_partitions_are_spread_over_nodes(tmp_path: pathlib.Path) -> None:
    cluster = Cluster(tmp_path, 2)
    threads = [background(cluster.train, [number], number) for number in range(2)]
    rows = [manager.get_queue("input").take(1)[0] for manager in cluster.managers]
    assert sorted(rows) == [0, 1]
    for thread in threads:
        thread.join(10)
    cluster.server.close()


def test_a_feed_of_a_cluster_that_was_started_again(cluster: Cluster, tmp_path: pathlib.Path) -> None:
    feed = cluster.feeding()
    (tmp_path / "again").mkdir()
    cluster.start("worker-0", tmp_path / "again")
    with pytest.raises(FeedError, match="nodes were started again"):
        list(feeder._Feeder(feed, 0, Hello("feed", 0, "input", True)).run(iter([1])))


def test_columns_by_name(cluster: Cluster) -> None:
    feed = TFNode.DataFeed(cluster.managers[0], input_mapping={"b": "y", "a": "x"})
    background(cluster.train, [(1, 2), (3, 4)])
    assert feed.next_batch(2) == {"x": [1, 3], "y": [2, 4]}
    with pytest.raises(ValueError, match="no queue 'other'"):
        TFNode.DataFeed(cluster.managers[0], qname_in="other")


def numbered(numbers: Sequence[int]) -> Any:
    """A batch of columns x, y = 2 x and a text."""
    columns = {"x": list(numbers), "y": [2.0 * n for n in numbers], "text": [f"n{n}" for n in numbers]}
    return pyarrow.record_batch(columns)


def numbers_of(parts: Sequence[Any]) -> list[int]:
    return [number for part in parts for number in part["x"].tolist()]


def test_columns_arrive_once_and_in_order(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow_batches, "BLOCK_BYTES", 4096)
    feed, got = TFNode.DataFeed(cluster.managers[0]), []

    def program() -> None:
        columns = feed.next_columns(70)
        while columns:
            got.append(columns)
            columns = feed.next_columns(70)

    thread = background(program)
    cluster.train_batches([numbered(range(5)), numbered(range(5, 3000))])
    cluster.train_batches([], partition=1)
    cluster.train_batches([numbered(range(3000, 3010))], partition=2)
    cluster.managers[0].get_queue("input").put(None)
    thread.join(10)
    assert [len(part["x"]) for part in got] == [70] * 43  # 3,010 rows
    assert feed.should_stop() and feed.next_columns(70) == {} and not feed.next_arrow(70)
    assert numbers_of(got) == list(range(3010))
    assert all((part["y"] == 2.0 * part["x"]).all() for part in got)
    assert got[-1]["text"].tolist() == [f"n{n}" for n in range(2940, 3010)]


def test_a_short_last_batch_of_columns(cluster: Cluster) -> None:
    feed = TFNode.DataFeed(cluster.managers[0])
    thread = background(cluster.train_batches, [numbered(range(10))])
    assert feed.next_arrow(8).column("x").to_pylist() == list(range(8))
    background(lambda: (thread.join(10), cluster.managers[0].get_queue("input").put(None)))
    assert feed.next_arrow(8).to_pylist() == [{"x": n, "y": 2.0 * n, "text": f"n{n}"} for n in (8, 9)]
    assert feed.should_stop()


def test_a_program_that_is_slow_holds_columns_back(cluster: Cluster) -> None:
    drawn = []

    def batches() -> Iterator[Any]:
        for number in range(50):
            drawn.append(number)
            yield numbered(range(100 * number, 100 * number + 100))

    thread = background(cluster.train_batches, batches())
    feed = TFNode.DataFeed(cluster.managers[0])
    got = [feed.next_columns(1)]
    assert len(drawn) <= 2 + feeder._WINDOW_BLOCKS
    got += [feed.next_columns(4999)]
    thread.join(10)
    assert not thread.is_alive() and numbers_of(got) == list(range(5000))


def test_an_attempt_that_fails_repeats_no_columns(cluster: Cluster) -> None:
    feed, got = TFNode.DataFeed(cluster.managers[0]), []
    thread = background(lambda: got.append(feed.next_columns(3000)))

    def broken() -> Iterator[Any]:
        yield numbered(range(1000))
        yield numbered(range(1000, 1500))
        raise OSError("the executor is lost")

    with pytest.raises(OSError):
        cluster.train_batches(broken())
    cluster.train_batches([numbered(range(700)), numbered(range(700, 3000))])  # other batches, the same rows
    thread.join(10)
    assert numbers_of(got) == list(range(3000))


def test_columns_as_rows(cluster: Cluster) -> None:
    rows, mapped = TFNode.DataFeed(cluster.managers[0]), {"y": "b", "x": "a"}
    thread = background(cluster.train_batches, [numbered(range(7))])
    first = rows.next_batch(3)
    assert first == [(0, 0.0, "n0"), (1, 2.0, "n1"), (2, 4.0, "n2")]
    assert first[2].text == "n2" and first[1]["y"] == 2.0
    named = TFNode.DataFeed(cluster.managers[0], input_mapping=mapped)  # by name, whatever their order
    assert named.next_batch(2) == {"a": [3, 4], "b": [6.0, 8.0]}
    assert named.next_arrow(2).to_pydict() == {"a": [5, 6], "b": [10.0, 12.0]}
    thread.join(10)


def test_rows_have_no_columns(cluster: Cluster) -> None:
    thread = background(cluster.train, range(10))
    with pytest.raises(ValueError, match="give TFCluster.train.. a DataFrame"):
        TFNode.DataFeed(cluster.managers[0]).next_columns(10)
    thread.join(10)


def test_columns_as_arrays() -> None:
    batch = pyarrow.record_batch(
        {
            "int": [1, 2],
            "null": [1, None],
            "bool": [True, False],
            "equal": [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]],
            "ragged": [[1, 2], [3]],
            "empty": pyarrow.array([[], []], pyarrow.list_(pyarrow.float32())),
        }
    )
    both = [arrow_batches.arrays_of(batch), arrow_batches.arrays_of(batch)[1:2]]
    arrays = arrow_batches.joined(both).all()
    assert arrays["int"].dtype == np.int64 and arrays["int"].tolist() == [1, 2, 2]
    assert np.isnan(arrays["null"][1]) and arrays["null"][0] == 1
    assert arrays["bool"].dtype == np.bool_
    assert arrays["equal"].tolist() == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [4.0, 5.0, 6.0]]
    assert [part.tolist() for part in arrays["ragged"]] == [[1, 2], [3], [3]]
    assert arrays["empty"].shape == (3, 0)
    ragged = both[0].column("ragged")
    assert [len(row) for row in arrow_batches._joined([np.zeros((2, 3)), ragged])] == [3, 3, 2, 1]
    assert [len(row) for row in arrow_batches._joined([np.zeros((1, 2)), ragged[:1]])] == [2, 2]
    with pytest.raises(ValueError, match="no column 'other'; it has: int, null"):
        both[0].column("other")
