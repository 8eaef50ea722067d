"""What travels with a job to a real YARN: Muster's programs, once for all jobs, and an exported Keras model."""

from __future__ import annotations

import json
import os
import pathlib
from typing import Any

import pytest

from testbed import keras_checks
from testbed.hadoop.yarn_jobs import YarnJobs
from testbed.muster import Muster

BATCH, WORKERS = 40, 2


def listed(jobs: YarnJobs, path: str) -> list[dict[str, Any]]:
    answer = jobs.yarn.hdfs.call("GET", path, "LISTSTATUS", user="tester")
    return json.loads(answer)["FileStatuses"]["FileStatus"]


def run(jobs: YarnJobs, name: str, script: str) -> str:
    return jobs.ok("run", "--on", "yarn", "--memory", "128Mi", "--name", name, "--", "sh", "-c", script)


def test_all_programs_are_beside_muster(jobs: YarnJobs) -> None:
    script = 'ls -R "$(dirname "$(readlink -f .muster/programs/muster)")"; head -c4 "$MUSTER_TENSORFLOW_HDFS"'
    found = run(jobs, "programs", script)
    beside = pathlib.Path(jobs.binary).parent
    for name in ("muster-tensorflow", "muster-parquet"):
        assert (name in found) == (beside / name).exists()
    assert "muster-yarn.jar" in found and "\x7fELF" in found
    assert "libmuster-tensorflow-hdfs.so" in found


def test_they_are_staged_once_and_fetched_once_by_a_node(jobs: YarnJobs) -> None:
    run(jobs, "first", "true")
    before = listed(jobs, "/user/tester/.muster/programs")
    assert [entry["permission"] for entry in before] == ["600"]
    assert len(before) == 1 and before[0]["pathSuffix"].endswith(".tar")
    run(jobs, "second", "true")
    assert listed(jobs, "/user/tester/.muster/programs") == before
    for number in range(jobs.yarn.nodes):
        kept = jobs.yarn.hdfs.folder.glob(f"local-{number}/usercache/*/filecache/*/{before[0]['pathSuffix']}")
        assert len(list(kept)) <= 1, number
    jobs.ok("rm", "first")
    jobs.ok("rm", "second")
    assert listed(jobs, "/user/tester/.muster/programs") == before


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return keras_checks.make_trainings(tmp_path_factory.mktemp("keras"), "adagrad") / "adagrad"


def test_two_workers_train_an_exported_model(jobs: YarnJobs, exported: pathlib.Path, muster: Muster) -> None:
    """The weights are those of two workers of this machine; predict takes the export from the model folder."""
    tensorflow = os.environ["MUSTER_PYTHON_TENSORFLOW"]
    url = f"{jobs.yarn.hdfs.url}/tests/exported"
    jobs.ok("fs", "mkdir", url)
    jobs.ok("fs", "put", exported / "data.tfrecord", url)
    flags = ["--batch-size", BATCH, "--no-shuffle", "--workers", WORKERS, "--tensorflow", tensorflow]
    jobs.ok("train", exported / "export", "--train", f"{url}/data.tfrecord", "--model-dir", f"{url}/model",
            *flags, "--on", "yarn", "--memory", "1Gi", "--job", "exported")  # fmt: skip
    local = jobs.folder / "model"
    jobs.ok("train", exported / "export", "--train", exported / "data.tfrecord", "--model-dir", local, *flags)
    names = [path.name for path in local.glob("model.ckpt-*.data-*")]
    assert names
    for name in names:
        path = f"{url.removeprefix(jobs.yarn.hdfs.url)}/model/{name}"
        assert jobs.yarn.hdfs.call("GET", path, "OPEN", user="tester") == (local / name).read_bytes()
    jobs.ok("predict", f"{url}/model", "--data", f"{url}/data.tfrecord", "--out", f"{url}/scores", "--workers",
            WORKERS, "--tensorflow", tensorflow, "--on", "yarn", "--memory", "1Gi", "--job", "scored")  # fmt: skip
    parts = [e for e in listed(jobs, "/tests/exported/scores") if e["pathSuffix"].startswith("part-")]
    assert len(parts) == WORKERS and all(entry["length"] > 0 for entry in parts)
