"""muster.spark.tune: the study of `muster tune`, with trials on a standalone cluster of two executors."""

from __future__ import annotations

import json
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import threading
from typing import Any, Iterator

import pytest

from muster import spark as muster_spark
from muster.binary import MusterError
from muster.spark import MusterModel, manifest
from muster.spark.place import read_stat
from testbed import daemons
from testbed.muster import Muster
from testbed.spark import sessions
from testbed.spark.cluster import SparkCluster
from testbed.studies import checkpoint_bytes, read_trials, write_model
from testbed.waiting import wait

SEARCH: dict[str, Any] = {
    "model": "model.yaml",
    "train": "rows.csv",
    "eval": "rows.csv",
    "flags": ["--epochs", "3"],
    "space": {
        "model.dnn.optimizer.adagrad.learning_rate": {"loguniform": [0.001, 1]},
        "train.batch_size": {"int": [16, 64], "step": 16},
    },
    "metric": {"maximize": "auc"},
    "sampler": "random",
    "budget": {"trials": 6},
}
# Evaluated after each epoch, for a scheduler that stops none of its trials.
LONG = {
    **SEARCH,
    "flags": ["--epochs", "60"],
    "scheduler": {"median": {"startup_trials": 100}},
    "budget": {"trials": 3},
}
# It stops its session once there is a file "stop".
DRIVER = """
import pathlib, sys, threading
from testbed.spark import sessions
from muster import spark as muster_spark
from muster.spark import manifest
from testbed.waiting import wait
session = sessions.session(sys.argv[1], spark__cores__max=2)
wait(lambda: manifest.slots(session.sparkContext) == 2, "two executors")
threading.Thread(target=lambda: wait(pathlib.Path("stop").exists, "stop") and session.stop(), daemon=True).start()
muster_spark.tune(session, "search.yaml", parallel=2)
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    yield from daemons.run(SparkCluster(tmp_path_factory.mktemp("spark"), cores=2))


@pytest.fixture(scope="module")
def session(cluster: SparkCluster) -> Iterator[Any]:
    yield from sessions.running(cluster.master, spark__cores__max=2)  # one on each worker


@pytest.fixture
def spark(session: Any) -> Any:
    """The session, when it has its executors, which a test may have killed."""
    wait(lambda: manifest.slots(session.sparkContext) == 2, "two executors")
    return session


@pytest.fixture
def here(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.chdir(tmp_path)
    write_model(tmp_path)
    write_search(tmp_path, SEARCH)
    return tmp_path


def write_search(folder: pathlib.Path, search: dict[str, Any]) -> None:
    (folder / "search.yaml").write_text(json.dumps(search))


def check_is_local_study(muster: Muster, search: str, study: str, count: int) -> None:
    """The study on Spark has the trials of one that runs here, to the bytes of their models."""
    muster.run("tune", search, "local", "--trials", count)
    there, here = read_trials(pathlib.Path(study)), read_trials(pathlib.Path("local"))
    assert [trial["point"] for trial in there] == [trial["point"] for trial in here]
    assert len(there) == count
    for number, (one, other) in enumerate(zip(there, here)):
        assert [end["state"] for end in one["ends"]] == ["complete"]
        end, folder = other["ends"][0], f"trials/{number:04d}"
        assert one["ends"][0]["value"] == pytest.approx(end["value"], abs=1e-6)
        assert (one["ends"][0]["step"], one["ends"][0]["records"]) == (end["step"], end["records"])
        own = checkpoint_bytes(pathlib.Path(study, folder), end["step"])
        assert own == checkpoint_bytes(pathlib.Path("local", folder), end["step"])
    weights = "best/variables/variables.data-00000-of-00001"
    assert pathlib.Path(study, weights).read_bytes() == pathlib.Path("local", weights).read_bytes()


def test_a_study_is_that_of_muster_tune(muster: Muster, spark: Any, here: pathlib.Path) -> None:
    found = muster_spark.tune(spark, "search.yaml", parallel=2)
    assert (found.trials, found.model_dir) == (6, str(here / f"search-study/trials/{found.best_trial:04d}"))
    check_is_local_study(muster, "search.yaml", "search-study", 6)
    assert (here / "search-study/logs/0005.log").read_text()
    words = shlex.split(found.command or "")
    assert words[:2] == ["muster", "train"] and "--json" not in words
    # The study has ended, for either.
    assert muster_spark.tune(spark, "search.yaml") == found
    (said,) = muster.json("tune", "search.yaml")
    assert (said["best"]["trial"], said["best"]["auc"]) == (found.best_trial, found.best_value)


def test_two_workers_train_each_trial(muster: Muster, spark: Any, here: pathlib.Path) -> None:
    found = muster_spark.tune(spark, "search.yaml", workers=2, trials=2)
    words = shlex.split(found.command or "")
    assert found.trials == 2 and words[-2:] == ["--workers", "2"]
    muster.run(*words[1:])
    assert found.best_trial is not None and found.model_dir is not None
    step = read_trials(here / "search-study")[found.best_trial]["ends"][0]["step"]
    own = checkpoint_bytes(here / found.model_dir, step)
    assert own == checkpoint_bytes(here / "best-model", step)


def test_rows_of_data_frames(muster: Muster, spark: Any, here: pathlib.Path) -> None:
    rows = spark.read.csv(str(here / "rows.csv"), header=True, inferSchema=True)
    with pytest.raises(ValueError, match="needs a folder"):
        muster_spark.tune(spark, {**SEARCH, "train": rows})
    muster_spark.tune(spark, {**SEARCH, "train": rows, "eval": rows}, "study", parallel=2, trials=2)
    # It continues with the rows that it has.
    other = rows.filter("x > 0")
    found = muster_spark.tune(spark, {**SEARCH, "train": other, "eval": other}, "study", trials=3)
    check_is_local_study(muster, "study/search.json", "study", 3)
    assert [trial["ends"][0]["records"] for trial in read_trials(here / "study")] == [1800] * 3
    scored = MusterModel(folder=found.model_dir).transform(rows)
    assert scored.select("prediction").count() == 600


def has_reported(study: pathlib.Path) -> bool:
    return any(trial["reports"] and not trial["ends"] for trial in read_trials(study))


def find_executors(folder: pathlib.Path) -> list[int]:
    """The JVMs of executors of the cluster in this folder."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            is_there = str(folder) in os.readlink(entry / "cwd")
            if is_there and b"CoarseGrainedExecutorBackend" in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def find_place(folder: pathlib.Path) -> list[int]:
    """The Python worker on an executor of the cluster, in which the agent of a trial runs."""
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if b"\0agent\0--swept\0" not in (entry / "cmdline").read_bytes():
                continue
            place = read_stat(int(entry.name))[1]
            if str(folder) in os.readlink(f"/proc/{place}/cwd"):
                return [int(place)]
        except OSError:
            continue
    return []


@pytest.mark.parametrize("find", [find_executors, find_place])
def test_an_executor_that_is_killed_costs_no_trial(
    muster: Muster, cluster: SparkCluster, spark: Any, here: pathlib.Path, find: Any
) -> None:
    write_search(here, LONG)
    killed = []

    def kill() -> None:
        wait(lambda: has_reported(here / "search-study"), "an evaluation")
        killed.append(wait(lambda: find(cluster.folder), "a process to kill")[0])
        os.kill(killed[0], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    muster_spark.tune(spark, "search.yaml", parallel=2)
    killer.join()
    assert killed
    check_is_local_study(muster, "search.yaml", "search-study", 3)
    for trial in read_trials(here / "search-study"):
        batches = -(-600 // trial["point"]["train.batch_size"])
        assert (trial["ends"][0]["step"], trial["ends"][0]["records"]) == (60 * batches, 60 * 600)


@pytest.mark.parametrize("ends", ["killed", "stopped"])
def test_a_driver_that_ends_continues_the_study(
    muster: Muster, cluster: SparkCluster, here: pathlib.Path, ends: str
) -> None:
    write_search(here, LONG)
    command = [sys.executable, "-c", DRIVER, cluster.master]
    environment = {**os.environ, "PYTHONPATH": sessions.PYTHONPATH}
    with open(here / "driver.log", "ab") as log:
        driver = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        try:
            wait(lambda: has_reported(here / "search-study"), "an evaluation")
            if ends == "stopped":
                (here / "stop").touch()
                assert driver.wait(60) == 1
        finally:
            driver.kill()
            driver.wait()
        assert [trial["ends"] for trial in read_trials(here / "search-study")][-1] == []
        (here / "stop").unlink(missing_ok=True)
        subprocess.run(command, env=environment, stdout=log, stderr=log, check=True, timeout=180)
    said = (here / "driver.log").read_text()
    assert ("Spark was stopped during the study: the same call continues it" in said) == (ends == "stopped")
    check_is_local_study(muster, "search.yaml", "search-study", 3)


def test_what_cannot_begin(
    muster: Muster, spark: Any, here: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifest, "_EXECUTORS_SECONDS", 1.0)  # no executor is on its way
    with pytest.raises(ValueError, match=r"a trial takes 3 slots \(workers=2, ps=1\), but .* have 2 slots"):
        muster_spark.tune(spark, "search.yaml", workers=2, ps=1)
    with pytest.raises(ValueError, match="2 trials at a time take 4 slots .* have 2 slots .* fewer: parallel"):
        muster_spark.tune(spark, "search.yaml", workers=2, parallel=2)
    with pytest.raises(MusterError, match="absent.yaml"):
        muster_spark.tune(spark, "absent.yaml")
    rows = spark.read.csv(str(here / "rows.csv"), header=True, inferSchema=True)
    for wrong, why in (
        ({"space": {"no.such": {"uniform": [0, 1]}}}, "unknown key 'no'"),
        ({"eval": rows.limit(0)}, "the DataFrame has no rows"),
    ):
        with pytest.raises((MusterError, ValueError), match=why):
            muster_spark.tune(spark, {**SEARCH, "train": rows, "eval": rows, **wrong}, "study")
        assert not (here / "study").exists()
    (here / "study/rows").mkdir(parents=True)
    for name in ("study/rows/own.csv", "study/search.json"):
        (here / name).write_text("of the user")
    with pytest.raises(ValueError, match="the DataFrame has no rows"):
        muster_spark.tune(spark, {**SEARCH, "train": rows, "eval": rows.limit(0)}, "study")
    assert {path.name for path in (here / "study").rglob("*")} == {"rows", "own.csv", "search.json"}
    said = muster.refuse("tune", "search.yaml", "--on", "spark")
    assert 'call muster.spark.tune(spark, "search.yaml") in its Python program' in said
    assert not (here / "search-study").exists()


def test_a_trial_that_fails_says_why(spark: Any, here: pathlib.Path) -> None:
    rows = (here / "rows.csv").read_text().splitlines()
    (here / "rows.csv").write_text("\n".join([*rows[:300], "many,a,1", *rows[300:]]) + "\n")
    with pytest.raises(MusterError, match="the first [56] trials failed, trial 0 with: .*rows.csv:301: column 'x'"):
        muster_spark.tune(spark, "search.yaml", parallel=2)
