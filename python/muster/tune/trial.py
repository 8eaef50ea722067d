"""Trials of a study, as an objective sees them while they run and as the study tells of them."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from muster.tune import words
from muster.tune.calls import StudyCalls, number_or_none
from muster.tune.space import (
    CategoricalDistribution,
    Distribution,
    FloatDistribution,
    IntDistribution,
    check_same,
    choice_of,
    has_no_steps,
    unknown,
)

Space = Dict[str, Dict[str, Any]]


class TrialPruned(Exception):
    """An objective raises it to end its trial after should_prune() was true."""


@dataclass(frozen=True)
class FrozenTrial:
    """What the study knows of a trial."""

    number: int
    state: str  # "running", "complete", "stopped", "failed"
    params: Dict[str, Any]
    value: Optional[float]
    intermediate_values: Dict[int, Optional[float]] = field(default_factory=dict)
    duration: float = 0.0  # seconds
    error: str = ""
    parent: Optional[int] = None  # with the pruner "pbt": the trial from which it continues

    @staticmethod
    def read(trial: Mapping[str, Any], space: Space) -> FrozenTrial:
        return FrozenTrial(
            number=trial["number"],
            state=trial["state"],
            params=_own_values(trial["parameters"], space),
            value=trial["value"],
            intermediate_values={resource: value for resource, value in trial["reports"]},
            duration=trial["seconds"],
            error=trial.get("error", ""),
            parent=trial.get("parent"),
        )


def _own_values(values: Mapping[str, Any], space: Space) -> Dict[str, Any]:
    return {name: choice_of(space[name].get("choice", ()), value) for name, value in values.items()}


class _Suggestions:
    """Optuna's words for the values of a trial."""

    def suggest_float(
        self, name: str, low: float, high: float, *, step: Optional[float] = None, log: bool = False
    ) -> float:
        """`step` is refused: a float has no steps here."""
        if step is not None:
            raise has_no_steps(name)
        value: float = self._suggest(name, FloatDistribution(low, high, log))
        return value

    def suggest_int(
        self, name: str, low: int, high: int, *, step: int = 1, log: bool = False
    ) -> int:
        value: int = self._suggest(name, IntDistribution(low, high, log, step))
        return value

    def suggest_categorical(self, name: str, choices: Sequence[Any]) -> Any:
        return self._suggest(name, CategoricalDistribution(tuple(choices)))

    def _suggest(self, name: str, asked: Distribution) -> Any:
        raise NotImplementedError

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise words.absent("a trial", name, words.TRIAL)


class Trial(_Suggestions):
    """A running trial. One thread uses it."""

    def __init__(self, calls: StudyCalls, space: Space, given: Mapping[str, Any]) -> None:
        self.number: int = given["number"]
        # With the pruner "pbt": the trial from whose end this one continues; None if it begins anew.
        self.parent: Optional[int] = given.get("parent")
        self.params = _own_values(given["parameters"], space)
        self._calls = calls
        self._space = space
        self._stop: str = given.get("stop", "")

    def _suggest(self, name: str, asked: Distribution) -> Any:
        if name not in self._space:
            raise unknown(name, list(self._space), None)
        check_same(name, self._space[name], asked.parameter())
        if name not in self.params:
            (key, value), *_ = self._space[name].get("when", {"": ""}).items()
            raise unknown(name, list(self._space), f"{key} is {value}")
        return self.params[name]

    def report(self, value: float, step: int) -> None:
        """Reports the value after `step` epochs or steps. A step that is not above the last one is
        ignored."""
        answer = self._calls.call(
            "report", trial=self.number, resource=step, value=number_or_none(value)
        )
        self._stop = answer["stop"]

    def should_prune(self) -> bool:
        """Whether the study's pruner has ended this trial at its last report."""
        return self._stop != ""


class FirstTrial(_Suggestions):
    """The first trial of a study without a space: what it asks for becomes the space. Values that
    are not `given` are drawn at random."""

    number = 0
    parent: Optional[int] = None

    def __init__(self, seed: int, given: Mapping[str, Any]) -> None:
        self.params: Dict[str, Any] = {}
        self._given = given
        self.space: Space = {}
        self.reports: List[Tuple[float, int]] = []
        self._chance = random.Random(seed)

    def _suggest(self, name: str, asked: Distribution) -> Any:
        if name in self.space:
            check_same(name, self.space[name], asked.parameter())
        else:
            drawn = asked.draw(self._chance)
            self.params[name] = self._given.get(name, drawn)
            self.space[name] = asked.parameter()
        return self.params[name]

    def report(self, value: float, step: int) -> None:
        self.reports.append((value, step))

    def should_prune(self) -> bool:
        return False


AnyTrial = Union[Trial, FirstTrial]
