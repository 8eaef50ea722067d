"""Programs of tf-yarn on a real YARN, by muster.yarn: no other line than their imports is changed."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

from testbed.hadoop.yarn_jobs import YarnJobs
from testbed.tensorflow_jobs import ENVIRONMENT, PROGRAMS

DEADLINE = 500


def run(
    jobs: YarnJobs, repository: pathlib.Path, kind: str, python: str, *more: object
) -> subprocess.CompletedProcess[str]:
    environment = {**jobs.environment, **ENVIRONMENT, "MUSTER_BINARY": jobs.binary,
                   "PYTHONPATH": str(repository / "python")}  # fmt: skip
    return subprocess.run(
        [python, PROGRAMS / "run_on_yarn.py", kind, jobs.folder / "model", *map(str, more)], env=environment,
        cwd=jobs.folder, capture_output=True, text=True, timeout=DEADLINE, check=False,
    )  # fmt: skip


def job(jobs: YarnJobs) -> str:
    (name,) = os.listdir(jobs.home / "jobs")
    return name


def test_an_estimator_with_every_role(jobs: YarnJobs, repository: pathlib.Path) -> None:
    result = run(jobs, repository, "estimator", sys.executable)
    assert result.returncode == 0, result.stdout + result.stderr + jobs.logs()
    name = job(jobs)
    assert name.startswith("estimator-")
    assert "'chief:0'" in result.stdout and "'evaluator:0'" in result.stdout and "'ps:0'" not in result.stdout
    tasks = {task["task"]: task["phase"] for task in jobs.status(name)["tasks"]}
    assert set(tasks) == {"chief-0", "worker-0", "ps-0", "evaluator-0"}
    assert tasks["chief-0"] == tasks["worker-0"] == "succeeded"
    assert list((jobs.folder / "model").glob("model.ckpt-*.index"))
    assert list((jobs.folder / "model").glob("eval*/events.out.*"))
    jobs.wait_until_nothing_runs(name)


def test_keras_with_a_function_of_the_program_from_a_machine_without_tensorflow(
    jobs: YarnJobs, repository: pathlib.Path
) -> None:
    python = jobs.folder / "env" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    subprocess.run(["tar", "czf", "env.tar.gz", "-C", "env", "bin"], cwd=jobs.folder, check=True)
    result = run(jobs, repository, "keras", os.environ["MUSTER_PYTHON_TOOLS"],
                 jobs.folder / "env.tar.gz")  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr + jobs.logs()
    assert "['chief:0', 'worker:0']" in result.stdout
    assert result.stdout.count("hello from the hook") == 2
    assert (jobs.folder / "model" / "model" / "saved_model.pb").exists()
    name = job(jobs)
    assert jobs.status(name)["model_dir"] == str(jobs.folder / "model")
    jobs.wait_until_nothing_runs(name)


def test_a_failure_is_an_exception_with_its_cause(jobs: YarnJobs, repository: pathlib.Path) -> None:
    result = run(jobs, repository, "wrong", sys.executable)
    assert result.returncode == 0, result.stderr
    assert "it failed:" in result.stdout and "make_nothing" in result.stdout, result.stdout
    jobs.wait_until_nothing_runs(job(jobs))
