"""`tf.estimator.experimental`: hooks that end a training by its evaluations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Iterable, List, Optional

__all__ = [
    "stop_if_higher_hook",
    "stop_if_lower_hook",
    "stop_if_no_decrease_hook",
    "stop_if_no_increase_hook",
]


@dataclass(frozen=True)
class EarlyStop:
    """`rule`: as `muster train --early-stop` has it."""

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
    _check(estimator, eval_dir, min_steps)
    return EarlyStop(f"{metric_name}:no_increase:{max_steps_without_increase}")


def stop_if_no_decrease_hook(
    estimator: Any,
    metric_name: str,
    max_steps_without_decrease: int,
    eval_dir: Optional[str] = None,
    min_steps: int = 0,
    run_every_secs: Optional[float] = 60,
    run_every_steps: Optional[int] = None,
) -> EarlyStop:
    _check(estimator, eval_dir, min_steps)
    return EarlyStop(f"{metric_name}:no_decrease:{max_steps_without_decrease}")


def stop_if_higher_hook(
    estimator: Any,
    metric_name: str,
    threshold: float,
    eval_dir: Optional[str] = None,
    min_steps: int = 0,
    run_every_secs: Optional[float] = 60,
    run_every_steps: Optional[int] = None,
) -> EarlyStop:
    _check(estimator, eval_dir, min_steps)
    return EarlyStop(f"{metric_name}:higher:{threshold}")


def stop_if_lower_hook(
    estimator: Any,
    metric_name: str,
    threshold: float,
    eval_dir: Optional[str] = None,
    min_steps: int = 0,
    run_every_secs: Optional[float] = 60,
    run_every_steps: Optional[int] = None,
) -> EarlyStop:
    _check(estimator, eval_dir, min_steps)
    return EarlyStop(f"{metric_name}:lower:{threshold}")


def early_stop_flags(hooks: Optional[Iterable[Any]]) -> List[object]:
    """Flags of the hooks; ValueError for one that is Python code to run in the trainer."""
    flags: List[object] = []
    for hook in hooks or ():
        if not isinstance(hook, EarlyStop):
            raise ValueError(
                "hooks are Python code, and training runs in the muster program: progress goes to "
                "the logger 'muster', events to TensorBoard files; early stopping is in "
                "muster.estimator.experimental; hooks of your own are written in C++ "
                "(docs/python.md)"
            )
        flags += ["--early-stop", hook.rule]
    return flags


def _check(estimator: Any, eval_dir: Optional[str], min_steps: int) -> None:
    if eval_dir is not None:
        raise ValueError("eval_dir: Muster looks at the evaluations of the model's own folder")
    if min_steps:
        raise ValueError("min_steps: Muster's early stopping has none; say more steps to wait for")
