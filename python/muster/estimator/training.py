"""train_and_evaluate: training with evaluations and exports, in one process."""

from __future__ import annotations

import pathlib
import shutil
from typing import Any, Dict, List, Optional, Tuple

from muster.estimator.core import Estimator
from muster.estimator.exporter import Exporter
from muster.estimator.spec import EvalSpec, TrainSpec, check_no_hooks


def train_and_evaluate(
    estimator: Estimator, train_spec: TrainSpec, eval_spec: EvalSpec
) -> Tuple[Optional[Dict[str, Any]], List[Optional[bytes]]]:
    """Trains, then evaluates and exports; returns the metrics and the paths of the exports."""
    if not isinstance(estimator, Estimator):
        raise TypeError(
            f"`estimator` must have type `muster.estimator.Estimator`, given {type(estimator)}"
        )
    if not isinstance(train_spec, TrainSpec):
        raise TypeError(f"`train_spec` must have type TrainSpec, given {type(train_spec)}")
    if not isinstance(eval_spec, EvalSpec):
        raise TypeError(f"`eval_spec` must have type EvalSpec, given {type(eval_spec)}")
    check_no_hooks(train_spec.hooks, train_spec.saving_listeners, eval_spec.hooks)
    estimator.train(train_spec.input_fn, max_steps=train_spec.max_steps)
    metrics = estimator.evaluate(eval_spec.input_fn, eval_spec.steps, name=eval_spec.name)
    exports: List[Optional[bytes]] = [
        _export(estimator, exporter) for exporter in eval_spec.exporters
    ]
    return metrics, exports


def _export(estimator: Estimator, exporter: Exporter) -> bytes:
    folder = pathlib.Path(estimator.model_dir, "export", exporter.name)
    path = estimator.export_saved_model(folder, exporter.serving_input_receiver_fn)
    if exporter.exports_to_keep is not None:
        stamped = sorted(child for child in folder.iterdir() if child.name.isdigit())
        for old in stamped[: -exporter.exports_to_keep]:
            shutil.rmtree(old)
    return path
