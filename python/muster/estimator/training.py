"""train_and_evaluate: a training with evaluations and exports of its checkpoints."""

from __future__ import annotations

import os
import pathlib
from typing import Any, Dict, List, Optional, Sequence, Tuple

from muster import storage
from muster.binary import Event
from muster.estimator.cluster import EVALUATOR, MASTER
from muster.estimator.core import Estimator
from muster.estimator.export import check_features
from muster.estimator.exporter import Exporter
from muster.estimator.hook_calls import HookCalls, checked_listeners
from muster.estimator.hooks import ask, own_hooks
from muster.estimator.predictions import metrics_of
from muster.estimator.spec import EvalSpec, TrainSpec


def train_and_evaluate(
    estimator: Estimator, train_spec: TrainSpec, eval_spec: EvalSpec
) -> Tuple[Dict[str, Any], List[Optional[bytes]]]:
    """Trains; evaluates some checkpoints during the training, and the last one; exports.

    Returns the last evaluation's metrics and, for each exporter, the path of its last export or
    None. The evaluation's batches are read once and kept in a temporary file.

    In a cluster (TF_CONFIG) this runs the task's part: chief and workers train, servers serve until
    the training ends, the evaluator evaluates and exports. Tasks that do not evaluate return {} and
    None for each exporter.
    """
    if not isinstance(estimator, Estimator):
        raise TypeError(
            f"`estimator` must have type `muster.estimator.Estimator`. Got: {type(estimator)}"
        )
    for name, given, kind in (
        ("train_spec", train_spec, TrainSpec),
        ("eval_spec", eval_spec, EvalSpec),
    ):
        if not isinstance(given, kind):
            raise TypeError(
                f"`{name}` must have type `muster.estimator.{kind.__name__}`. Got: {type(given)}"
            )
    asked = ask(train_spec.hooks, estimator.model_dir, estimator._global_step())
    calls = HookCalls(
        {"train": asked.own, "eval": own_hooks(eval_spec.hooks, "EvalSpec")},
        [*asked.listeners, *checked_listeners(train_spec.saving_listeners)],
    )
    for exporter in eval_spec.exporters:
        check_features(exporter.serving_input_receiver_fn, estimator.serving_features())

    task = estimator.config.task
    if task.type == EVALUATOR and task.index > 0:
        raise ValueError(
            "For distributed training, there can only be one `evaluator` task (with task id 0). "
            f"Given task id {task.index}"
        )

    def evaluation(folder: pathlib.Path, label: str) -> List[object]:
        if task.in_cluster and task.type not in (MASTER, EVALUATOR):
            # Another task evaluates or, as in tf.estimator, none does.
            elsewhere = ["--evaluator", "--eval", folder / "evaluation.batches"]
            return [*elsewhere, *_flags(eval_spec)] if task.has_evaluator() else []
        data = estimator._evaluation_data(eval_spec.input_fn, eval_spec.steps, folder, label)
        flags = [*data, *_flags(eval_spec)]
        return [*flags, "--evaluator"] if task.type == EVALUATOR else flags

    last_step = asked.stop_at(train_spec.max_steps)
    finishing = _Finishing(estimator.model_dir, eval_spec.exporters)
    events = estimator._train(
        train_spec.input_fn, last_step, asked, calls, evaluation, finishing.seen
    )
    metrics = metrics_of(events)
    return metrics, [
        _exported(events, estimator.model_dir, exporter.name, metrics.get("global_step", -1))
        for exporter in eval_spec.exporters
    ]


class _Finishing:
    """Adds to each export what its exporter requests, as soon as the program has written it."""

    def __init__(self, model_dir: str, exporters: Sequence[Exporter]) -> None:
        self._by_folder = {
            os.path.join(model_dir, "export", exporter.name): exporter.finishing
            for exporter in exporters
        }

    def seen(self, event: Event) -> None:
        if event.get("event") != "exported":
            return
        path = event["saved_model"]
        finishing = self._by_folder.get(os.path.dirname(path))
        if finishing is not None and storage.exists(path):  # else it was too old and has been removed
            finishing.finish(path)


def _flags(spec: EvalSpec) -> List[object]:
    flags: List[object] = ["--eval-throttle-secs", spec.throttle_secs]
    flags += ["--eval-start-delay-secs", spec.start_delay_secs]
    if spec.name is not None:
        flags += ["--eval-name", spec.name]
    for exporter in spec.exporters:
        flags += ["--exporter", f"{exporter.name}={exporter.kind}"]
    kept = _kept(spec.exporters)
    return flags if kept is None else [*flags, "--exports-to-keep", kept]


def _kept(exporters: Sequence[Exporter]) -> Optional[int]:
    """Returns how many exports are kept: one number for all exporters that keep several."""
    numbers = {exporter.exports_to_keep or 0 for exporter in exporters if exporter.kind != "final"}
    if len(numbers) > 1:
        raise ValueError(
            f"exports_to_keep: exporters of one run keep the same number, not {numbers}"
        )
    return next(iter(numbers), None)


def _exported(events: Sequence[Event], model_dir: str, name: str, step: int) -> Optional[bytes]:
    """Returns the export that the exporter made from the checkpoint at `step`."""
    folder = os.path.join(model_dir, "export", name)
    for event in reversed(events):
        if event.get("event") != "exported" or event.get("step") != step:
            continue
        if os.path.dirname(event["saved_model"]) == folder:
            return str(event["saved_model"]).encode()
    return None
