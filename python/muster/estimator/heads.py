"""Heads: what a model learns and predicts, with the names and arguments of tf.estimator's classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, List, Optional, Sequence, Tuple

from muster import columns as fc
from muster.normalizer import Normalizer
from muster.tensorflow_columns import ours

SUM = "sum"
_SUM_OVER_BATCH_SIZE = "sum_over_batch_size"
# The values of tf.keras.losses.Reduction and tf.compat.v1.losses.Reduction.
_REDUCTIONS = {
    SUM: True,
    "weighted_sum": True,
    _SUM_OVER_BATCH_SIZE: False,
    "weighted_sum_over_batch_size": False,
}


@dataclass(frozen=True)
class Head:
    """A head, made by the functions below. `kind` is its name in the model file."""

    kind: Any = "binary"
    n_classes: int = 2  # 0 for a regression
    words: Optional[Sequence[str]] = None
    weight: Optional[str] = None
    multi_label: bool = False
    label_dimension: int = 1
    thresholds: Tuple[float, ...] = ()
    sums: bool = False  # the loss of a batch is the sum over its rows, not the mean

    @property
    def regression(self) -> bool:
        return self.n_classes == 0

    def classes(self) -> Optional[List[str]]:
        """Returns the names of the classes; None for a regression."""
        if self.regression:
            return None
        return list(self.words) if self.words else [str(i) for i in range(self.n_classes)]


def BinaryClassHead(
    weight_column: Any = None,
    thresholds: Optional[Sequence[float]] = None,
    label_vocabulary: Optional[Sequence[str]] = None,
    loss_reduction: Any = _SUM_OVER_BATCH_SIZE,
    loss_fn: Any = None,
    name: Optional[str] = None,
) -> Head:
    sums = _check(loss_reduction, loss_fn)
    words = _words(label_vocabulary, 2)
    checked = _check_thresholds(thresholds)
    return Head("binary", 2, words, _weight(weight_column), thresholds=checked, sums=sums)


def MultiClassHead(
    n_classes: int,
    weight_column: Any = None,
    label_vocabulary: Optional[Sequence[str]] = None,
    loss_reduction: Any = _SUM_OVER_BATCH_SIZE,
    loss_fn: Any = None,
    name: Optional[str] = None,
) -> Head:
    sums = _check(loss_reduction, loss_fn)
    if n_classes is None or n_classes <= 2:
        raise ValueError(f"n_classes must be > 2: {n_classes}.")
    kind = {"multi_class": {"classes": n_classes}}
    words = _words(label_vocabulary, n_classes)
    return Head(kind, n_classes, words, _weight(weight_column), sums=sums)


def MultiLabelHead(
    n_classes: int,
    weight_column: Any = None,
    thresholds: Optional[Sequence[float]] = None,
    label_vocabulary: Optional[Sequence[str]] = None,
    loss_reduction: Any = _SUM_OVER_BATCH_SIZE,
    loss_fn: Any = None,
    classes_for_class_based_metrics: Any = None,
    name: Optional[str] = None,
) -> Head:
    """Labels are n_classes values of 0 or 1, or a sparse or ragged column of words or class
    numbers."""
    sums = _check(loss_reduction, loss_fn)
    if n_classes is None or n_classes < 2:
        raise ValueError(
            f"n_classes must be > 1 for multi-label classification. Given: {n_classes}"
        )
    if classes_for_class_based_metrics is not None:
        raise ValueError("classes_for_class_based_metrics: say 'metrics' in a model file instead")
    kind = {"multi_label": {"classes": n_classes}}
    words = _words(label_vocabulary, n_classes)
    checked = _check_thresholds(thresholds)
    weight = _weight(weight_column)
    return Head(kind, n_classes, words, weight, True, thresholds=checked, sums=sums)


def RegressionHead(
    label_dimension: int = 1,
    weight_column: Any = None,
    loss_reduction: Any = _SUM_OVER_BATCH_SIZE,
    loss_fn: Any = None,
    inverse_link_fn: Any = None,
    name: Optional[str] = None,
) -> Head:
    if inverse_link_fn is not None:
        raise ValueError(
            "inverse_link_fn: Muster predicts the mean itself; or PoissonRegressionHead"
        )
    sums = _check(loss_reduction, loss_fn)
    return _regression("mean_squared", label_dimension, weight_column, sums)


def PoissonRegressionHead(
    label_dimension: int = 1,
    weight_column: Any = None,
    loss_reduction: Any = _SUM_OVER_BATCH_SIZE,
    compute_full_loss: bool = True,
    name: Optional[str] = None,
) -> Head:
    if not compute_full_loss:
        raise ValueError("compute_full_loss=False: Muster's Poisson loss is the full one")
    sums = _check(loss_reduction, None)
    return _regression("poisson", label_dimension, weight_column, sums)


def LogisticRegressionHead(
    weight_column: Any = None,
    loss_reduction: Any = _SUM_OVER_BATCH_SIZE,
    name: Optional[str] = None,
) -> Head:
    """Labels are probabilities, from 0 to 1; predicts the probability."""
    sums = _check(loss_reduction, None)
    return _regression("logistic", 1, weight_column, sums)


def binary_or_multi_class(
    n_classes: int,
    weight_column: Any,
    label_vocabulary: Optional[Sequence[str]],
    loss_reduction: Any,
) -> Head:
    """Returns the head of a canned classifier."""
    if n_classes is None or n_classes < 2:
        raise ValueError(f"n_classes must be > 1 for classification: {n_classes}.")
    if n_classes == 2:
        return BinaryClassHead(weight_column, None, label_vocabulary, loss_reduction)
    return MultiClassHead(n_classes, weight_column, label_vocabulary, loss_reduction)


def _regression(loss: str, label_dimension: int, weight_column: Any, sums: bool) -> Head:
    if label_dimension < 1:
        raise ValueError(f"Invalid label_dimension {label_dimension}.")
    kind = {"regression": {"loss": loss, "label_dimension": label_dimension}}
    weight = _weight(weight_column)
    return Head(kind, 0, None, weight, label_dimension=label_dimension, sums=sums)


def _check(loss_reduction: Any, loss_fn: Any) -> bool:
    """Returns whether the loss is the sum over the batch; refuses what the program does not have.
    """
    given = str(getattr(loss_reduction, "value", loss_reduction))
    if given not in _REDUCTIONS:
        raise ValueError(
            f"loss_reduction {loss_reduction}: Muster's loss is the mean over the batch, "
            f"'{_SUM_OVER_BATCH_SIZE}', or its sum, '{SUM}', of rows times their weights"
        )
    if loss_fn is not None:
        raise ValueError("loss_fn is TensorFlow code; a loss of your own is C++ (docs/python.md)")
    return _REDUCTIONS[given]


def _check_thresholds(given: Optional[Sequence[float]]) -> Tuple[float, ...]:
    for threshold in given or ():
        if not 0 < threshold < 1:
            raise ValueError(f"thresholds not in (0, 1): {list(given or ())}.")
    return tuple(given or ())


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
    given = ours(given)
    if isinstance(given, fc.NumericColumn):
        if given.normalizer != Normalizer():
            raise ValueError(
                f"weight_column '{given.key}': weights are taken as they are, without normalizer_fn"
            )
        return given.key
    raise TypeError(
        f"Weight column must be either a string or NumericColumn. Given type: {type(given)}."
    )
