"""Runs an experiment on YARN, in the words of tf-yarn.

    from muster.yarn import Experiment, TaskSpec, run_on_yarn     # for `from tf_yarn.tensorflow import ...`

    run_on_yarn(experiment_fn, task_specs={"chief": TaskSpec("2 GiB", 4), "worker": TaskSpec("2 GiB", 4, 3),
                                           "ps": TaskSpec("2 GiB", 2), "evaluator": TaskSpec("2 GiB", 1)})

The tasks are a job of `muster run --on yarn`, so all that Muster does about failures holds, and
`muster status`, `logs`, `tensorboard` and `stop` show and end it. docs/yarn.md says what differs from
tf-yarn. This machine needs no TensorFlow.
"""

from __future__ import annotations

from muster.yarn.client import Metrics, RunFailed, get_safe_experiment_fn, run_on_yarn
from muster.yarn.experiment import Experiment, KerasExperiment
from muster.yarn.topologies import (
    ContainerKey,
    NodeLabel,
    TaskSpec,
    ps_strategy_topology,
    single_server_topology,
)

__all__ = [
    "ContainerKey",
    "Experiment",
    "KerasExperiment",
    "Metrics",
    "NodeLabel",
    "RunFailed",
    "TaskSpec",
    "get_safe_experiment_fn",
    "ps_strategy_topology",
    "run_on_yarn",
    "single_server_topology",
]
