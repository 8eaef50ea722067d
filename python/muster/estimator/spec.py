"""TrainSpec, EvalSpec, ModeKeys, WarmStartSettings: plain data, checked as tf.estimator does."""

from __future__ import annotations

import os
from typing import Any, Callable, Mapping, NamedTuple, Optional, Tuple

from muster.estimator.exporter import Exporter
from muster.estimator.hook_calls import checked_listeners
from muster.estimator.hooks import check_hooks

_HOOKS = "All hooks must be `SessionRunHook` instances"

InputFn = Callable[..., Any]


class ModeKeys:
    TRAIN = "train"
    EVAL = "eval"
    PREDICT = "infer"


class _TrainSpec(NamedTuple):
    input_fn: Any
    max_steps: Optional[int] = None
    hooks: Tuple[Any, ...] = ()
    saving_listeners: Tuple[Any, ...] = ()


class TrainSpec(_TrainSpec):
    """What train_and_evaluate trains on. max_steps None: until the input ends."""

    __slots__ = ()

    def __new__(
        cls,
        input_fn: Any,
        max_steps: Optional[int] = None,
        hooks: Any = None,
        saving_listeners: Any = None,
    ) -> TrainSpec:
        check_input_fn(input_fn)
        if max_steps is not None and max_steps <= 0:
            raise ValueError(f"Must specify max_steps > 0, given: {max_steps}")
        hooks, listeners = check_hooks(hooks, _HOOKS), checked_listeners(saving_listeners)
        return super().__new__(cls, input_fn, max_steps, hooks, tuple(listeners))


class _EvalSpec(NamedTuple):
    input_fn: Any
    steps: Optional[int] = 100
    name: Optional[str] = None
    hooks: Tuple[Any, ...] = ()
    exporters: Tuple[Exporter, ...] = ()
    start_delay_secs: float = 120
    throttle_secs: float = 600


class EvalSpec(_EvalSpec):
    """What train_and_evaluate evaluates on. steps None: all of the input."""

    __slots__ = ()

    def __new__(
        cls,
        input_fn: Any,
        steps: Optional[int] = 100,
        name: Optional[str] = None,
        hooks: Any = None,
        exporters: Any = None,
        start_delay_secs: float = 120,
        throttle_secs: float = 600,
    ) -> EvalSpec:
        check_input_fn(input_fn)
        if steps is not None and steps <= 0:
            raise ValueError(f"Must specify steps > 0, given: {steps}")
        if name is not None and not isinstance(name, str):
            raise TypeError(f"`name` must be string, given: {name}")
        if start_delay_secs < 0:
            raise ValueError(f"Must specify start_delay_secs >= 0, given: {start_delay_secs}")
        if throttle_secs < 0:
            raise ValueError(f"Must specify throttle_secs >= 0, given: {throttle_secs}")
        return super().__new__(
            cls,
            input_fn,
            steps,
            name,
            check_hooks(hooks, _HOOKS),
            _check_exporters(exporters),
            start_delay_secs,
            throttle_secs,
        )


class _WarmStartSettings(NamedTuple):
    ckpt_to_initialize_from: str
    vars_to_warm_start: Any = ".*"
    var_name_to_vocab_info: Optional[Mapping[str, Any]] = None
    var_name_to_prev_var_name: Optional[Mapping[str, str]] = None


class WarmStartSettings(_WarmStartSettings):
    """The weights to begin with if the model's folder has no checkpoint yet."""

    __slots__ = ()

    def __new__(
        cls,
        ckpt_to_initialize_from: str,
        vars_to_warm_start: Any = ".*",
        var_name_to_vocab_info: Optional[Mapping[str, Any]] = None,
        var_name_to_prev_var_name: Optional[Mapping[str, str]] = None,
    ) -> WarmStartSettings:
        if not ckpt_to_initialize_from:
            raise ValueError("`ckpt_to_initialize_from` MUST be set in WarmStartSettings")
        return super().__new__(
            cls,
            ckpt_to_initialize_from,
            vars_to_warm_start,
            var_name_to_vocab_info,
            var_name_to_prev_var_name,
        )

    def flag(self) -> str:
        """Returns the value for `muster train --warm-start`. Raises ValueError if there is none."""
        if self.var_name_to_vocab_info:
            raise ValueError(
                "var_name_to_vocab_info: Muster finds changed vocabularies by itself, where "
                "ckpt_to_initialize_from is a model's folder; leave it out"
            )
        if self.var_name_to_prev_var_name:
            raise ValueError(
                "var_name_to_prev_var_name: from Python, variables keep their names; other names "
                "can be given in C++ (train/weights/warm_start.h)"
            )
        patterns = self.vars_to_warm_start
        if patterns is None:
            raise ValueError("vars_to_warm_start=None would warm-start nothing of a Muster model")
        if isinstance(patterns, str):
            patterns = [patterns]
        if list(patterns) == [".*"]:
            return self.ckpt_to_initialize_from
        joined = "|".join(f"({pattern})" for pattern in patterns)
        return f"{self.ckpt_to_initialize_from}:{joined}"


def warm_start_settings(given: Any) -> Optional[WarmStartSettings]:
    if given is None or isinstance(given, WarmStartSettings):
        return given
    if isinstance(given, (str, os.PathLike)):
        return WarmStartSettings(ckpt_to_initialize_from=os.fspath(given))
    raise ValueError(
        f"warm_start_from must be a string or a WarmStartSettings, instead got {type(given)}"
    )


def check_input_fn(input_fn: Any) -> None:
    if not callable(input_fn):
        raise TypeError(f"`input_fn` must be callable, given: {input_fn}")


def _check_exporters(given: Any) -> Tuple[Exporter, ...]:
    if not given:
        return ()
    exporters = [given] if isinstance(given, Exporter) else given
    try:
        exporters = tuple(exporters)
    except TypeError:
        exporters = ()
    if not exporters or not all(isinstance(exporter, Exporter) for exporter in exporters):
        raise TypeError(
            f"`exporters` must be an Exporter, an iterable of Exporter, or `None`, found {given}."
        )
    names = [exporter.name for exporter in exporters]
    if not all(isinstance(name, str) and name for name in names):
        raise ValueError(
            "An Exporter cannot have a name that is `None` or empty. All exporter names: "
            f"{names}"
        )
    if len(set(names)) != len(names):
        raise ValueError(
            "`exporters` must have unique names. Such a name cannot be `None`. "
            f"All exporter names: {names}"
        )
    return exporters
