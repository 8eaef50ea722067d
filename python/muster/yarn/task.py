"""The program of each task: python -m muster.yarn.task FILE, which has the experiment function."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import pickle
import sys
import time
from typing import Any, ContextManager, Dict, List

from muster.yarn.experiment import Experiment, KerasExperiment

_REPLICAS = ("chief", "worker", "master")
_LOOK_SECONDS = 5.0
_MODEL_FILES = (".keras", ".h5")


def _tensorflow() -> Any:
    return importlib.import_module("tensorflow")


def _has_strategy() -> bool:
    """Whether replicas train by all-reduce: there are several, and no parameter servers."""
    cluster = json.loads(os.environ.get("TF_CONFIG", "{}")).get("cluster", {})
    return "ps" not in cluster and sum(len(cluster.get(name, ())) for name in _REPLICAS) > 1


def _task_type() -> str:
    return os.environ.get("MUSTER_TASK", "chief-0").rpartition("-")[0]


def _strategy_scope() -> ContextManager[Any]:
    """In which a Keras model is made: replicas train together."""
    if not _has_strategy() or _task_type() not in _REPLICAS:
        return contextlib.nullcontext()
    scope: ContextManager[Any] = _tensorflow().distribute.MultiWorkerMirroredStrategy().scope()
    return scope


def _fit(experiment: KerasExperiment) -> None:
    backup = _tensorflow().keras.callbacks.BackupAndRestore
    parameters: Dict[str, Any] = dict(experiment.train_params)
    callbacks: List[Any] = list(parameters.get("callbacks") or [])
    if not any(isinstance(callback, backup) for callback in callbacks):
        # A task that is started again continues.
        callbacks.append(backup(f"{experiment.model_dir}/backup"))
    parameters["callbacks"] = callbacks
    if experiment.input_data_fn is not None:
        parameters["x"] = experiment.input_data_fn()
    if experiment.target_data_fn is not None:
        parameters["y"] = experiment.target_data_fn()
    experiment.model.fit(**parameters)


def _list_models(folder: str) -> List[str]:
    """The saved models in a folder."""
    gfile = _tensorflow().io.gfile
    if not gfile.exists(folder):
        return []
    found = []
    for name in sorted(gfile.listdir(folder)):
        path = f"{folder}/{name.rstrip('/')}"
        if path.endswith(_MODEL_FILES) or gfile.exists(f"{path}/saved_model.pb"):
            found.append(path)
    return found


def _evaluate(experiment: KerasExperiment) -> None:
    """Evaluates each model that is saved, until Muster ends it after the training."""
    seen: Dict[str, Any] = {}
    while True:
        for path in _list_models(experiment.model_dir):
            version = _tensorflow().io.gfile.stat(path).mtime_nsec
            if seen.get(path) == version or experiment.validation_data_fn is None:
                continue
            seen[path] = version
            model = _tensorflow().keras.models.load_model(path)
            measured = model.evaluate(experiment.validation_data_fn(), return_dict=True, verbose=0)
            print(f"muster.yarn: {path}: {json.dumps(measured)}", flush=True)
        time.sleep(_LOOK_SECONDS)


def run(experiment_fn: Any) -> None:
    """Runs this task's part of the experiment."""
    with _strategy_scope():
        experiment = experiment_fn()
    if isinstance(experiment, Experiment) and _has_strategy():
        raise ValueError("an Estimator's replicas share their weights by ps: add it to task_specs")
    if isinstance(experiment, Experiment):
        _tensorflow().estimator.train_and_evaluate(*experiment)
    elif not isinstance(experiment, KerasExperiment):
        raise TypeError(f"the experiment function returned {type(experiment).__name__}, which is no experiment")
    elif _task_type() == "ps":
        raise ValueError("a KerasExperiment trains by all-reduce: leave ps out of task_specs")
    elif _task_type() == "evaluator":
        _evaluate(experiment)
    else:
        _fit(experiment)


def main() -> None:
    begin = time.monotonic()
    with open(sys.argv[1], "rb") as file:
        experiment_fn = pickle.load(file)
    run(experiment_fn)
    # muster.yarn.client reads it.
    print(f"muster.yarn: {os.environ.get('MUSTER_TASK')} took {time.monotonic() - begin:.3f} s", flush=True)


if __name__ == "__main__":
    main()
