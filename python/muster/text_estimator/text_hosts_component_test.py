"""TextEstimator on executors of several machines: a standalone cluster on two hosts, a broker on one of them."""

from __future__ import annotations

import functools
import json
import pathlib
from typing import Iterator

import pytest

from testbed.kafka.fixtures import run_inside
from testbed.spark.fixtures import spark_on_hosts
from testbed.spark.hosts import SparkOnHosts

__all__ = ["spark_on_hosts"]
ROWS = 1001


@pytest.fixture(scope="module")
def brokers(spark_on_hosts: SparkOnHosts, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    cable = spark_on_hosts.cable
    for kafka in run_inside(functools.partial(cable.inside, "a"), tmp_path_factory.mktemp("kafka"), cable.addresses["a"]):
        yield kafka.brokers


def test_tasks_and_trials_read_on_both_hosts(
    spark_on_hosts: SparkOnHosts, brokers: str, tmp_path: pathlib.Path
) -> None:
    normal, distributed = spark_on_hosts.run_driver("text_hosts.py", brokers, tmp_path, seconds=300)
    said = {name: json.loads((tmp_path / name).read_text()) for name in ("trial-0", "trial-1", "worker-0", "worker-1")}
    assert normal == {"Normal": [ROWS, ROWS]}
    assert said["trial-0"]["ids"] == said["trial-1"]["ids"] == list(range(ROWS))
    assert said["trial-0"]["host"] != said["trial-1"]["host"]
    assert distributed == {"TFoS": [len(said["worker-0"]["ids"])]}
    assert sorted(said["worker-0"]["ids"] + said["worker-1"]["ids"]) == list(range(ROWS))
    assert said["worker-0"]["host"] != said["worker-1"]["host"]
