"""The loss that is minimised, computed by Keras as in `compile(loss=...)` and `compute_loss`."""

from __future__ import annotations

import contextlib
import inspect
from typing import Any, Dict, Iterator, List, Tuple

import keras
import numpy as np
import tensorflow as tf

_NO_LOSS = (
    "loss: there is none: give what `compile` takes; None is for a model whose layers add losses "
    "(add_loss) or that has its own compute_loss"
)


class Loss:
    """The loss of a compiled model: from `loss` and `loss_weights` and what the model's layers add,
    or from a custom compute_loss.

    by_rows: it is a mean over rows, and not their sum.
    separable: it is one or the other, whatever else is in the batch.

    `examine` finds out what the arguments do not show.
    """

    def __init__(self, model: Any, loss: Any, loss_weights: Any) -> None:
        self._model = model
        self.own = type(model).compute_loss is not keras.Model.compute_loss
        self._flat = [one for one in keras.tree.flatten(loss) if one is not None]
        self.separable = True
        self.by_rows = self._reductions()
        self._carrier = None
        if not self._flat:
            return
        self._carrier = keras.Model(name="loss")
        names = getattr(model, "output_names", None)
        if names is not None:
            self._carrier.output_names = names
        self._carrier.compile(loss=loss, loss_weights=loss_weights, metrics=None)

    def __call__(
        self, inputs: Any, labels: Any, predictions: Any, sample_weight: Any, training: bool
    ) -> Tuple[Any, Any]:
        """Returns two scalars for a model that was just called: the loss without and with what its
        layers add. With a custom compute_loss, which may contain both, they are equal."""
        if self.own:
            whole = self._scalar(self._own(inputs, labels, predictions, sample_weight, training))
            return whole, whole
        data = tf.zeros((), tf.float32)
        if self._carrier is not None:
            data = self._scalar(
                self._carrier.compute_loss(y=labels, y_pred=predictions, sample_weight=sample_weight)
            )
        added = [tf.reduce_sum(tf.cast(loss, tf.float32)) for loss in self._model.losses]
        if not added:
            if self._carrier is None:
                raise ValueError(_NO_LOSS)
            return data, data
        if not self.by_rows:
            raise ValueError(
                "loss: its reduction is 'sum', and the model's layers add losses of their own, which "
                "each replica would add: use 'sum_over_batch_size'"
            )
        return data, tf.add_n([data, *added])

    @property
    def wants_labels(self) -> bool:
        """Whether labels are required. A custom compute_loss may do without."""
        return self._carrier is not None

    @property
    def weighs_rows(self) -> bool:
        """Whether the weights of rows only multiply their losses."""
        return not self.own and len(self._flat) == 1 and not self._by_weight()

    @property
    def sparse(self) -> bool:
        """Whether labels are class numbers."""
        return any("sparse" in name.lower() for name in self._names())

    def manifest(self, masked: bool, weighted: bool) -> Dict[str, Any]:
        names = self._names()
        name = names[0] if len(names) == 1 else "several"
        if self.own:
            name = "custom"
        elif not names:
            name = "added"
        return {"name": name, "separable": self._is_separable(masked, weighted)}

    @property
    def by_rows_alone(self) -> bool:
        """Whether it is certainly a mean over rows: a user's function may divide by something that
        only some batches have (a mask), which no example shows."""
        return self.by_rows and not self.own and "custom" not in self._names()

    def examine(self, whole: Any, parts: List[Any], rows: List[int], tolerance: float) -> None:
        """Finds out the rest from the loss of a batch and of its parts, which have `rows` rows
        each."""
        allowed = tolerance * abs(whole) + 1e-7
        mean = abs(float(np.dot(parts, rows)) / sum(rows) - whole) <= allowed
        total = abs(sum(parts) - whole) <= allowed
        if self.own:
            self.by_rows = mean or not total
        self.separable = mean if self.by_rows else total

    def _is_separable(self, masked: bool, weighted: bool) -> bool:
        """A custom compute_loss may divide by the sum of the weights, which an example hardly shows
        if all rows have about the same loss."""
        by_weight = self.own or self._by_weight()
        return self.separable and not masked and not (by_weight and weighted)

    def _by_weight(self) -> bool:
        return any(
            getattr(one, "reduction", None) == "mean_with_sample_weight" for one in self._flat
        )

    def _own(
        self, inputs: Any, labels: Any, predictions: Any, sample_weight: Any, training: bool
    ) -> Any:
        compute = self._model.compute_loss
        options = {}
        parameters = inspect.signature(compute).parameters.values()
        if any(p.name == "training" or p.kind is p.VAR_KEYWORD for p in parameters):
            options["training"] = training
        with self._compiled():
            return compute(inputs, labels, predictions, sample_weight, **options)

    @contextlib.contextmanager
    def _compiled(self) -> Iterator[None]:
        """Makes the model's super().compute_loss use the loss that was given, not one of `compile`.
        """
        attributes = vars(self._model)
        before = attributes.get("_compile_loss")
        attributes["_compile_loss"] = self._carrier and self._carrier._compile_loss
        try:
            yield
        finally:
            attributes["_compile_loss"] = before

    def _scalar(self, value: Any) -> Any:
        value = tf.cast(tf.convert_to_tensor(value), tf.float32)
        if value.shape.rank != 0:
            raise ValueError(f"loss: gives {value.shape} numbers a batch, not one: take their mean")
        return value

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
        """Returns whether it is a mean over rows, and not their sum."""
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
        return found.pop() if found else True
