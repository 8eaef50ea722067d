"""What run_on_yarn() makes of its arguments; that it runs, src/muster/launch/yarn has as tests."""

from __future__ import annotations

import json
import pathlib
import stat
import subprocess
import sys
from typing import Any

import pytest

from muster import yarn
from muster.yarn import NodeLabel, TaskSpec
from muster.yarn.topologies import parse_memory


def experiment() -> None:
    pass


@pytest.fixture
def program(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A muster that writes down what it is asked for; returns the folder with that."""
    path = tmp_path / "muster"
    path.write_text(
        '#!/bin/sh\necho "$@" > $0.words\ncp "$2" $0.job\n'
        'for word in "$@"; do case "$word" in *#muster-packages.zip) cp "${word%#*}" $0.zip;; esac; done\n'
        "echo 'worker-0 | muster.yarn: worker-0 took 2.5 s'\necho 'chief-0 | muster.yarn: chief-0 took 1.5 s'\n"
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("MUSTER_BINARY", str(path))
    return tmp_path


def test_arguments_become_a_job(program: pathlib.Path) -> None:
    specs = {"chief": TaskSpec("2 GiB", 4, label=NodeLabel.GPU), "ps": TaskSpec(512, 1, 2, label=NodeLabel.GPU),
             "worker": TaskSpec("1 GB", 2, 3, label=NodeLabel.GPU), "tensorboard": TaskSpec(1, 1, tb_model_dir="m")}  # fmt: skip
    (program / "folder").mkdir()
    (program / "folder" / "a.py").touch()
    metrics = yarn.run_on_yarn(
        experiment, specs, files={"a": str(program / "folder"), "b.txt": __file__}, env={"A": "b"},
        queue="q", nb_retries=5, name="My Job!", pyenv_zip_path="env.zip",
    )  # fmt: skip
    assert metrics.total_training_duration is not None
    assert metrics.total_training_duration.total_seconds() == 2.5
    assert metrics.total_eval_duration is None
    words = (program / "muster.words").read_text()
    for flag in ("--on yarn", "--queue q", "--node-label gpu", "--archive env.zip#pyenv", "--model-dir m",
                 "#experiment.pickle", "#muster-packages.zip", ".zip#a ", f"--file {__file__}#b.txt"):  # fmt: skip
        assert flag in words, (flag, words)
    job = json.loads((program / "muster.job").read_text())
    assert job["metadata"]["name"].startswith("my-job-")
    assert json.loads(job["metadata"]["annotations"]["muster/restartBudget"]) == {"perTask": 5}
    replicas = job["spec"]["tfReplicaSpecs"]
    assert {name: replica["replicas"] for name, replica in replicas.items()} == {"Chief": 1, "PS": 2, "Worker": 3}
    container = replicas["Worker"]["template"]["spec"]["containers"][0]
    assert container["resources"]["limits"] == {"memory": "954Mi", "cpu": 2}
    assert container["command"] == ["pyenv/bin/python", "-m", "muster.yarn.task", "experiment.pickle"]
    assert {"name": "A", "value": "b"} in container["env"]


def test_tasks_get_the_package(program: pathlib.Path) -> None:
    yarn.run_on_yarn(experiment)
    done = subprocess.run(
        [sys.executable, "-S", "-c", "import muster.yarn.task; print(muster.yarn.task.__file__)"],
        env={"PYTHONPATH": str(program / "muster.zip")}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "muster.zip/muster/yarn/task.py" in done.stdout, done.stderr


def test_memory() -> None:
    assert [parse_memory(m) for m in (2048, "2 GiB", "1.5GiB", "500 MiB", "1 MB")] == [2048, 2048, 1536, 500, 1]
    with pytest.raises(ValueError, match="no size"):
        parse_memory("two")


@pytest.mark.parametrize(
    "specs, said",
    [
        ({"worker": TaskSpec(1, 1)}, "exactly one chief"),
        ({"chief": TaskSpec(1, 1, 2)}, "exactly one chief"),
        ({"chief": TaskSpec(1, 1), "master": TaskSpec(1, 1)}, "has master; known"),
        ({"chief": TaskSpec(1, 1), "evaluator": TaskSpec(1, 1, 2)}, "one evaluator"),
        ({"chief": TaskSpec(1, 1), "worker": TaskSpec(1, 1, label=NodeLabel.GPU)}, "nodes of one label"),
    ],
)
def test_tasks_that_cannot_be(specs: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        yarn.run_on_yarn(experiment, specs)


def test_arguments_that_cannot_be(program: pathlib.Path, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ValueError, match="more instances"):
        TaskSpec(1, 1, nb_proc_per_worker=2)
    with pytest.raises(TypeError, match="'pyenv'"):
        yarn.run_on_yarn(experiment, pyenv="env.zip")
    with pytest.raises(ValueError, match="no path below"):
        yarn.run_on_yarn(experiment, files={"/etc/a": __file__})
    yarn.run_on_yarn(experiment, acls="all")
    assert "acls is not used" in caplog.text


def test_a_job_that_fails_raises(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "muster"
    path.write_text("#!/bin/sh\necho 'muster: chief-0 failed (exit code 3)' >&2\nexit 1\n")
    path.chmod(0o755)
    monkeypatch.setenv("MUSTER_BINARY", str(path))
    with pytest.raises(yarn.RunFailed, match="exit code 3"):
        yarn.run_on_yarn(experiment)
