"""tf.estimator's hooks, translated to options of the muster program, which has the same hooks.

TensorFlow's own hooks (tf.estimator.*Hook, tf.compat.v1.train.*Hook) are accepted as well. Custom
hooks are called from the program's loop (hook_calls.py).
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, Dict, Iterable, List, Optional, Tuple

from muster.estimator.experimental import EarlyStop
from muster.estimator.hook_calls import SessionRunHook, checked_listeners, is_own_hook

_ADVICE = (
    "it works on a TensorFlow graph, which there is none of. Derive a hook of your own from "
    "SessionRunHook: its methods are called, and know the global step and the loss; the program's "
    "progress goes to the logger 'muster', its events to TensorBoard files"
)


@dataclass
class Asked:
    """All that the hooks of one training ask for."""

    config: Dict[str, Any] = field(default_factory=dict)  # replaces values of RunConfig
    flags: List[object] = field(default_factory=list)  # flags for `muster train`
    last_step: Optional[int] = None  # the earliest one
    own: List[Any] = field(default_factory=list)  # custom hooks
    listeners: List[Any] = field(default_factory=list)  # listeners of CheckpointSaverHooks

    def stop_at(self, step: Optional[int]) -> Optional[int]:
        """Returns the earlier of `step` and the last step that a hook requests."""
        steps = [s for s in (step, self.last_step) if s is not None]
        return min(steps) if steps else None


class ProgramHook(SessionRunHook):
    """Base of hooks that become options of the program; none of their methods is called."""

    def ask(self, asked: Asked, model_dir: str, step: int) -> None:
        """Adds to `asked`; `step` is the global step at which the training begins."""
        raise NotImplementedError


class StopAtStepHook(ProgramHook):
    def __init__(self, num_steps: Optional[int] = None, last_step: Optional[int] = None) -> None:
        if num_steps is None and last_step is None:
            raise ValueError("One of num_steps or last_step must be specified.")
        if num_steps is not None and last_step is not None:
            raise ValueError("Only one of num_steps or last_step can be specified.")
        self._num_steps, self._last_step = num_steps, last_step

    def ask(self, asked: Asked, model_dir: str, step: int) -> None:
        last = self._last_step if self._num_steps is None else step + self._num_steps
        asked.last_step = asked.stop_at(last)


class LoggingTensorHook(ProgramHook):
    """Logs the loss to the logger "muster"; the program knows no other tensor by name."""

    def __init__(
        self,
        tensors: Any,
        every_n_iter: Optional[int] = None,
        every_n_secs: Optional[float] = None,
        at_end: bool = False,
        formatter: Any = None,
    ) -> None:
        intervals = [every_n_iter, every_n_secs].count(None)
        if intervals == 0 or (intervals == 2 and not at_end):
            raise ValueError(
                "either at_end and/or exactly one of every_n_iter and every_n_secs must be "
                "provided."
            )
        if every_n_iter is not None and every_n_iter <= 0:
            raise ValueError(f"invalid every_n_iter={every_n_iter}.")
        if formatter is not None:
            raise ValueError(
                "LoggingTensorHook: formatter is Python code, and the muster program writes the "
                "lines; give the logger 'muster' a logging.Formatter"
            )
        for tag in tensors:
            _check_tensor(tag, tensors[tag] if isinstance(tensors, dict) else tag)
        self._steps, self._secs, self._at_end = every_n_iter, every_n_secs, at_end

    def ask(self, asked: Asked, model_dir: str, step: int) -> None:
        if self._steps is not None:
            asked.flags += ["--log-steps", self._steps]
        if self._secs is not None:
            asked.flags += ["--log-secs", self._secs]
        if self._at_end:
            asked.flags += ["--log-at-end"]


class NanTensorHook(ProgramHook):
    """Ends a training whose loss is NaN; without an error if `fail_on_nan_loss` is false."""

    def __init__(self, loss_tensor: Any = None, fail_on_nan_loss: bool = True) -> None:
        self._fail = fail_on_nan_loss

    def ask(self, asked: Asked, model_dir: str, step: int) -> None:
        if not self._fail and "--stop-on-nan" not in asked.flags:
            asked.flags += ["--stop-on-nan"]


class CheckpointSaverHook(ProgramHook):
    """Says when checkpoints are saved, instead of RunConfig, and which listeners are called then.
    """

    def __init__(
        self,
        checkpoint_dir: Any,
        save_secs: Optional[float] = None,
        save_steps: Optional[int] = None,
        saver: Any = None,
        checkpoint_basename: str = "model.ckpt",
        scaffold: Any = None,
        listeners: Any = None,
        save_graph_def: bool = True,
    ) -> None:
        if saver is not None and scaffold is not None:
            raise ValueError("You cannot provide both saver and scaffold.")
        _check_interval("CheckpointSaverHook", save_secs, save_steps)
        if checkpoint_basename != "model.ckpt":
            raise ValueError("CheckpointSaverHook: Muster's checkpoints are named model.ckpt-STEP")
        self._folder, self._secs, self._steps = checkpoint_dir, save_secs, save_steps
        self._listeners = checked_listeners(listeners)

    def ask(self, asked: Asked, model_dir: str, step: int) -> None:
        _check_folder("CheckpointSaverHook", "checkpoint_dir", self._folder, model_dir)
        asked.config["save_checkpoints_steps"] = self._steps
        asked.config["save_checkpoints_secs"] = self._secs
        asked.listeners += self._listeners


class StepCounterHook(ProgramHook):
    def __init__(
        self,
        every_n_steps: Optional[int] = 100,
        every_n_secs: Optional[float] = None,
        output_dir: Any = None,
        summary_writer: Any = None,
    ) -> None:
        if (every_n_steps is None) == (every_n_secs is None):
            raise ValueError("exactly one of every_n_steps and every_n_secs should be provided.")
        _by_steps("StepCounterHook", "every_n_steps", every_n_steps)
        self._steps, self._folder = every_n_steps, output_dir

    def ask(self, asked: Asked, model_dir: str, step: int) -> None:
        _check_folder("StepCounterHook", "output_dir", self._folder, model_dir)
        asked.config["log_step_count_steps"] = self._steps


class SummarySaverHook(ProgramHook):
    """Says when the program writes its summaries; `summary_op` is not evaluated."""

    def __init__(
        self,
        save_steps: Optional[int] = None,
        save_secs: Optional[float] = None,
        output_dir: Any = None,
        summary_writer: Any = None,
        scaffold: Any = None,
        summary_op: Any = None,
    ) -> None:
        if (scaffold is None) == (summary_op is None):
            raise ValueError("Exactly one of scaffold or summary_op must be provided.")
        _check_interval("SummarySaverHook", save_secs, save_steps)
        _by_steps("SummarySaverHook", "save_steps", save_steps)
        self._steps, self._folder = save_steps, output_dir

    def ask(self, asked: Asked, model_dir: str, step: int) -> None:
        _check_folder("SummarySaverHook", "output_dir", self._folder, model_dir)
        asked.config["save_summary_steps"] = self._steps


class ProfilerHook(ProgramHook):
    """Writes timelines, always into the model's folder, whatever `output_dir` says."""

    def __init__(
        self,
        save_steps: Optional[int] = None,
        save_secs: Optional[float] = None,
        output_dir: Any = "",
        show_dataflow: bool = True,
        show_memory: bool = False,
    ) -> None:
        _check_interval("ProfilerHook", save_secs, save_steps)
        _by_steps("ProfilerHook", "save_steps", save_steps)
        self._steps = save_steps

    def ask(self, asked: Asked, model_dir: str, step: int) -> None:
        asked.flags += ["--profile-steps", self._steps]


def ask(hooks: Optional[Iterable[Any]], model_dir: str, step: int) -> Asked:
    """Returns what `hooks` request of a training that begins at `step`. ValueError if impossible.
    """
    asked = Asked()
    for hook in check_hooks(hooks):
        if isinstance(hook, EarlyStop):
            asked.flags += ["--early-stop", hook.rule, "--eval-elsewhere"]
        elif _has_own_code(hook):
            asked.own.append(hook)
        else:
            ours = hook if isinstance(hook, ProgramHook) else _from_tensorflow(hook)
            ours.ask(asked, model_dir, step)
    return asked


def check_hooks(
    hooks: Optional[Iterable[Any]], says: str = "Hooks must be a SessionRunHook"
) -> Tuple[Any, ...]:
    """Returns the hooks; raises TypeError, as tf.estimator does, for any other object."""
    found = tuple(hooks or ())
    for hook in found:
        if not isinstance(hook, EarlyStop) and not is_own_hook(hook):
            raise TypeError(f"{says}, given: {hook}")
    return found


def own_hooks(hooks: Optional[Iterable[Any]], method: str) -> List[Any]:
    """Returns the hooks of an evaluation or a prediction. ValueError for those of a training."""
    found = check_hooks(hooks)
    for hook in found:
        if isinstance(hook, EarlyStop) or not _has_own_code(hook):
            kind = type(hook).__name__
            instead = "say steps=N" if kind == "StopAtStepHook" else _ADVICE
            raise ValueError(f"{kind} does nothing in {method}: {instead}")
    return list(found)


def _has_own_code(hook: Any) -> bool:
    """Whether the program has written the hook; false for Muster's and TensorFlow's hooks."""
    if type(hook).__module__ == __name__ or _is_tensorflows(type(hook)):
        return False
    for base in type(hook).__mro__[1:]:
        if base.__name__ == "SessionRunHook":
            break
        if issubclass(base, ProgramHook) or _is_tensorflows(base):
            raise ValueError(
                f"{type(hook).__name__}: {base.__name__}, which it is derived from, is an option of "
                "the muster program or works on a TensorFlow graph: derive it from SessionRunHook"
            )
    return True


def _is_tensorflows(kind: type) -> bool:
    return kind.__module__.startswith(("tensorflow.", "tensorflow_estimator."))


def _from_tensorflow(hook: Any) -> ProgramHook:
    """Converts a hook of TensorFlow, whose arguments are in its private attributes."""

    def of(name: str, default: Any = None) -> Any:
        return getattr(hook, f"_{name}", default)

    def interval(timer: Any) -> Dict[str, Any]:
        found = (getattr(timer, f"_every_{unit}", None) for unit in ("steps", "secs"))
        return dict(zip(("steps", "secs"), found))

    kind = type(hook).__name__
    every = interval(of("timer"))
    if kind == "StopAtStepHook":
        return StopAtStepHook(of("num_steps"), None if of("num_steps") else of("last_step"))
    if kind == "NanTensorHook":
        return NanTensorHook(fail_on_nan_loss=of("fail_on_nan_loss", True))
    if kind == "LoggingTensorHook":
        return LoggingTensorHook(
            of("tensors", ()), every["steps"], every["secs"], of("log_at_end"), of("formatter")
        )
    if kind == "CheckpointSaverHook":
        return CheckpointSaverHook(
            of("checkpoint_dir"), every["secs"], every["steps"], listeners=of("listeners")
        )
    if kind == "StepCounterHook":
        return StepCounterHook(every["steps"], every["secs"], of("output_dir"))
    if kind == "SummarySaverHook":
        return SummarySaverHook(every["steps"], every["secs"], of("output_dir"), summary_op=True)
    if kind == "ProfilerHook":
        return ProfilerHook(every["steps"], every["secs"])
    raise ValueError(f"{kind}: the muster program has no such hook; {_ADVICE}")


def _check_tensor(tag: Any, tensor: Any) -> None:
    """A line can show the loss and the step, whatever a TensorFlow graph calls them."""
    name = str(getattr(tensor, "name", tensor))
    if not any(word in text for word in ("loss", "global_step") for text in (str(tag), name)):
        raise ValueError(
            "LoggingTensorHook: the muster program knows the loss and the global_step, not "
            f"'{name}'; what else it has goes to TensorBoard files"
        )


def _check_interval(hook: str, secs: Optional[float], steps: Optional[int]) -> None:
    if secs is None and steps is None:
        raise ValueError(f"{hook}: Either save_steps or save_secs should be provided")
    if secs is not None and steps is not None:
        raise ValueError(f"{hook}: Can not provide both save_steps and save_secs")


def _by_steps(hook: str, name: str, steps: Optional[int]) -> None:
    if steps is None:
        raise ValueError(f"{hook}: Muster counts steps here, not seconds: give {name}=N")
    if steps <= 0:
        raise ValueError(f"{hook}: {name} should be > 0, given: {steps}")


def _check_folder(hook: str, name: str, given: Any, model_dir: str) -> None:
    if given is None or os.path.abspath(os.fspath(given)) == os.path.abspath(model_dir):
        return
    raise ValueError(
        f"{hook}: {name} '{given}': Muster writes into the model_dir, '{model_dir}'; leave it out"
    )
