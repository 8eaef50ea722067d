"""Studies: the search that `muster tune` keeps, for an objective of Python."""

from __future__ import annotations

import json
import pathlib
import shutil
import tempfile
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Type, Union

from muster.tune import words
from muster.tune.calls import StudyCalls, number_or_none
from muster.tune.space import Given, parameter_of
from muster.tune.trial import AnyTrial, FirstTrial, FrozenTrial, Space, Trial, TrialPruned

Objective = Callable[[Any], float]
Named = Union[str, Mapping[str, Any]]  # "tpe", or {"tpe": {"startup_trials": 5}}
_SEARCH = "search.json"


def create_study(
    *,
    direction: str = "minimize",
    space: Optional[Mapping[str, Given]] = None,
    study_dir: Optional[str] = None,
    sampler: Optional[Named] = None,
    pruner: Named = "none",
    seed: int = 1,
    **others: Any,
) -> Study:
    """Begins a study, or continues the one in `study_dir`.

    direction: "minimize" or "maximize".
    space: the distribution of each parameter by its name, or its map as a search file has it, which
      may have a condition (`when`). None: what the first trial asks for.
    study_dir: a folder where the study stays, and continues when its process was killed. None: a
      folder that is removed with the study.
    sampler: "tpe" (the default), "random" or "grid"; pruner: "none", "median", "asha", "hyperband" or
      "pbt", which draws its first points at random and stops no trial (Trial.parent); each also as a
      map with settings (docs/tune.md).

    Raises TypeError for Optuna's other parameters. The message names Muster's way to do the same.
    """
    words.check_keywords("create_study", others, words.CREATE_STUDY)
    if direction not in ("minimize", "maximize"):
        raise ValueError(f"direction: {direction!r} is neither 'minimize' nor 'maximize'")
    for name, given in (("sampler", sampler), ("pruner", pruner)):
        if not isinstance(given, (str, Mapping, type(None))):
            raise TypeError(f"{name}: {given!r} is no word: {words.MODULE[name + 's']}")
    if sampler is None:
        kind = pruner if isinstance(pruner, str) else next(iter(pruner), "")
        sampler = "random" if kind == "pbt" else "tpe"
    search = {
        "metric": {direction: "value"},
        "sampler": sampler,
        "scheduler": pruner,
        "seed": seed,
    }
    if space is None:
        return Study(search, None, study_dir)
    parameters = {name: parameter_of(name, given) for name, given in space.items()}
    return Study(search, parameters, study_dir)


class Study:
    """A search. Made by create_study; any thread may use it."""

    def __init__(
        self, search: Dict[str, Any], space: Optional[Space], study_dir: Optional[str]
    ) -> None:
        self._search = search
        self._lock = threading.RLock()  # of the study's start
        self._calls: Optional[StudyCalls] = None
        self._first: Optional[FirstTrial] = None
        self._space: Space = {}
        self._enqueued: List[Dict[str, Any]] = []
        self._stopped = False
        folder = tempfile.mkdtemp(prefix="muster-study-") if study_dir is None else study_dir
        self.study_dir = pathlib.Path(folder)
        self._processes: List[StudyCalls] = []
        removed = folder if study_dir is None else ""
        self._end = weakref.finalize(self, _end, self._processes, removed)
        known = self.study_dir / _SEARCH
        if space is None and known.is_file():
            space = json.loads(known.read_text(encoding="utf-8"))["space"]
        if space is not None:
            self._start(space)
        else:
            self._check_search()

    def close(self) -> None:
        """Ends the study's process, and removes its folder unless it was named."""
        self._end()

    def __enter__(self) -> Study:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.close()

    def ask(self) -> AnyTrial:
        """Returns the next trial. Raises StopIteration if the study gives no more."""
        with self._lock:
            if self._calls is None:
                if self._first is not None:
                    raise RuntimeError(
                        "the first trial, which says what the space is, has not been told yet: "
                        "tell it, or give the space: create_study(space=...)"
                    )
                self._first = FirstTrial(self._search["seed"], self._take_enqueued() or {})
                return self._first
            point = self._take_enqueued()
        given = self._calls.call("ask", **({} if point is None else {"parameters": point}))
        if "end" in given:
            raise StopIteration(given["end"])
        return Trial(self._calls, self._space, given["trial"])

    def enqueue_trial(self, params: Mapping[str, Any]) -> None:
        """The next trial that is asked for has these values, of all its parameters. A trial that was
        enqueued and has not begun ends with this object."""
        with self._lock:
            self._enqueued.append(dict(params))

    def tell(
        self,
        trial: Union[AnyTrial, int],
        value: Optional[float] = None,
        state: str = "complete",
        error: str = "",
    ) -> FrozenTrial:
        """Says how a trial ended. state: "complete", "stopped" (pruned) or "failed". Without a value
        the last reported one counts."""
        with self._lock:
            number = trial if isinstance(trial, int) else self._begin(trial)
        members: Dict[str, Any] = {"trial": number, "state": state}
        if value is not None:
            members["value"] = number_or_none(value)
        if error:
            members["error"] = error
        return FrozenTrial.read(self._call("tell", **members)["trial"], self._space)

    def optimize(
        self,
        objective: Objective,
        n_trials: Optional[int] = None,
        timeout: Optional[float] = None,
        n_jobs: int = 1,
        catch: Tuple[Type[BaseException], ...] = (),
        **others: Any,
    ) -> None:
        """Runs trials until n_trials of this call have ended, `timeout` seconds are over, the study
        gives no more, or stop() was called.

        An exception of the objective fails its trial and is raised, unless `catch` has its type.
        """
        words.check_keywords("optimize", others, words.OPTIMIZE)
        if n_trials is None and timeout is None and self._search["sampler"] != "grid":
            raise ValueError("give n_trials or timeout: the search would not end")
        self._stopped = False
        left = _Allowance(n_trials, timeout)
        if self._calls is None and left.take():
            self._run_one(objective, catch)
        if n_jobs == 1:
            return self._run(objective, left, catch)
        with ThreadPoolExecutor(n_jobs) as threads:
            runs = [threads.submit(self._run, objective, left, catch) for _ in range(n_jobs)]
            for run in runs:
                if run.exception() is not None:
                    self._stopped = True
        for run in runs:
            run.result()

    def stop(self) -> None:
        """Ends optimize() after the trials that run."""
        self._stopped = True

    @property
    def trials(self) -> List[FrozenTrial]:
        return [FrozenTrial.read(trial, self._space) for trial in self._describe()["trials"]]

    def get_trials(self, states: Optional[Sequence[str]] = None) -> List[FrozenTrial]:
        """The trials, or those in one of these states."""
        return [trial for trial in self.trials if states is None or trial.state in states]

    @property
    def direction(self) -> str:
        """ "minimize" or "maximize"."""
        direction: str = next(iter(self._search["metric"]))
        return direction

    @property
    def best_trial(self) -> FrozenTrial:
        study = self._describe()
        if study["best"] is None:
            raise ValueError("no trial has a value yet")
        return FrozenTrial.read(study["trials"][study["best"]], self._space)

    @property
    def best_params(self) -> Dict[str, Any]:
        return self.best_trial.params

    @property
    def best_value(self) -> float:
        value = self.best_trial.value
        if value is None:
            raise ValueError("no trial has a number as its value")
        return value

    def importances(self) -> Dict[str, float]:
        """See get_param_importances."""
        importance: Dict[str, float] = self._describe()["importance"]
        return importance

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise words.absent("a study", name, words.STUDY)

    def _take_enqueued(self) -> Optional[Dict[str, Any]]:
        return self._enqueued.pop(0) if self._enqueued else None

    def _describe(self) -> Dict[str, Any]:
        if self._calls is None:
            return {"trials": [], "best": None, "importance": {}}
        return self._call("describe")

    def _call(self, name: str, **members: Any) -> Dict[str, Any]:
        if self._calls is None:
            raise ValueError("no trial has begun")
        return self._calls.call(name, **members)

    def _check_search(self) -> None:
        """Raises the error of a wrong sampler or pruner of a study whose space is not known yet, as
        the search says it with some other space."""
        with tempfile.TemporaryDirectory(prefix="muster-search-") as folder:
            search = pathlib.Path(folder, _SEARCH)
            search.write_text(json.dumps({"space": {"x": {"choice": [0]}}, **self._search}))
            calls = StudyCalls(str(search), str(pathlib.Path(folder, "study")))
            try:
                calls.call("describe")
            finally:
                calls.close()

    def _start(self, space: Space) -> None:
        if not space:
            raise ValueError("the space is empty: a trial asked for no parameter")
        self.study_dir.mkdir(parents=True, exist_ok=True)
        search = self.study_dir / _SEARCH
        made = search.with_name(f".{_SEARCH}")
        made.write_text(json.dumps({"space": space, **self._search}), encoding="utf-8")
        calls = StudyCalls(str(made), str(self.study_dir))
        try:
            calls.call("describe")  # an error of the search is seen here
        except BaseException:
            calls.close()
            made.unlink()
            raise
        made.replace(search)
        self._processes.append(calls)
        self._calls, self._space = calls, space

    def _begin(self, trial: AnyTrial) -> int:
        """The first trial of a study without a space becomes one of the study."""
        if isinstance(trial, Trial) or self._calls is not None:
            return trial.number
        self._start(trial.space)
        self._first = None
        begun: int = self._call("ask", parameters=trial.params)["trial"]["number"]
        for value, step in trial.reports:
            self._call("report", trial=begun, resource=step, value=number_or_none(value))
        return begun

    def _run(
        self, objective: Objective, left: _Allowance, catch: Tuple[Type[BaseException], ...]
    ) -> None:
        while not self._stopped and left.take():
            try:
                self._run_one(objective, catch)
            except StopIteration:
                return

    def _run_one(self, objective: Objective, catch: Tuple[Type[BaseException], ...]) -> None:
        trial = self.ask()
        try:
            value = objective(trial)
        except TrialPruned:
            self.tell(trial, state="stopped")
        except BaseException as error:
            if isinstance(trial, FirstTrial):
                self._first = None  # it may not have asked for everything
            else:
                self.tell(trial, state="failed", error=f"{type(error).__name__}: {error}")
            if not isinstance(error, catch):
                raise
        else:
            self.tell(trial, value)


def get_param_importances(study: Study) -> Dict[str, float]:
    """The part of the variance of the trials' ranks that each parameter explains, the largest
    first; empty for fewer than 8 trials."""
    return study.importances()


class _Allowance:
    """How many trials may still begin. Thread-safe."""

    def __init__(self, trials: Optional[int], seconds: Optional[float]) -> None:
        self._lock = threading.Lock()
        self._trials = trials
        self._end = None if seconds is None else time.monotonic() + seconds

    def take(self) -> bool:
        if self._end is not None and time.monotonic() >= self._end:
            return False
        with self._lock:
            if self._trials is None:
                return True
            self._trials -= 1
            return self._trials >= 0


def _end(processes: List[StudyCalls], remove: str) -> None:
    for calls in processes:
        calls.close()
    if remove:
        shutil.rmtree(remove, ignore_errors=True)
