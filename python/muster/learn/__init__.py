"""Classifier and Regressor in the style of scikit-learn. docs/scikit-learn.md describes them.

    from muster import Classifier
    model = Classifier().fit(X, y)                  # arrays, pandas DataFrames, Arrow tables
    model.predict_proba(X)

They need numpy. If scikit-learn can be imported, they derive from its BaseEstimator and mixins.
"""

from __future__ import annotations

from muster.learn.classifier import Classifier
from muster.learn.regressor import Regressor

__all__ = ["Classifier", "Regressor"]
