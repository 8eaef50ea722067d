"""The programs of the TensorFlowOnSpark article, as they were printed, on a real YARN: TensorFlow 2.4 in a
Python environment that travels with the job; data, model and TensorBoard's events on HDFS.

They stand outside of this repository (MUSTER_SEEDS, ../shared/seeds beside it unless told) and are not edited.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
from typing import Callable

import pytest

from testbed.hadoop.yarn_jobs import YarnJobs
from testbed.tensorflow_jobs import ENVIRONMENT

WORKERS = 2


def pack_python(jobs: YarnJobs, python: str) -> None:
    """An archive whose bin/python is that Python: env.tar.gz."""
    program = jobs.folder / "env" / "bin" / "python"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec {python} "$@"\n')
    program.chmod(0o755)
    subprocess.run(["tar", "czf", "env.tar.gz", "-C", "env", "bin"], cwd=jobs.folder, check=True)


def listed(jobs: YarnJobs, url: str) -> list[str]:
    lines = jobs.ok("fs", "ls", "--json", "-r", url).splitlines()
    return [json.loads(line)["path"] for line in lines]


def test_the_training_on_yarn(
    jobs: YarnJobs, repository: pathlib.Path, real_data: Callable[[str], pathlib.Path]
) -> None:
    python = os.environ.get("MUSTER_PYTHON_TENSORFLOW_2_4")
    if not python:
        pytest.skip("needs Python 3.8 (MUSTER_PYTHON_TENSORFLOW_2_4)")
    seeds = pathlib.Path(os.environ.get("MUSTER_SEEDS") or repository.parent / "shared/seeds")
    source = seeds / "wide_deep_spark/src"
    if not source.is_dir():
        pytest.skip("needs the articles' programs (MUSTER_SEEDS)")
    jobs.environment |= ENVIRONMENT
    pack_python(jobs, python)
    subprocess.run(["tar", "czf", jobs.folder / "src.tar.gz", "-C", source, "."], check=True)
    subprocess.run(["tar", "czf", jobs.folder / "stubs.tar.gz", "-C", repository / "testbed/article_stubs", "."],
                   check=True)  # fmt: skip
    url = f"{jobs.yarn.hdfs.url}/tests/article-{jobs.folder.name}"
    jobs.ok("records", "from-csv", real_data("titanic/train.csv"), "--spec",
            repository / "examples/titanic/titanic.yaml", "--out", f"{url}/train", "--shards", 5)  # fmt: skip
    result = jobs.call(
        "run", "--on", "yarn", "--memory", "2Gi", "--name", "article", "--chief", "--workers", WORKERS - 1,
        "--archive", "env.tar.gz#Python", "--archive", "src.tar.gz#src", "--archive", "stubs.tar.gz#stubs",
        "--env", "PYTHONPATH=stubs", "--",
        "Python/bin/python", "src/train.py", "--batch_size", 32, "--shuffle_size", 32,
        "--worker_size", WORKERS, "--epochs", 2, "--train_dir", f"{url}/train", "--model_dir", f"{url}/model",
        "--tensorboard_dir", f"{url}/tensorboard",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr + jobs.logs()
    assert "model version=" in result.stdout
    assert any(path.endswith("/saved_model.pb") for path in listed(jobs, f"{url}/model"))
    assert any("events.out.tfevents" in path for path in listed(jobs, f"{url}/tensorboard"))
    jobs.wait_until_nothing_runs("article")
