"""`tf.estimator.experimental`: hooks that end a training by its evaluations."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, Optional

from muster.estimator.absent import refuse

__all__ = [
    "stop_if_higher_hook",
    "stop_if_lower_hook",
    "stop_if_no_decrease_hook",
    "stop_if_no_increase_hook",
]


@dataclass(frozen=True)
class EarlyStop:
    """Stops a training by a rule, spelled as for `muster train --early-stop`."""

    rule: str


def stop_if_no_increase_hook(
    estimator: Any,
    metric_name: str,
    max_steps_without_increase: int,
    eval_dir: Optional[str] = None,
    min_steps: int = 0,
    run_every_secs: Optional[float] = 60,
    run_every_steps: Optional[int] = None,
) -> EarlyStop:
    rule = f"{metric_name}:no_increase:{max_steps_without_increase}"
    return _early_stop(rule, eval_dir, min_steps)


def stop_if_no_decrease_hook(
    estimator: Any,
    metric_name: str,
    max_steps_without_decrease: int,
    eval_dir: Optional[str] = None,
    min_steps: int = 0,
    run_every_secs: Optional[float] = 60,
    run_every_steps: Optional[int] = None,
) -> EarlyStop:
    rule = f"{metric_name}:no_decrease:{max_steps_without_decrease}"
    return _early_stop(rule, eval_dir, min_steps)


def _stop_if_beyond(
    direction: str,
    estimator: Any,
    metric_name: str,
    threshold: float,
    eval_dir: Optional[str] = None,
    min_steps: int = 0,
    run_every_secs: Optional[float] = 60,
    run_every_steps: Optional[int] = None,
) -> EarlyStop:
    return _early_stop(f"{metric_name}:{direction}:{threshold}", eval_dir, min_steps)


stop_if_higher_hook = functools.partial(_stop_if_beyond, "higher")
stop_if_lower_hook = functools.partial(_stop_if_beyond, "lower")


def _early_stop(rule: str, eval_dir: Optional[str], min_steps: int) -> EarlyStop:
    if eval_dir is not None:
        raise ValueError("eval_dir: Muster looks at the evaluations of the model's own folder")
    return EarlyStop(f"{rule}:min_steps={min_steps}" if min_steps else rule)


def __getattr__(name: str) -> Any:
    refuse("muster.estimator.experimental", name)
