"""Searches on a topic of a real Kafka, which gets more records meanwhile."""

from __future__ import annotations

import pathlib
import shlex
from typing import Any

import pytest

from testbed.kafka.clicks import train, values
from testbed.studies import checkpoint_bytes


@pytest.fixture
def here(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_all_trials_read_the_records_that_the_first_one_found(muster, kafka, topic, local, here) -> None:
    rows = values(local, "jsonl", 0)
    kafka.create(topic)
    kafka.send(topic, rows[:1000])
    (here / "search.yaml").write_text(
        f"model: {local}/model.yaml\ntrain: {kafka.url(topic)}\neval: 10%\n"
        "space: {model.dnn.hidden_units: {choice: [[8], [16], [4]]}}\nmetric: {minimize: loss}\n"
        "sampler: grid\nflags: [--epochs, '2']\n"
    )

    def run(*flags: object) -> list[dict[str, Any]]:
        events: list[dict[str, Any]] = muster.json("tune", "search.yaml", *flags)
        return events

    first, _ = run("--trials", 1)
    kafka.send(topic, rows[1000:1500])
    *others, study = run("--processes")
    trials = [first, *others]
    assert len(trials) == 3 and len({trial["records"] for trial in trials}) == 1
    assert 1700 < trials[0]["records"] < 1900
    muster.run(*shlex.split(study["command"])[1:])
    best = study["best"]
    trial = here / f"search-study/trials/{best['trial']:04d}"
    assert checkpoint_bytes(trial, best["step"]) == checkpoint_bytes(here / "best-model", best["step"])


def test_a_training_without_a_step_reads_the_records_of_its_next_beginning(muster, kafka, topic, local, here) -> None:
    rows = values(local, "csv", 0)
    kafka.create(topic)
    kafka.send(topic, rows[:500])
    command = train(local, here / "m", kafka.url(topic), "--epochs", 1, "--no-shuffle")
    assert "name its cells with --columns" in muster.fail(*command)
    kafka.send(topic, rows[500:1000])
    names = (local / "part-0.csv").read_text().partition("\n")[0]
    trained = muster.event("trained", *command, "--columns", names)
    assert trained["records"]["trained"] == 1000
