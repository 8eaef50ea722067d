"""Classifier and Regressor in scikit-learn's manner. docs/scikit-learn.md describes them.

    from muster import Classifier
    model = Classifier().fit(X, y)                  # arrays, pandas DataFrames, Arrow tables
    model.predict_proba(X)

numpy is needed. Where scikit-learn is importable the classes derive from its BaseEstimator and mixins.
"""

from __future__ import annotations

from muster.learn.classifier import Classifier
from muster.learn.regressor import Regressor

__all__ = ["Classifier", "Regressor"]
