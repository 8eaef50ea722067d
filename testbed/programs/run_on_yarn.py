"""A program of tf-yarn, after its imports were changed: run_on_yarn.py KIND MODEL_DIR [PYTHON]."""

from __future__ import annotations

import pathlib
import sys

import yarn_experiments

from muster.yarn import RunFailed, TaskSpec, get_safe_experiment_fn, run_on_yarn

kind, model_dir, *python = sys.argv[1:]
small = {"memory": "1 GiB", "vcores": 1}
files = {"yarn_experiments.py": yarn_experiments.__file__}


def keras_experiment():
    """It travels by cloudpickle, since it is the program's own."""
    return yarn_experiments.make_keras(model_dir)


if kind == "estimator":
    metrics = run_on_yarn(
        get_safe_experiment_fn("yarn_experiments.make_estimator", model_dir),
        task_specs={name: TaskSpec(**small) for name in ("chief", "worker", "ps", "evaluator")},
        files=files, name="Estimator", env={"TF_NUM_INTRAOP_THREADS": "1"},
    )  # fmt: skip
elif kind == "keras":
    metrics = run_on_yarn(
        keras_experiment,
        task_specs={"chief": TaskSpec(**small), "worker": TaskSpec(**small),
                    "tensorboard": TaskSpec(**small, tb_model_dir=model_dir)},
        files=files, pyenv_zip_path=python[0] if python else None,
        pre_script_hook="export GREETING=hello; echo $GREETING from the hook",
    )  # fmt: skip
else:
    try:
        run_on_yarn(
            get_safe_experiment_fn("yarn_experiments.make_nothing", model_dir),
            task_specs={"chief": TaskSpec(**small)}, files={"package": str(pathlib.Path(__file__).parent)},
            env={"PYTHONPATH": "package"}, nb_retries=0,
        )  # fmt: skip
    except RunFailed as failure:
        print("it failed:", failure)
    raise SystemExit
print(metrics.total_training_duration, sorted(key.to_kv_str() for key in metrics.container_duration))
