"""Jobs on executors of several machines: a standalone cluster on two hosts."""

from __future__ import annotations

import json
import pathlib
import shlex
import subprocess

from muster.binary import find
from testbed.spark.fixtures import spark_on_hosts
from testbed.spark.hosts import SparkOnHosts
from testbed.trainings import SPEC, last_checkpoint, write_rows

__all__ = ["spark_on_hosts"]
DEADLINE = 300.0


def test_jobs_of_all_kinds_run_on_both_hosts(spark_on_hosts: SparkOnHosts, tmp_path: pathlib.Path) -> None:
    (tmp_path / "spec.yaml").write_text(SPEC)
    write_rows(tmp_path / "train.csv", 3000)
    told = spark_on_hosts.run_driver("spark_hosts.py", "encrypted", tmp_path, seconds=DEADLINE)
    assert told[:2] == [{"cluster": "succeeded"}, {"scored": 3000}]
    addresses = sorted(spark_on_hosts.cable.addresses.values())
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

    # The other host's executor was killed, and both tasks have started again.
    assert told[3] == {"survived": "succeeded"}
    again = [path.read_text().split()[1] for path in (tmp_path / "lost").glob("start-worker-?-1")]
    assert len(again) == len(set(again)) == 2

    # A study with a trial on each host: its best model is what one machine makes of it.
    assert told[4]["trials"] == 4
    command = [find(), *shlex.split(told[4]["command"])[1:]]  # it trains into best-model
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=DEADLINE)
    assert last_checkpoint(tmp_path / "best-model") == last_checkpoint(pathlib.Path(told[4]["model_dir"]))


def test_without_encryption_the_error_names_the_settings(spark_on_hosts: SparkOnHosts, tmp_path: pathlib.Path) -> None:
    [told] = spark_on_hosts.run_driver("spark_hosts.py", "clear", tmp_path, seconds=DEADLINE)
    assert "another machine than the driver" in told["error"], told
    assert "spark.network.crypto.enabled" in told["error"]
    assert len(told["error"].splitlines()) == 1
