"""y and sample weights, checked."""

from __future__ import annotations

import warnings
from typing import Any, Mapping, Optional, Union

import numpy as np

from muster.learn.scikit import DataConversionWarning

ClassWeight = Union[None, str, Mapping[Any, float]]


def vector(y: Any, rows: int, owner: str) -> Any:
    """Returns y as an array with one value per row. Raises ValueError for anything else."""
    if y is None:
        raise ValueError(
            f"This {owner} estimator requires y to be passed, but the target y is None."
        )
    if hasattr(y, "to_numpy"):  # of pandas or Arrow
        array = np.asarray(y.to_numpy())
    else:
        array = np.asarray(y)
    if array.ndim == 2 and array.shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected. Please change the shape of "
            "y to (n_samples, ), for example using ravel().",
            DataConversionWarning,
            stacklevel=4,
        )
        array = array.ravel()
    if array.ndim != 1:
        raise ValueError(f"y should be a 1d array, got an array of shape {array.shape} instead.")
    if len(array) != rows:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: {[rows, len(array)]}"
        )
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported\n{array}\n")
    if array.dtype.kind == "f":
        if np.isnan(array).any():
            raise ValueError("Input y contains NaN.")
        if np.isinf(array).any():
            raise ValueError(
                "Input y contains infinity or a value too large for dtype('float64')."
            )
    if array.dtype == object and any(value is None or value != value for value in array):
        raise ValueError("Input y contains NaN.")
    return array


def numbers(y: Any, rows: int, owner: str) -> Any:
    """Returns y as float64."""
    array = vector(y, rows, owner)
    try:
        array = array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"y of a regressor must be numbers: {error}") from None
    return array


def classes(y: Any, rows: int, owner: str) -> Any:
    """Returns y as an array whose distinct values are classes."""
    array = vector(y, rows, owner)
    if array.dtype.kind == "f" and (array != np.floor(array)).any():
        raise ValueError(
            "Unknown label type: continuous. Maybe you are trying to fit a classifier, which "
            "expects discrete classes on a regression target with continuous values."
        )
    if array.dtype == object:
        try:
            array = np.array(array.tolist()) if _is_plain(array) else array
            np.unique(array)
        except TypeError:
            raise ValueError("Unknown label type: unknown. y mixes types that have no order") from None
    return array


def _is_plain(array: Any) -> bool:
    return all(isinstance(value, (bool, int, np.integer)) for value in array)


def places(y: Any, known: Any) -> Any:
    """Returns the index of each value of y in `known`, which is sorted. Raises ValueError for
    unknown values."""
    found = np.searchsorted(known, y)
    found = np.minimum(found, len(known) - 1)
    strange = known[found] != y
    if np.any(strange):
        raise ValueError(
            f"eval_set: y has the class {y[strange][0]!r}, which the training's y does not have; its "
            f"classes are {known.tolist()}"
        )
    return found


def weights(given: Any, rows: int) -> Optional[Any]:
    """sample_weight as float64, or None. A number counts for all rows."""
    if given is None:
        return None
    array = np.asarray(given.to_numpy() if hasattr(given, "to_numpy") else given, np.float64)
    if array.ndim == 0:
        array = np.full(rows, float(array))
    if array.ndim != 1:
        raise ValueError("Sample weights must be 1D array or scalar")
    if array.shape != (rows,):
        raise ValueError(f"sample_weight.shape == {array.shape}, expected {(rows,)}!")
    if not np.isfinite(array).all():
        raise ValueError("Input sample_weight contains NaN or infinity.")
    if (array < 0).any():
        raise ValueError("Negative values in data passed to `sample_weight`.")
    if not array.any():
        raise ValueError("sample_weight: every weight is 0, so that there is nothing to learn from")
    return array


def with_class_weight(
    given: ClassWeight, y: Any, known: Any, sample_weight: Optional[Any]
) -> Optional[Any]:
    """Weights of rows, multiplied by those of their classes; `y` are places in `known`."""
    if given is None:
        return sample_weight
    if isinstance(given, str):
        if given != "balanced":
            raise ValueError(f"class_weight {given!r}: None, 'balanced' or a dict by class is wanted")
        counts = np.bincount(y, minlength=len(known))
        by_class = len(y) / (len(known) * np.maximum(counts, 1))
    else:
        strange = [name for name in given if name not in known.tolist()]
        if strange:
            raise ValueError(f"class_weight: y has no class {strange[0]!r}; it has {known.tolist()}")
        by_class = np.array([float(given.get(name, 1.0)) for name in known.tolist()])
        if not np.isfinite(by_class).all() or (by_class < 0).any():
            raise ValueError(f"class_weight: weights are finite and not negative: {dict(given)}")
    rows = by_class[y]
    return rows if sample_weight is None else rows * sample_weight
