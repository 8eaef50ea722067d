"""TextEstimator on files in place of Kafka (test_mode): trials, arguments and errors."""

from __future__ import annotations

import os
import pathlib
import signal
import time
from typing import Any, Callable

import pytest

from muster.binary import MusterError
from muster.text_estimator import TextEstimator
from testbed.spark import sessions
from testbed.spark.fixtures import spark

__all__ = ["spark"]
ROWS = 1000
DEADLINE = 60.0


def count(args: Any = {}, ctx: Any = None, _read_data: Any = None) -> Any:
    """A map_fun: the ids in the order in which they came, and the sizes of the batches."""
    size = args["params"]["fitParam"]["batch_size"]
    batches = [[row["id"] for row in batch] for batch in _read_data(max_records=size)]
    return [one for batch in batches for one in batch], [len(batch) for batch in batches], ctx


@pytest.fixture
def estimator(tmp_path: pathlib.Path) -> Callable[..., TextEstimator]:
    def make(map_fun: Any = count, sets: Any = ({"batch_size": 64},), **kafka: Any) -> TextEstimator:
        where = {"bootstrap_servers": ["127.0.0.1"], "topic": "test", "group_id": "sdl_1",
                 "test_mode": True, "mock_kafka_file": str(tmp_path / "mock"), **kafka}  # fmt: skip
        return TextEstimator(kafkaParam=where, fitParam=list(sets), mapFnParam=map_fun)

    return make


def test_each_set_of_parameters_reads_all_rows(spark: Any, estimator: Any) -> None:
    sets = [{"batch_size": 64}, {"batch_size": 7}, {"batch_size": ROWS}]
    found = estimator(sets=sets).fit(spark.range(0, ROWS, 1, 5)).collect()
    assert [params for params, _ in found] == sets
    for params, (ids, sizes, ctx) in found:
        assert ids == list(range(ROWS))
        assert set(sizes[:-1]) <= {params["batch_size"]} and 0 < sizes[-1] <= params["batch_size"]
        assert ctx is None


def test_workers_that_lack_a_package_are_told_of(
    spark: Any, estimator: Any, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = sessions.python_without_packages(tmp_path)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", python)
    with pytest.raises(MusterError, match=f"run {python}, where this fails: No module named .*PYSPARK_PYTHON="):
        estimator().fit(spark.range(10))


def test_threads_of_a_reader_share_the_rows(spark: Any, estimator: Any) -> None:
    def read(args: Any = {}, ctx: Any = None, _read_data: Any = None) -> Any:
        return [
            [row.id for batch in _read_data(16, consume_threads=threads) for row in batch]
            for threads in (1, 3, 3, 50)
        ]

    ((_, found),) = estimator(read).fit(spark.range(0, 100, 1, 2)).collect()
    assert found[0] == list(range(100))
    assert [sorted(ids) for ids in found] == [list(range(100))] * 4


def test_a_reader_may_stop_early(spark: Any, estimator: Any) -> None:
    def read(args: Any = {}, ctx: Any = None, _read_data: Any = None) -> Any:
        first = [next(_read_data(max_records=10, consume_threads=threads)) for threads in (1, 2)]
        return [len(batch) for batch in first]

    ((_, found),) = estimator(read).fit(spark.range(0, 5000, 1, 3)).collect()
    assert found == [10, 10]


def test_as_many_trials_at_once_as_slots(spark: Any, estimator: Any, tmp_path: pathlib.Path) -> None:
    def meet(args: Any = {}, ctx: Any = None, _read_data: Any = None) -> int:
        """Returns how many trials ran at once at most. The first two wait for each other."""
        params = args["params"]["fitParam"]
        folder, number = pathlib.Path(params["folder"]), params["n"]
        (folder / f"running-{number}").touch()
        most, end = 0, time.monotonic() + DEADLINE
        while most < 2 and number < 2 and time.monotonic() < end:
            most = max(most, len(list(folder.glob("running-*"))))
            time.sleep(0.05)
        time.sleep(0.3)  # more of them would have begun
        most = max(most, len(list(folder.glob("running-*"))))
        (folder / f"running-{number}").rename(folder / f"ended-{number}")
        return most

    sets = [{"folder": str(tmp_path), "n": number} for number in range(4)]
    found = [most for _, most in estimator(meet, sets).fit(spark.range(10)).collect()]
    assert len(found) == 4 and found[:2] == [2, 2] and max(found) == 2  # local[2]


def test_a_trial_that_fails_leaves_the_others(spark: Any, estimator: Any, tmp_path: pathlib.Path) -> None:
    def some(args: Any = {}, ctx: Any = None, _read_data: Any = None) -> int:
        params = args["params"]["fitParam"]
        tries = pathlib.Path(params["folder"], params["name"])
        tries.mkdir(exist_ok=True)
        number = len(list(tries.iterdir()))
        (tries / str(number)).touch()
        if params["name"] == "bad":
            raise RuntimeError("no convergence")
        if params["name"] == "killed" and number == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    sets = [{"folder": str(tmp_path), "name": name} for name in ("bad", "killed", "good")]
    model = estimator(some, sets).fit(spark.range(10))
    assert [trial.state for trial in model.trials] == ["failed", "complete", "complete"]
    assert model.trials[0].cause == "RuntimeError: no convergence"
    assert model.collect() == [(sets[1], 1), (sets[2], 0)]
    assert len(list((tmp_path / "bad").iterdir())) == 3  # local[2,3]

    with pytest.raises(MusterError, match="the only trial has failed; .*: RuntimeError: no convergence"):
        estimator(some, sets[:1]).fit(spark.range(10))


def test_rows_that_were_written_before(spark: Any, estimator: Any, tmp_path: pathlib.Path) -> None:
    model = estimator().fit(spark.range(0, 300, 1, 4))
    assert model.topic.startswith("test_")
    again = estimator(topic=model.topic, reuse_topic=True).fit(spark.range(5))
    assert again.topic == model.topic
    assert again.collect()[0][1][0] == list(range(300))
    with pytest.raises(MusterError, match="no fit has ended with this topic"):
        estimator(topic="other", reuse_topic=True).fit(spark.range(5))



def test_topics_that_are_removed(spark: Any, estimator: Any, tmp_path: pathlib.Path) -> None:
    def fail(args: Any = {}, ctx: Any = None, _read_data: Any = None) -> None:
        raise RuntimeError("no convergence")

    kept = estimator().fit(spark.range(5))
    estimator(delete_topic=True).fit(spark.range(5))
    with pytest.raises(MusterError, match="no convergence"):
        estimator(fail, delete_topic=True).fit(spark.range(5))
    with pytest.raises(ValueError, match="no rows"):
        estimator(delete_topic=True).fit(spark.range(5).filter("id > 5"))
    with pytest.raises(MusterError, match="no convergence"):  # it may be of somebody else
        estimator(fail, topic=kept.topic, reuse_topic=True, delete_topic=True).fit(spark.range(5))
    assert os.listdir(tmp_path / "mock") == [kept.topic]
    estimator(topic=kept.topic, reuse_topic=True, delete_topic=True).fit(spark.range(5))
    assert os.listdir(tmp_path / "mock") == []


def test_arguments_of_fit_and_of_map_fun(spark: Any, estimator: Any) -> None:
    def params(args: Any = {}, ctx: Any = None, _read_data: Any = None) -> Any:
        return args["params"]

    made = estimator(params)
    (_, first), (_, second) = made.fit(spark.range(3), [{"a": 1}, {"a": 2}]).collect()
    assert (first["fitParam"], second["fitParam"]) == ({"a": 1}, {"a": 2})
    assert first["runningMode"] == "Normal" and first["kafkaParam"]["topic"] == "test"
    ((_, third),) = made.fit(spark.range(3), {"a": 3}).collect()
    assert third["fitParam"] == {"a": 3}
    assert made.getFitParam() == [{"batch_size": 64}]
    ((_, fourth),) = made.fit(spark.range(3), {made.fitParam: [{"b": 1}]}).collect()
    assert fourth["fitParam"] == {"b": 1}


def test_what_cannot_be_fitted(spark: Any, estimator: Any, tmp_path: pathlib.Path) -> None:
    rows = spark.range(3)
    for made, why in (
        (TextEstimator(mapFnParam=count), "TextEstimator has no kafkaParam"),
        (TextEstimator(kafkaParam={"topic": "t"}), "TextEstimator has no mapFnParam"),
        (estimator(topic=""), "kafkaParam has no 'topic'"),
        (estimator(test_mode=False, bootstrap_servers=[]), "kafkaParam has no 'bootstrap_servers'"),
        (estimator(servers="a"), "'servers' is not known; the keys are bootstrap_servers, topic"),
        (estimator().setRunningMode("tfos"), "runningMode 'tfos': it is Normal or TFoS"),
        (estimator(sets=[]), "fitParam has no set of parameters"),
    ):
        with pytest.raises(ValueError, match=why):
            made.fit(rows)
    with pytest.raises(ValueError, match="the DataFrame has no rows"):
        estimator().fit(rows.filter("id > 5"))
    with pytest.raises(NotImplementedError, match="a TextModel has what map_fun returned"):
        estimator().fit(rows).transform(rows)
