"""The space of a search: Optuna's distributions, as parameters of a search file (docs/tune.md)."""

from __future__ import annotations

import json
import math
import random
from dataclasses import dataclass
from typing import Any, Dict, Mapping, Optional, Sequence, Tuple, Union


@dataclass(frozen=True)
class FloatDistribution:
    """Numbers from low to high; log: equal chances for equal ratios."""

    low: float
    high: float
    log: bool = False

    def parameter(self) -> Dict[str, Any]:
        return {"loguniform" if self.log else "uniform": [float(self.low), float(self.high)]}

    def draw(self, chance: random.Random) -> float:
        if self.log:
            drawn = math.exp(chance.uniform(math.log(self.low), math.log(self.high)))
            return min(max(drawn, self.low), self.high)
        return chance.uniform(self.low, self.high)


@dataclass(frozen=True)
class IntDistribution:
    """The whole numbers low, low + step, ... up to high."""

    low: int
    high: int
    log: bool = False
    step: int = 1

    def parameter(self) -> Dict[str, Any]:
        parameter: Dict[str, Any] = {"int": [int(self.low), int(self.high)]}
        if self.log:
            parameter["log"] = True
        if self.step != 1:
            parameter["step"] = int(self.step)
        return parameter

    def draw(self, chance: random.Random) -> int:
        if self.log:
            drawn = math.exp(chance.uniform(math.log(self.low), math.log(self.high)))
            return min(max(round(drawn), self.low), self.high)
        return chance.randrange(self.low, self.high + 1, self.step)


@dataclass(frozen=True)
class CategoricalDistribution:
    """One of some values that JSON can have."""

    choices: Tuple[Any, ...]

    def parameter(self) -> Dict[str, Any]:
        return {"choice": list(self.choices)}

    def draw(self, chance: random.Random) -> Any:
        return chance.choice(self.choices)


Distribution = Union[FloatDistribution, IntDistribution, CategoricalDistribution]
# What a caller may give for a parameter: a distribution, ours or Optuna's, or its map as a search
# file has it.
Given = Union[Distribution, Mapping[str, Any], Any]


def parameter_of(name: str, given: Given) -> Dict[str, Any]:
    """The parameter as a search file has it. Raises ValueError for what is no distribution."""
    if isinstance(given, Mapping):
        return dict(given)
    choices = getattr(given, "choices", None)
    if choices is not None:
        return CategoricalDistribution(tuple(choices)).parameter()
    low, high = getattr(given, "low", None), getattr(given, "high", None)
    if low is None or high is None:
        raise ValueError(
            f"{name}: {given!r} is no distribution: give a FloatDistribution, IntDistribution or "
            'CategoricalDistribution, or a map such as {"loguniform": [0.001, 1]}'
        )
    log, step = bool(getattr(given, "log", False)), getattr(given, "step", None)
    if isinstance(low, int) and isinstance(high, int) and step is not None:
        return IntDistribution(low, high, log, step).parameter()
    if step is not None:
        raise has_no_steps(name)
    return FloatDistribution(low, high, log).parameter()


def has_no_steps(name: str) -> ValueError:
    """The error of a float that has a step."""
    return ValueError(f"{name}: a float cannot have steps: give its values as choices")


def as_json(value: Any) -> Any:
    """The value as it comes back from JSON: tuples are lists."""
    return json.loads(json.dumps(value))


def choice_of(choices: Sequence[Any], value: Any) -> Any:
    """The caller's own object for a value that came as JSON."""
    for choice in choices:
        normal = as_json(choice)
        if normal == value and isinstance(normal, bool) == isinstance(value, bool):
            return choice
    return value


def _values_of(parameter: Mapping[str, Any]) -> Dict[str, Any]:
    """The parameter without its condition, and without what is a default."""
    defaults = {"log": False, "step": 1}
    names = ("choice", "int", "uniform", "loguniform", *defaults)
    values = {name: as_json(parameter[name]) for name in names if name in parameter}
    return {name: value for name, value in values.items() if defaults.get(name) != value}


def check_same(name: str, parameter: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    """Raises ValueError if a trial asks for other values than the space has."""
    ours, theirs = _values_of(parameter), _values_of(asked)
    if ours != theirs:
        raise ValueError(
            f"{name}: the trial asks for {json.dumps(theirs)}, and the study's space has {json.dumps(ours)}; "
            "the values of a parameter cannot change within a study"
        )


def unknown(name: str, names: Sequence[str], absent: Optional[str]) -> ValueError:
    """The error of a name that the trial has no value for."""
    if absent is not None:
        return ValueError(
            f"{name}: it exists only where {absent}, which does not hold in this trial"
        )
    return ValueError(
        f"{name} is not in the study's space, which has {', '.join(names)}; parameters that not every trial "
        f'asks for must be given, with their condition: create_study(space={{..., "{name}": {{..., '
        '"when": {NAME: VALUE}}}) (docs/tune.md)'
    )
