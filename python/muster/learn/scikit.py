"""scikit-learn's base classes, exceptions and warnings, or small replacements if it is missing."""

from __future__ import annotations

import inspect
from typing import Any, Dict, List

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.exceptions import DataConversionWarning, NotFittedError
except ImportError:

    class BaseEstimator:  # type: ignore[no-redef]
        """Provides the parameters of __init__ by name."""

        @classmethod
        def _parameter_names(cls) -> List[str]:
            names = inspect.signature(cls.__init__).parameters
            return sorted(name for name in names if name != "self")

        def get_params(self, deep: bool = True) -> Dict[str, Any]:
            return {name: getattr(self, name) for name in self._parameter_names()}

        def set_params(self, **params: Any) -> Any:
            for name, value in params.items():
                if name not in self._parameter_names():
                    raise ValueError(
                        f"Invalid parameter {name!r} for estimator {self}. Valid parameters are: "
                        f"{self._parameter_names()!r}."
                    )
                setattr(self, name, value)
            return self

        def __repr__(self) -> str:
            parameters = inspect.signature(type(self).__init__).parameters
            changed = [
                f"{name}={getattr(self, name)!r}"
                for name in self._parameter_names()
                if getattr(self, name) != parameters[name].default
            ]
            return f"{type(self).__name__}({', '.join(changed)})"

    class ClassifierMixin:  # type: ignore[no-redef]
        """Provides the share of rows that a classifier gets right."""

        _estimator_type = "classifier"

        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
            import numpy as np

            right = np.asarray(y).reshape(-1) == self.predict(X)  # type: ignore[attr-defined]
            return float(np.average(right, weights=sample_weight))

    class RegressorMixin:  # type: ignore[no-redef]
        """Provides the coefficient of determination of a regressor."""

        _estimator_type = "regressor"

        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
            import numpy as np

            wanted = np.asarray(y, dtype=np.float64).reshape(-1)
            errors = wanted - self.predict(X)  # type: ignore[attr-defined]
            spread = wanted - np.average(wanted, weights=sample_weight)
            left = np.average(errors**2, weights=sample_weight)
            total = np.average(spread**2, weights=sample_weight)
            return float(1 - left / total) if total > 0 else float(left == 0)

    class NotFittedError(ValueError, AttributeError):  # type: ignore[no-redef]
        """Raised if predict is called before fit."""

    class DataConversionWarning(UserWarning):  # type: ignore[no-redef]
        """Warns about data in another shape than expected."""


__all__ = [
    "BaseEstimator",
    "ClassifierMixin",
    "DataConversionWarning",
    "NotFittedError",
    "RegressorMixin",
]
