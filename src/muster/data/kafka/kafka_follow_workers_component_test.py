"""Several workers follow a topic of a real Kafka: the model takes each record once, whichever process is killed."""

from __future__ import annotations

import math
import os
import pathlib
import signal

import pytest

from testbed.held_back import is_held_back
from testbed.kafka.clicks import fill, train, values, weights
from testbed.kafka.followed import (
    FOLLOW, Followed, copy_segments, offsets, segments, wait_for_segments, wait_for_step,
)
from testbed.trainings import last_checkpoint
from testbed.waiting import wait

WORKERS = ("--workers", 2)


@pytest.fixture(autouse=True)
def home(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The jobs of a test are in its folder."""
    monkeypatch.setenv("MUSTER_HOME", str(tmp_path / "home"))


def told(model: pathlib.Path) -> str:
    """What the chiefs of the training into this folder have said."""
    logs = (model.parent / "home" / "jobs").glob(f"{model.name}*/logs/chief-0.log")
    return "".join(log.read_text() for log in logs)


def steps(model: pathlib.Path) -> int:
    """The steps of all segments, in which the larger of two shares counts, by batches of 50."""
    return sum(math.ceil(math.ceil(offsets(segment) / 2) / 50) for segment in segments(model))


def wait_for_end(run: Followed, model: pathlib.Path, records: int) -> None:
    """Until so many records are in segments, and trained."""
    wait(lambda: sum(map(offsets, segments(model))) == records, f"all segments: {run.text()}")
    wait(lambda: f'"step":{steps(model)},' in told(model), f"the last step: {told(model)}")


def find_task(model: pathlib.Path, task: str) -> int:
    """The process of a task of the training into this folder; 0 while it has none."""
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().decode().split("\0")
            variables = (process / "environ").read_bytes().decode()
        except OSError:
            continue
        if "worker" in words[:2] and str(model) in words and f"MUSTER_TASK={task}\0" in variables:
            return int(process.name)
    return 0


def kill_task(run: Followed, model: pathlib.Path, task: str) -> None:
    """Kills it, and waits until it is started again."""
    victim = find_task(model, task)
    assert victim, run.text()
    os.kill(victim, signal.SIGKILL)
    wait(lambda: find_task(model, task) not in (0, victim), f"a new task: {run.text()}")


def stop(run: Followed) -> dict[str, int]:
    """The counts of records."""
    code, said = run.stop()
    assert code != 0, run.text()
    return said["records"]


def test_what_comes_is_trained_once_with_the_bytes_of_a_bounded_training(
    muster, kafka, topic, local, tmp_path, follow
) -> None:
    rows = values(local, "jsonl", 0)
    model = tmp_path / "f"
    kafka.create(topic)
    run = follow("f", kafka.url(topic), "--no-shuffle", "--save-secs", 1, *WORKERS)
    wait(lambda: find_task(model, "worker-0"), f"the worker: {run.text()}")
    kafka.send(topic, rows[:1000])
    wait_for_step(run, model, 10)  # saved while all wait for more
    assert stop(run) == {"trained": 1000, "dropped": 0, "repeated": 0}
    muster.run(*train(local, tmp_path / "k", f"{kafka.url(topic)}?ranges=0:0-1000", "--no-shuffle", "--epochs", 1,
                      *WORKERS))  # fmt: skip
    assert weights(model) == weights(tmp_path / "k")


@pytest.mark.parametrize("victim", ["chief-0", "worker-0"])
def test_a_killed_task_changes_no_byte(kafka, topic, local, tmp_path, follow, victim: str) -> None:
    rows = values(local, "jsonl", 0)
    model, whole = tmp_path / "k", tmp_path / "whole"
    fill(kafka, topic, local, "jsonl")
    flags = (*WORKERS, "--save-steps", 5)
    run = follow("k", kafka.url(topic), *flags, "--job", "k-1")
    wait_for_step(run, model, 15)
    kill_task(run, model, victim)
    wait_for_step(run, model, 120)  # all of the first segment
    kafka.send(topic, rows[:1030], 1)
    wait_for_segments(run, model, 2)
    kill_task(run, model, victim)
    wait_for_step(run, model, 125)
    run.kill()  # and all of it
    wait(lambda: not find_task(model, "chief-0") and not find_task(model, "worker-0"), "the end of its tasks")
    kafka.send(topic, rows[:10], 2)
    run = follow("k", kafka.url(topic), *flags, "--job", "k-2")
    wait_for_end(run, model, 13_040)
    trained = stop(run)
    # Another training with the same segments, which nothing interrupts.
    copy_segments(model, whole)
    run = follow("whole", kafka.url(topic), *flags, "--job", "whole")
    wait_for_end(run, whole, 13_040)
    assert stop(run) == trained == {"trained": 13_040, "dropped": 0, "repeated": 0}
    assert last_checkpoint(model) == last_checkpoint(whole)


def test_it_evaluates_on_a_share_that_it_holds_back_and_exports(muster, kafka, topic, local, tmp_path, follow) -> None:
    rows = values(local, "jsonl", 0)
    model = tmp_path / "m"
    kafka.create(topic)
    kafka.send(topic, rows[:1500])
    flags = (*WORKERS, "--save-secs", 1, "--eval", "20%", "--eval-throttle-secs", 0, "--eval-start-delay-secs", 0,
             "--exporter", "latest", "--follow-group", f"{topic}-lag", "--job", "m")  # fmt: skip
    run = follow("m", kafka.url(topic), *flags)
    wait_for_segments(run, model, 1)
    kafka.send(topic, rows[1500:2510])
    wait_for_segments(run, model, 3)
    kept = [row for offset, row in enumerate(rows[:2510]) if is_held_back(f"{topic}/0", offset, 0.2)]
    wait(lambda: f'"examples":{2510 - len(kept)},' in told(model), f"the training rows: {told(model)}")
    exports = model / "export" / "latest"
    wait(lambda: list(exports.glob("*/saved_model.pb")), f"an export: {run.text()}")
    wait(lambda: kafka.committed(f"{topic}-lag", topic) == 2510, f"what is trained: {run.text()}")
    stop(run)
    (tmp_path / "kept.jsonl").write_bytes(b"\n".join(kept) + b"\n")
    wanted = muster.event("evaluated", "evaluate", model, "--data", tmp_path / "kept.jsonl")
    assert f'"auc":{wanted["auc"]}' in told(model)


def test_fresh_data_begins_anew(muster, kafka, topic, local, tmp_path) -> None:
    kafka.create(topic)
    kafka.send(topic, values(local, "jsonl", 0)[:500])
    command = train(local, tmp_path / "m", kafka.url(topic), *FOLLOW, *WORKERS)
    muster.run(*command, "--max-steps", 4)
    kafka.truncate(topic, 0, 450)
    kafka.send(topic, values(local, "jsonl", 0)[500:650])
    muster.run(*command, "--max-steps", 6, "--fresh-data")
    assert segments(tmp_path / "m")[0][0].partition("ranges=")[2].startswith("0:450-650&")


def test_what_cannot_be_followed_together_is_refused(muster, kafka, topic, local, tmp_path) -> None:
    kafka.create(topic)
    kafka.send(topic, values(local, "jsonl", 0)[:100])
    command = train(local, tmp_path / "m", kafka.url(topic), *FOLLOW)
    fixed = "or in a fixed number of --workers"
    assert fixed in muster.refuse(*command, "--workers", "1:2")
    assert fixed in muster.refuse(*command, "--workers", 2, "--ps", 1)
    assert fixed in muster.refuse(*command, "--evaluator", "--eval", "20%")
    auto = ("--set", "columns.I1={numeric: I1, normalize: auto}")
    assert "columns cannot take numbers from data" in muster.fail(*command, *WORKERS, *auto)
