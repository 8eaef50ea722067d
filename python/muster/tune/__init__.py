"""Hyper-parameter searches of `muster tune` for functions of Python, in Optuna's words. docs/tune.md
describes them.

    from muster import tune

    def objective(trial):
        x = trial.suggest_float("x", -10, 10)
        return (x - 2) ** 2

    study = tune.create_study()
    study.optimize(objective, n_trials=50)
    print(study.best_params)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from muster.tune import words
from muster.tune.space import CategoricalDistribution, FloatDistribution, IntDistribution
from muster.tune.study import Study, create_study, get_param_importances
from muster.tune.trial import FrozenTrial, Trial, TrialPruned

__all__ = [
    "CategoricalDistribution",
    "FloatDistribution",
    "FrozenTrial",
    "IntDistribution",
    "Study",
    "Trial",
    "TrialPruned",
    "create_study",
    "get_param_importances",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        raise words.absent("the module", name, words.MODULE)
