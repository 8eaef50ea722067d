"""run_on_yarn: an experiment becomes a job of `muster run --on yarn`."""

from __future__ import annotations

import contextlib
import datetime
import importlib
import json
import logging
import os
import pathlib
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
import uuid
import zipfile
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Union

import muster as package
from muster import binary
from muster.yarn import topologies
from muster.yarn.topologies import ContainerKey, NodeLabel, TaskSpec

logger = logging.getLogger("muster")

_ENVIRONMENT = "pyenv"  # its name in a task's folder
_PACKAGES = "muster-packages.zip"
_FUNCTION = "experiment.pickle"
_TOOK = re.compile(r"muster\.yarn: (\w+)-([0-9]+) took ([0-9.]+) s")
_LAST_LINES = 20
# Arguments of tf-yarn that are of Skein's way to YARN.
_UNUSED = ("skein_client", "acls", "file_systems", "eval_monitor_log_thresholds", "cuda_runtime_hdfs_path")

Duration = Optional[datetime.timedelta]


class RunFailed(binary.MusterError):
    """Raised when the job has failed, with what `muster run` said of it."""


class Metrics(NamedTuple):
    """How long the tasks' programs ran that ended by themselves."""

    total_training_duration: Duration
    total_eval_duration: Duration
    container_duration: Dict[ContainerKey, Duration]
    train_eval_time_per_node: Dict[ContainerKey, Duration]


def get_safe_experiment_fn(full_fn_name: str, *args: Any) -> Callable[[], Any]:
    """An experiment function that each task imports by its name, with its arguments."""
    return _Imported(full_fn_name, args)


class _Imported:
    def __init__(self, name: str, arguments: Any):
        self.name, self.arguments = name, arguments

    def __call__(self) -> Any:
        module, _, function = self.name.rpartition(".")
        return getattr(importlib.import_module(module), function)(*self.arguments)


def _pickle(function: Any) -> bytes:
    try:
        cloudpickle = importlib.import_module("cloudpickle")
    except ImportError:
        cloudpickle = None
    if cloudpickle is not None:
        return bytes(cloudpickle.dumps(function))
    if getattr(function, "__module__", "") == "__main__":
        raise ValueError(
            "an experiment function of the program itself needs cloudpickle (pip install cloudpickle); or "
            "put it into a module that `files` names, or give get_safe_experiment_fn('module.function')"
        )
    return pickle.dumps(function)


def _zip_packages(path: pathlib.Path) -> None:
    """Packs this package, and cloudpickle if there is one, so that no task's Python needs them."""
    folders = [pathlib.Path(package.__file__).parent]
    with contextlib.suppress(ImportError):
        folders.append(pathlib.Path(importlib.import_module("cloudpickle").__file__ or "").parent)
    with zipfile.ZipFile(path, "w") as archive:
        for folder in folders:
            for file in sorted(folder.rglob("*.py")):
                if not file.name.endswith("_test.py"):
                    archive.write(file, file.relative_to(folder.parent))


def _stage_files(files: Mapping[str, str], folder: pathlib.Path) -> List[str]:
    """The flags that give the tasks these files and folders, which are packed below `folder`."""
    flags: List[str] = []
    for number, (target, source) in enumerate(files.items()):
        if os.path.isabs(target):
            raise ValueError(f"files: {target!r} is no path below a task's folder")
        if os.path.isdir(source):
            packed = shutil.make_archive(str(folder / f"files-{number}"), "zip", source)
            flags += ["--archive", f"{packed}#{target}"]
        else:
            flags += ["--file", f"{os.path.abspath(source)}#{target}"]
    return flags


def _stage_python(pyenv_zip_path: Any, label: NodeLabel) -> List[str]:
    """The flag that gives the tasks their Python, and that Python's path there."""
    path = pyenv_zip_path[label] if isinstance(pyenv_zip_path, dict) else pyenv_zip_path
    if path is None:
        return [sys.executable]
    if str(path).endswith(".pex"):
        return ["--file", f"{path}#{_ENVIRONMENT}.pex", f"./{_ENVIRONMENT}.pex"]
    return ["--archive", f"{path}#{_ENVIRONMENT}", f"{_ENVIRONMENT}/bin/python"]


def make_job(
    name: str,
    task_specs: Mapping[str, TaskSpec],
    command: List[str],
    environment: Mapping[str, str],
    restarts: int,
) -> Dict[str, Any]:
    """The TFJob of the tasks."""
    replicas = {}
    for kind, spec in task_specs.items():
        if kind == "tensorboard" or spec.instances == 0:
            continue
        container = {
            "name": "tensorflow",
            "image": "none",
            "command": command,
            "env": [{"name": key, "value": value} for key, value in environment.items()],
            "resources": {"limits": {"memory": f"{spec.memory}Mi", "cpu": spec.vcores}},
        }
        replicas[kind.capitalize() if kind != "ps" else "PS"] = {
            "replicas": spec.instances,
            "restartPolicy": "OnFailure",
            "template": {"spec": {"containers": [container]}},
        }
    annotations = {"muster/restartBudget": json.dumps({"perTask": restarts})}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"tfReplicaSpecs": replicas},
    }


def _get_metrics(took: Mapping[ContainerKey, float]) -> Metrics:
    durations: Dict[ContainerKey, Duration] = {k: datetime.timedelta(seconds=s) for k, s in took.items()}

    def longest(kinds: List[str]) -> Duration:
        of_kinds = [seconds for key, seconds in took.items() if key.type in kinds]
        return datetime.timedelta(seconds=max(of_kinds)) if of_kinds else None

    return Metrics(longest(["chief", "worker"]), longest(["evaluator"]), durations, dict(durations))


def _follow(command: List[str], name: str) -> Metrics:
    """Shows what the tasks write until the job has ended."""
    took: Dict[ContainerKey, float] = {}
    said: List[str] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                print(line, end="", flush=True)
                if found := _TOOK.search(line):
                    took[ContainerKey(found[1], int(found[2]))] = float(found[3])
                if line.startswith("muster: "):
                    said = [*said[-_LAST_LINES:], line.strip()]
        except BaseException:
            process.kill()
            subprocess.run([command[0], "stop", name], check=False)
            raise
    if process.returncode != 0:
        raise RunFailed("\n".join(said) or f"muster run ended with code {process.returncode}")
    return _get_metrics(took)


def run_on_yarn(
    experiment_fn: Callable[[], Any],
    task_specs: Optional[Dict[str, TaskSpec]] = None,
    *,
    pyenv_zip_path: Union[str, Dict[NodeLabel, str], None] = None,
    files: Optional[Dict[str, str]] = None,
    env: Optional[Dict[str, str]] = None,
    queue: Optional[str] = None,
    nb_retries: int = 3,
    custom_task_module: Optional[str] = None,
    name: str = "RunOnYarn",
    pre_script_hook: Optional[str] = None,
    **others: Any,
) -> Metrics:
    """Runs the experiment that the function returns in each task, and returns once it has ended.

    Args:
      experiment_fn: Without arguments; returns an Experiment or a KerasExperiment.
      task_specs: By "chief", "worker", "ps" and "evaluator"; "tensorboard" is not started, since
        `muster tensorboard JOB` shows the model.
      pyenv_zip_path: An archive of a Python environment, or a pex file; else the path of this Python, which
        all nodes must have.
      files: What each task has in its folder, which is in PYTHONPATH, by its name there.
      env: More of the tasks' environment.
      queue: YARN's queue.
      nb_retries: How often a task is started again within an hour.
      custom_task_module: A module that each task runs instead, with the file of the pickled function as
        its argument.
      name: What the job's name begins with.
      pre_script_hook: Commands of a shell before each task.

    Raises:
      RunFailed: The job has failed.
      ValueError: An argument cannot be so.
    """
    unknown = sorted(set(others) - set(_UNUSED))
    if unknown:
        raise TypeError(f"run_on_yarn() got an unexpected argument {unknown[0]!r}")
    for unused in sorted(key for key, value in others.items() if value is not None):
        logger.warning("run_on_yarn: %s is not used", unused)
    specs = topologies.single_server_topology() if task_specs is None else task_specs
    topologies.check(specs)
    job_name = f"{re.sub('[^a-z0-9]+', '-', name.lower()).strip('-')[:32] or 'job'}-{uuid.uuid4().hex[:8]}"
    with tempfile.TemporaryDirectory() as text:
        folder = pathlib.Path(text)
        (folder / _FUNCTION).write_bytes(_pickle(experiment_fn))
        _zip_packages(folder / _PACKAGES)
        *flags, python = _stage_python(pyenv_zip_path, specs["chief"].label)
        command = [python, "-m", custom_task_module or "muster.yarn.task", _FUNCTION]
        if pre_script_hook:
            command = ["bash", "-c", f'{pre_script_hook}\nexec "$0" "$@"', *command]
        environment = dict(env or {})
        environment["PYTHONPATH"] = ":".join(filter(None, [".", _PACKAGES, environment.get("PYTHONPATH")]))
        job = make_job(job_name, specs, command, environment, nb_retries)
        (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")
        for staged in (_FUNCTION, _PACKAGES):
            flags += ["--file", f"{folder / staged}#{staged}"]
        flags += _stage_files(files or {}, folder)
        if queue is not None:
            flags += ["--queue", queue]
        if specs["chief"].label != NodeLabel.CPU:
            flags += ["--node-label", specs["chief"].label.value]
        if "tensorboard" in specs and specs["tensorboard"].tb_model_dir:
            flags += ["--model-dir", str(specs["tensorboard"].tb_model_dir)]
            logger.info("muster tensorboard %s shows the model", job_name)
        return _follow([binary.find(), "run", str(folder / "job.json"), "--on", "yarn", *flags], job_name)
