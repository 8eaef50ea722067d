"""Replicas that do not wait for each other learn as well as one process."""

from __future__ import annotations

import json
import pathlib
import statistics

import pytest

from testbed.jobs import Jobs

SEEDS = range(1, 11)
ASYNCHRONOUS = ("--workers", 2, "--ps", 1, "--strategy", "ps-async")


class Table:
    """An example's model, and records to train and to score it on."""

    def __init__(self, jobs: Jobs, spec: pathlib.Path, epochs: int) -> None:
        self.jobs, self.spec, self.epochs = jobs, spec, epochs

    def convert(self, train_csv: object, test_csv: object) -> None:
        for csv, out in ((train_csv, "train"), (test_csv, "test")):
            self.jobs.ok("records", "from-csv", csv, "--spec", self.spec, "--out", out,
                         "--shards", 4)  # fmt: skip

    def aucs(self, name: str, *flags: object) -> list[float]:
        found = []
        for seed in SEEDS:
            model_dir = f"{name}-{seed}"
            self.jobs.ok("train", self.spec, "--train", "train/part-*", "--model-dir", model_dir,
                         "--batch-size", 512, "--epochs", self.epochs, "--seed", seed, "--quiet",
                         *flags)  # fmt: skip
            said = self.jobs.ok("evaluate", "--model-dir", model_dir, "--data", "test/part-*",
                                "--quiet", "--json")  # fmt: skip
            found.append(json.loads(said.splitlines()[-1])["auc"])
        return found


@pytest.fixture
def adult(jobs: Jobs, repository: pathlib.Path, real_data) -> Table:
    from testbed.tensorflow_peer.spec import split_csv

    train_csv, test_csv = jobs.folder / "train.csv", jobs.folder / "test.csv"
    split_csv(real_data("adult/adult.csv"), train_csv, test_csv)
    table = Table(jobs, repository / "examples/adult/adult.yaml", epochs=20)
    table.convert(train_csv, test_csv)
    return table


@pytest.fixture
def clicks(jobs: Jobs, repository: pathlib.Path) -> Table:
    jobs.ok("sample", "clicks", "--rows", 200_000, "--seed", 1, "--out", "train.csv")
    jobs.ok("sample", "clicks", "--rows", 50_000, "--seed", 2, "--out", "test.csv")
    table = Table(jobs, repository / "examples/clicks/clicks.yaml", epochs=2)
    table.convert("train.csv", "test.csv")
    return table


@pytest.mark.parametrize("name", ["adult", "clicks"])
def test_asynchronous_servers_learn_as_well_over_ten_seeds(
    name: str, request: pytest.FixtureRequest
) -> None:
    table: Table = request.getfixturevalue(name)
    alone, asynchronous = table.aucs("alone"), table.aucs("asynchronous", *ASYNCHRONOUS)
    print(f"alone {alone}\nasynchronous {asynchronous}")
    assert alone != asynchronous, "they did not train by servers"
    assert statistics.mean(asynchronous) == pytest.approx(statistics.mean(alone), abs=0.003)
