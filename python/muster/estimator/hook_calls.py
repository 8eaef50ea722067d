"""Calls the hooks and listeners that a Python program has written, when the muster program asks.

The program prints which call is due and waits for the answer (docs/formats/hook_calls.md), so that
hooks run between the program's steps, in the thread that called train, evaluate or predict. That
costs 30 to 100 microseconds per step; only calls that some hook implements are made.

A step has no TensorFlow graph. A hook can request the tensors "global_step" and "loss" by name.
"""

from __future__ import annotations

import contextlib
import sys
from typing import Any, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence

_HOOK_CALLS = {
    "begin": "begin",
    "create": "after_create_session",
    "before_run": "before_run",
    "after_run": "after_run",
    "end": "end",
}
_SAVE_CALLS = {"begin": "begin", "before": "before_save", "after": "after_save", "end": "end"}
_ADVICE = (
    "there is no TensorFlow graph here. 'global_step' and 'loss' can be asked for by name, metrics "
    "are in what evaluate returns, weights in the checkpoints (tf.train.load_checkpoint)"
)


class SessionRunArgs(NamedTuple):
    """What before_run requests for after_run: "global_step", "loss", or a structure of them."""

    fetches: Any
    feed_dict: Any = None
    options: Any = None


class SessionRunValues(NamedTuple):
    results: Any
    options: Any = None
    run_metadata: Any = None


class SessionRunHook:
    """Base of a program's hooks. A hook overrides the methods that it needs."""

    def begin(self) -> None:
        """Called once before any other method."""

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Called once before the first step; in a training, after the first checkpoint."""

    def before_run(self, run_context: SessionRunContext) -> Optional[SessionRunArgs]:
        """Called before each batch, and once more when the data has ended and no batch follows."""

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Called after each batch, which the global step already counts."""

    def end(self, session: Any) -> None:
        """Called once when the loop has ended without an error."""


class CheckpointSaverListener:
    """Base of listeners to a training's checkpoints, which override the methods that they need."""

    def begin(self) -> None:
        """Called once before any other method."""

    def before_save(self, session: Any, global_step_value: int) -> None:
        """Called before each checkpoint is written."""

    def after_save(self, session: Any, global_step_value: int) -> Optional[bool]:
        """Called when the checkpoint is on disk. Return True to stop the training."""

    def end(self, session: Any, global_step_value: int) -> None:
        """Called once after the last checkpoint."""


class HookSession:
    """Replaces a TensorFlow session. It has "global_step" and, after a step, its "loss"."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None, **_: Any) -> Any:
        """Returns the values of `fetches`. Raises ValueError for any other name."""
        if feed_dict:
            raise ValueError(f"session.run: feed_dict: {_ADVICE}")
        return _fetch(fetches, self._values, "session.run")

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"session.{name}: {_ADVICE}")


class SessionRunContext:
    """The context that before_run and after_run of a step share."""

    def __init__(self, session: HookSession) -> None:
        self.original_args = SessionRunArgs("loss")
        self.session = session
        self.stop_requested = False

    def request_stop(self) -> None:
        """Ends the training, evaluation or prediction after this step."""
        self.stop_requested = True


class _Coordinator:
    def __init__(self) -> None:
        self._stop = False

    def request_stop(self, ex: Any = None) -> None:
        self._stop = True

    def should_stop(self) -> bool:
        return self._stop


class _Loop:
    """The hooks of one mode, from `begin` to `end`."""

    def __init__(self, hooks: Sequence[Any]) -> None:
        self._hooks = hooks
        self._coordinator = _Coordinator()
        self._context: Optional[SessionRunContext] = None
        self._args: List[Any] = []

    def wanted(self) -> List[str]:
        found = {
            call
            for call, method in _HOOK_CALLS.items()
            if any(_overrides(hook, method) for hook in self._hooks)
        }
        if "before_run" in found:  # after_run gets what it requests, and its stop
            found.add("after_run")
        return [call for call in _HOOK_CALLS if call in found]

    def call(self, call: str, values: Mapping[str, Any]) -> bool:
        """Makes this call of each hook; returns whether to stop."""
        return bool(getattr(self, f"_{call}")(HookSession(values), values))

    def _begin(self, session: HookSession, values: Mapping[str, Any]) -> None:
        self._coordinator = _Coordinator()
        for hook in self._hooks:
            hook.begin()

    def _create(self, session: HookSession, values: Mapping[str, Any]) -> None:
        for hook in self._hooks:
            hook.after_create_session(session, self._coordinator)

    def _before_run(self, session: HookSession, values: Mapping[str, Any]) -> None:
        self._context = SessionRunContext(session)
        self._args = [hook.before_run(self._context) for hook in self._hooks]
        after_step = {"loss": 0.0, **values}
        for hook, args in zip(self._hooks, self._args):
            if args is None:
                continue
            where = f"{type(hook).__name__}.before_run"
            if args.feed_dict:
                raise ValueError(f"{where}: feed_dict: {_ADVICE}")
            _fetch(args.fetches, after_step, where)

    def _after_run(self, session: HookSession, values: Mapping[str, Any]) -> bool:
        context = self._context or SessionRunContext(session)
        context.session = session
        for hook, args in zip(self._hooks, self._args or [None] * len(self._hooks)):
            where = f"{type(hook).__name__}.before_run"
            results = None if args is None else _fetch(args.fetches, values, where)
            hook.after_run(context, SessionRunValues(results))
        self._context, self._args = None, []
        return context.stop_requested or self._coordinator.should_stop()

    def _end(self, session: HookSession, values: Mapping[str, Any]) -> None:
        for hook in self._hooks:
            hook.end(session)


class HookCalls:
    """Answers the calls of one run of the program.

    `hooks` by mode: "train", "eval", "predict". An object serves one run.
    """

    def __init__(self, hooks: Mapping[str, Sequence[Any]], listeners: Sequence[Any] = ()) -> None:
        self._loops = {mode: _Loop(own) for mode, own in hooks.items()}
        self._listeners = listeners
        self._graph: Any = None

    def wanted(self) -> List[str]:
        """Returns the calls that have a hook, spelled as for `--hook-calls`."""
        calls = [f"{mode}.{call}" for mode, loop in self._loops.items() for call in loop.wanted()]
        for call, method in _SAVE_CALLS.items():
            if any(_overrides(listener, method) for listener in self._listeners):
                calls.append(f"save.{call}")
        return calls

    def answer(self, event: Mapping[str, Any]) -> Dict[str, Any]:
        """Makes the call; returns the answer for the program. Exceptions of hooks are passed on."""
        who, call = event["call"].split(".")
        values = {"global_step": event["step"]}
        if "loss" in event:
            loss = event["loss"]
            values["loss"] = float("nan") if loss is None else loss
        with self._default_graph():
            if who == "save":
                return {"stop": self._saving(call, values)}
            return {"stop": self._loops[who].call(call, values)}

    def _saving(self, call: str, values: Mapping[str, Any]) -> bool:
        method = _SAVE_CALLS[call]
        arguments = () if call == "begin" else (HookSession(values), values["global_step"])
        answers = [getattr(listener, method)(*arguments) for listener in self._listeners]
        return call == "after" and any(answers)

    @contextlib.contextmanager
    def _default_graph(self) -> Iterator[None]:
        """Gives the hooks of a program that uses TensorFlow a graph with a global step.

        `tf.compat.v1.train.get_global_step()` then returns a tensor that they can request by name.
        """
        tensorflow = sys.modules.get("tensorflow")
        if tensorflow is None or not hasattr(tensorflow, "Graph"):
            yield
            return
        if self._graph is None:
            self._graph = tensorflow.Graph()
            with self._graph.as_default():
                tensorflow.compat.v1.train.create_global_step()
        with self._graph.as_default():
            yield


def is_own_hook(hook: Any) -> bool:
    """Whether `hook` has the methods of a hook, whatever its base class is."""
    return all(callable(getattr(hook, method, None)) for method in _HOOK_CALLS.values())


def checked_listeners(given: Optional[Iterable[Any]]) -> List[Any]:
    """Returns a list of listeners; raises TypeError, as tf.estimator does, for any other object."""
    listeners = list(given or ())
    for listener in listeners:
        if not all(callable(getattr(listener, method, None)) for method in _SAVE_CALLS.values()):
            raise TypeError(
                f"saving_listeners must be a list of CheckpointSaverListener, given: {listener}"
            )
    return listeners


def _overrides(given: Any, method: str) -> bool:
    """Whether `given` has a method of its own, and not the empty one of TensorFlow's or Muster's
    base class."""
    name = getattr(getattr(given, method), "__qualname__", "")
    return name not in (f"SessionRunHook.{method}", f"CheckpointSaverListener.{method}")


def _fetch(fetches: Any, values: Mapping[str, Any], where: str) -> Any:
    """Returns `fetches` with each name, or tensor of that name, replaced by its value."""
    if isinstance(fetches, Mapping):
        return {key: _fetch(one, values, where) for key, one in fetches.items()}
    if isinstance(fetches, tuple) and hasattr(fetches, "_fields"):
        return type(fetches)(*(_fetch(one, values, where) for one in fetches))
    if isinstance(fetches, (list, tuple)):
        return type(fetches)(_fetch(one, values, where) for one in fetches)
    name = fetches if isinstance(fetches, str) else getattr(fetches, "name", None)
    short = str(name).split(":")[0].rsplit("/", 1)[-1]
    if short in values:
        return values[short]
    if short == "loss":
        raise ValueError(f"{where}: the loss is known in after_run of a training or an evaluation")
    raise ValueError(f"{where} asks for {name or fetches!r}: {_ADVICE}")
