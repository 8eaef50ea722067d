"""The data loss, computed by Keras as `compile(loss=...)` has it."""

from __future__ import annotations

from typing import Any, Dict, List

import keras

_MEANS = ("sum_over_batch_size", "mean")


class Loss:
    """What `loss` and `loss_weights` of a compiled model compute from labels and predictions."""

    def __init__(self, model: Any, loss: Any, loss_weights: Any) -> None:
        if loss is None:
            raise ValueError("loss: what `compile` takes is wanted, not None")
        self._flat = [one for one in keras.tree.flatten(loss) if one is not None]
        self.by_rows = self._reductions()
        self._carrier = keras.Model(name="loss")
        names = getattr(model, "output_names", None)
        if names is not None:
            self._carrier.output_names = names
        self._carrier.compile(loss=loss, loss_weights=loss_weights, metrics=None)

    def __call__(self, labels: Any, predictions: Any, sample_weight: Any) -> Any:
        """A scalar, without what the model's layers add."""
        return self._carrier.compute_loss(y=labels, y_pred=predictions, sample_weight=sample_weight)

    @property
    def sparse(self) -> bool:
        """Whether labels are numbers of classes."""
        return any("sparse" in name.lower() for name in self._names())

    def manifest(self, separable: bool) -> Dict[str, Any]:
        names = self._names()
        return {"name": names[0] if len(names) == 1 else "several", "separable": separable}

    def separable(self, weighted: bool, masked: bool) -> bool:
        """Whether the loss is a mean over rows (or their sum), whatever the rows."""
        by_weight = any(
            getattr(one, "reduction", None) == "mean_with_sample_weight" for one in self._flat
        )
        return not masked and not (by_weight and weighted)

    def _names(self) -> List[str]:
        names = []
        for one in self._flat:
            if isinstance(one, str):
                names.append(one)
            elif type(one).__module__.startswith("keras."):
                names.append(type(one).__name__)
            elif getattr(one, "__module__", "").startswith("keras."):
                names.append(one.__name__)
            else:
                names.append("custom")
        return names

    def _reductions(self) -> bool:
        """Whether it is a mean over rows, and not their sum."""
        found = set()
        for one in self._flat:
            reduction = getattr(one, "reduction", "sum_over_batch_size")
            if reduction in (None, "none"):
                raise ValueError(
                    f"loss {self._names()[0]}: reduction={reduction!r} gives no number to minimise: "
                    "use 'sum_over_batch_size'"
                )
            found.add(reduction != "sum")
        if len(found) > 1:
            raise ValueError(
                "loss: some are sums and some are means over the batch's rows: use the same "
                "reduction for all"
            )
        return found.pop()
