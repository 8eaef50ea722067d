"""RunConfig: options of an estimator's runs, with tf.estimator's names, defaults and errors."""

from __future__ import annotations

import copy
import os
from typing import Any, List, Mapping, Optional

from muster.estimator.cluster import ClusterSpec, Task, task_of_environment

_SAVE_BOTH = "`save_checkpoints_steps` and `save_checkpoints_secs` cannot be both set."
_DEFAULT = object()


# What the program's flags are called in a program of tf.estimator, for errors.
ARGUMENTS = {
    "--batch-size": "batch_size",
    "--checkpoint": "checkpoint_path",
    "--epochs": "num_epochs",
    "--keep-checkpoints": "keep_checkpoint_max",
    "--max-steps": "max_steps",
    "--model-dir": "model_dir",
    "--save-secs": "save_checkpoints_secs",
    "--save-steps": "save_checkpoints_steps",
    "--seed": "tf_random_seed",
    "--steps": "steps",
    "--summary-steps": "save_summary_steps",
    "--warm-start": "warm_start_from",
}


class RunConfig:
    """tf.estimator.RunConfig; `threads` (for one step) is Muster's addition.

    Accepted without effect: session_config, protocol, session_creation_timeout_secs,
    experimental_max_worker_delay_secs, checkpoint_save_graph_def. TF_CONFIG says which task of a
    cluster this is (cluster.py). Raises ValueError where TensorFlow does, and for distribution
    strategies.
    """

    def __init__(
        self,
        model_dir: Any = None,
        tf_random_seed: Optional[int] = None,
        save_summary_steps: Optional[int] = 100,
        save_checkpoints_steps: Any = _DEFAULT,
        save_checkpoints_secs: Any = _DEFAULT,
        session_config: Any = None,
        keep_checkpoint_max: Optional[int] = 5,
        keep_checkpoint_every_n_hours: float = 10000,
        log_step_count_steps: Optional[int] = 100,
        train_distribute: Any = None,
        device_fn: Any = None,
        protocol: Optional[str] = None,
        eval_distribute: Any = None,
        experimental_distribute: Any = None,
        experimental_max_worker_delay_secs: Optional[int] = None,
        session_creation_timeout_secs: float = 7200,
        checkpoint_save_graph_def: bool = True,
        threads: int = 1,
    ) -> None:
        if save_checkpoints_steps is _DEFAULT and save_checkpoints_secs is _DEFAULT:
            save_checkpoints_steps, save_checkpoints_secs = None, 600
        elif save_checkpoints_secs is _DEFAULT:
            save_checkpoints_secs = None
        elif save_checkpoints_steps is _DEFAULT:
            save_checkpoints_steps = None
        elif save_checkpoints_steps is not None and save_checkpoints_secs is not None:
            raise ValueError(_SAVE_BOTH)
        self._task = task_of_environment()
        self.model_dir: Optional[str] = _model_dir(model_dir, self._task.model_dir)
        self.tf_random_seed = tf_random_seed
        self.save_summary_steps = save_summary_steps
        self.save_checkpoints_steps: Optional[int] = save_checkpoints_steps
        self.save_checkpoints_secs: Optional[float] = save_checkpoints_secs
        self.session_config = session_config
        self.keep_checkpoint_max = keep_checkpoint_max
        self.keep_checkpoint_every_n_hours = keep_checkpoint_every_n_hours
        self.log_step_count_steps = log_step_count_steps
        self.train_distribute = train_distribute
        self.device_fn = device_fn
        self.protocol = protocol
        self.eval_distribute = eval_distribute
        self.experimental_distribute = experimental_distribute
        self.experimental_max_worker_delay_secs = experimental_max_worker_delay_secs
        self.session_creation_timeout_secs = session_creation_timeout_secs
        self.checkpoint_save_graph_def = checkpoint_save_graph_def
        self.threads = threads
        self._check()

    @property
    def task(self) -> Task:
        """Everything that TF_CONFIG says. TensorFlow does not have this property."""
        return self._task

    @property
    def cluster_spec(self) -> ClusterSpec:
        return self._task.cluster

    @property
    def task_type(self) -> str:
        return self._task.type

    @property
    def task_id(self) -> int:
        return self._task.index

    @property
    def global_id_in_cluster(self) -> Optional[int]:
        return self._task.global_id

    @property
    def is_chief(self) -> bool:
        return self._task.is_chief

    @property
    def master(self) -> str:
        return self._task.master

    @property
    def evaluation_master(self) -> str:
        return self._task.evaluation_master

    @property
    def service(self) -> Optional[Mapping[str, Any]]:
        return self._task.service

    @property
    def num_worker_replicas(self) -> int:
        evaluator = self._task.in_cluster and not self._task.cluster
        return 0 if evaluator else self._task.workers

    @property
    def num_ps_replicas(self) -> int:
        return self._task.servers

    def replace(self, **changes: Any) -> RunConfig:
        """Returns a copy with other values; one of the two save_checkpoints_* replaces the other.
        """
        out = copy.copy(self)
        for name, value in changes.items():
            if name not in vars(self) or name.startswith("_"):
                raise ValueError(f"Replacing {name} is not supported: RunConfig has no such name")
            setattr(out, name, value)
        steps, seconds = out.save_checkpoints_steps, out.save_checkpoints_secs
        if "save_checkpoints_steps" in changes and "save_checkpoints_secs" in changes:
            if steps is not None and seconds is not None:
                raise ValueError(_SAVE_BOTH)
        elif "save_checkpoints_steps" in changes and steps is not None:
            out.save_checkpoints_secs = None
        elif "save_checkpoints_secs" in changes and seconds is not None:
            out.save_checkpoints_steps = None
        if out.model_dir is not None:
            out.model_dir = os.fspath(out.model_dir)
        out._check()
        return out

    def train_flags(self) -> List[str]:
        """Returns flags for `muster train`."""
        flags = ["--threads", str(self.threads)]
        if self.tf_random_seed is not None:
            flags += ["--seed", str(self.tf_random_seed)]
        if self.save_checkpoints_steps:
            flags += ["--save-steps", str(self.save_checkpoints_steps)]
        else:
            flags += ["--save-secs", str(self.save_checkpoints_secs or 0)]
        flags += ["--keep-checkpoints", str(self.keep_checkpoint_max or 0)]
        flags += ["--keep-checkpoint-hours", str(self.keep_checkpoint_every_n_hours)]
        flags += ["--summary-steps", str(self.save_summary_steps or 10**12)]
        flags += ["--rate-steps", str(self.log_step_count_steps or 10**12)]
        return flags

    def _check(self) -> None:
        def require(condition: bool, message: str) -> None:
            if not condition:
                raise ValueError(message)

        def at_least_zero(name: str) -> None:
            value = getattr(self, name)
            require(value is None or value >= 0, f"{name} should be >= 0")

        def positive(name: str) -> None:
            value = getattr(self, name)
            require(value is None or value > 0, f"{name} should be > 0")

        require(self.model_dir is None or bool(self.model_dir), "model_dir should be non-empty.")
        at_least_zero("save_summary_steps")
        at_least_zero("save_checkpoints_steps")
        at_least_zero("save_checkpoints_secs")
        at_least_zero("keep_checkpoint_max")
        positive("keep_checkpoint_every_n_hours")
        positive("log_step_count_steps")
        positive("session_creation_timeout_secs")
        positive("threads")
        seed = self.tf_random_seed
        require(seed is None or isinstance(seed, int), "tf_random_seed must be integer.")
        delay = self.experimental_max_worker_delay_secs
        require(
            delay is None or isinstance(delay, int),
            "experimental_max_worker_delay_secs must be an integer if set.",
        )
        require(
            self.protocol in (None, "grpc", "grpc+verbs"), "protocol should be grpc or grpc+verbs"
        )
        for name in ("train_distribute", "eval_distribute", "experimental_distribute", "device_fn"):
            require(
                getattr(self, name) is None,
                f"{name}: Muster trains on its tasks' CPUs; say threads=N, or start several tasks",
            )


def _model_dir(given: Any, in_tf_config: Optional[str]) -> Optional[str]:
    if given is not None:
        given = os.fspath(given)
        if not given:
            raise ValueError("model_dir should be non-empty.")
    if in_tf_config == "":
        raise ValueError("model_dir in TF_CONFIG should be non-empty.")
    if given and in_tf_config and given != in_tf_config:
        raise ValueError(
            "`model_dir` provided in RunConfig construct, if set, must have the same value as the "
            f'model_dir in TF_CONFIG. model_dir: {given}\nTF_CONFIG["model_dir"]: {in_tf_config}.'
        )
    return given or in_tf_config
