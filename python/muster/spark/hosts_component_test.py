"""Jobs on executors of several machines: a standalone cluster on two hosts."""

from __future__ import annotations

import json
import pathlib
import subprocess
from typing import Iterator

import pytest

from muster.binary import find
from testbed import daemons, network
from testbed.spark.hosts import SparkOnHosts
from testbed.trainings import SPEC, last_checkpoint, write_rows

DEADLINE = 300.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkOnHosts]:
    if why := network.available():
        pytest.skip(why)
    with network.Network() as cable:
        yield from daemons.run(SparkOnHosts(tmp_path_factory.mktemp("spark"), cable))


def test_jobs_of_all_kinds_run_on_both_hosts(cluster: SparkOnHosts, tmp_path: pathlib.Path) -> None:
    (tmp_path / "spec.yaml").write_text(SPEC)
    write_rows(tmp_path / "train.csv", 3000)
    told = cluster.run_driver("spark_hosts.py", "encrypted", tmp_path, seconds=DEADLINE)
    assert told[:2] == [{"cluster": "succeeded"}, {"scored": 3000}]
    addresses = sorted(cluster.cable.addresses.values())
    assert sorted(told[2]["hosts"]) == addresses

    # A program's tasks: one on each host, and each knows the other's address.
    seen = [(tmp_path / name).read_text().splitlines() for name in ("worker-0", "worker-1")]
    assert seen[0][1] != seen[1][1]
    for config, _ in seen:
        tasks = json.loads(config)["cluster"]["worker"]
        assert sorted(task.rpartition(":")[0] for task in tasks) == addresses

    # A fit by two executors: the bytes of one machine.
    local = [find(), "train", tmp_path / "spec.yaml", "--train", tmp_path / "rows/part-*", "--workers", "2"]
    subprocess.run([*local, "--model-dir", tmp_path / "local"], check=True, capture_output=True, timeout=DEADLINE)
    assert last_checkpoint(tmp_path / "model") == last_checkpoint(tmp_path / "local")

    # A feed: each row once, to nodes on both hosts.
    rows = [json.loads((tmp_path / f"rows-{index}").read_text()) for index in (0, 1)]
    assert all(rows) and sorted(rows[0] + rows[1]) == list(range(1000))


def test_without_encryption_the_error_names_the_settings(cluster: SparkOnHosts, tmp_path: pathlib.Path) -> None:
    [told] = cluster.run_driver("spark_hosts.py", "clear", tmp_path, seconds=DEADLINE)
    assert "another machine than the driver" in told["error"], told
    assert "spark.network.crypto.enabled" in told["error"]
    assert len(told["error"].splitlines()) == 1
