"""What a head's arguments mean in a model file."""

from __future__ import annotations

from typing import Any, Optional, Sequence

from muster import columns as fc
from muster.estimator.model import Head
from muster.normalizer import Normalizer


def binary_or_multi_class(
    n_classes: int, weight_column: Any, label_vocabulary: Optional[Sequence[str]]
) -> Head:
    if n_classes is None or n_classes < 2:
        raise ValueError(f"n_classes must be > 1 for classification: {n_classes}.")
    words = _words(label_vocabulary, n_classes)
    weight = _weight(weight_column)
    if n_classes == 2:
        return Head("binary", 2, words, weight)
    return Head({"multi_class": {"classes": n_classes}}, n_classes, words, weight)


def regression(label_dimension: int, weight_column: Any) -> Head:
    if label_dimension < 1:
        raise ValueError(f"Invalid label_dimension {label_dimension}.")
    if label_dimension > 1:
        raise ValueError(
            f"label_dimension {label_dimension}: Muster's regression learns one number; train a "
            "model for each"
        )
    return Head("regression", 0, None, _weight(weight_column))


def _words(given: Optional[Sequence[str]], n_classes: int) -> Optional[Sequence[str]]:
    if given is None:
        return None
    if isinstance(given, (str, bytes)) or not hasattr(given, "__iter__"):
        raise ValueError(f"label_vocabulary should be a list or a tuple. Given type: {type(given)}")
    words = [word.decode() if isinstance(word, bytes) else str(word) for word in given]
    if len(words) != n_classes:
        raise ValueError(
            f"Length of label_vocabulary must equal to n_classes: {len(words)} words, "
            f"{n_classes} classes"
        )
    return words


def _weight(given: Any) -> Optional[str]:
    if given is None:
        return None
    if isinstance(given, str):
        return given
    if isinstance(given, fc.NumericColumn):
        if given.normalizer != Normalizer():
            raise ValueError(
                f"weight_column '{given.key}': weights are taken as they are, without normalizer_fn"
            )
        return given.key
    raise TypeError(
        f"Weight column must be either a string or NumericColumn. Given type: {type(given)}."
    )
