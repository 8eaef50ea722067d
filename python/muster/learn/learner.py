"""What Classifier and Regressor have in common: parameters, the model file, fit."""

from __future__ import annotations

import os
import pathlib
import warnings
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Tuple

import numpy as np

from muster.batch_stream import StreamColumn
from muster.cells import FLOAT
from muster.learn import runs, tables, targets
from muster.learn.features import Features, free_name
from muster.learn.scikit import BaseEstimator, NotFittedError
from muster.learn.tables import Table

_MODELS = ("linear", "dnn", "wide_deep")
_OPTIMIZERS = ("adam", "adagrad", "ftrl", "rmsprop", "sgd")
_ACTIVATIONS = ("relu", "tanh", "sigmoid", "linear")
_SCHEDULES = ("cosine", "constant")
# The default number of steps of a training, and bounds of the default number of epochs.
_LINEAR_STEPS, _LINEAR_EPOCHS = 2500, (5, 100)
_STEPS, _EPOCHS = 1000, (5, 100)
_L2_ROWS = 5.0  # the default of l2 is this divided by the number of rows
_BATCH = (16, 256)
_BATCHES = 50  # per epoch, by default, if there are few rows
_LEAST_RATE = 0.01  # the share of the learning rate at the end of its schedule


@dataclass
class Labels:
    """The labels of rows as columns of the stream, the head, and what else is known about them."""

    values: Any
    type: str
    head: Any
    entry: Mapping[str, Any]  # further keys of the model file's label
    name: str


class Learner(BaseEstimator):  # type: ignore[misc]
    """Base of Classifier and Regressor. One thread at a time."""

    def __init__(
        self,
        model: str = "dnn",
        hidden: Any = (64, 32),
        *,
        activation: str = "relu",
        dropout: float = 0.0,
        l2: Optional[float] = None,
        optimizer: str = "adam",
        learning_rate: Optional[float] = None,
        schedule: str = "cosine",
        epochs: Optional[int] = None,
        batch_size: Optional[int] = None,
        early_stopping: bool = False,
        n_iter_no_change: int = 10,
        validation_fraction: float = 0.1,
        seed: int = 1,
        n_jobs: Optional[int] = None,
        verbose: bool = False,
    ) -> None:
        self.model = model
        self.hidden = hidden
        self.activation = activation
        self.dropout = dropout
        self.l2 = l2
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.epochs = epochs
        self.batch_size = batch_size
        self.early_stopping = early_stopping
        self.n_iter_no_change = n_iter_no_change
        self.validation_fraction = validation_fraction
        self.seed = seed
        self.n_jobs = n_jobs
        self.verbose = verbose

    def save(self, folder: Any) -> None:
        """Writes the model into the new folder `folder`, for `muster predict`.

        Raises FileExistsError if the folder exists.
        """
        self._check_fitted()
        path = pathlib.Path(folder)
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            raise FileExistsError(
                f"save: '{path}' exists, and an old model is not replaced: give the name of a new "
                "folder, or remove this one first"
            ) from None
        runs.write_model(self.model_files_, path)

    def _labels(self, y: Any, rows: int) -> Labels:
        """Checks y, and keeps what predictions need of it."""
        raise NotImplementedError

    def _more_labels(self, y: Any, rows: int) -> Any:
        """Returns the values of an eval_set's y in the form that `_labels` returns."""
        raise NotImplementedError

    def _row_weights(self, labels: Labels, sample_weight: Optional[Any]) -> Optional[Any]:
        return sample_weight

    def _fit(self, X: Any, y: Any, sample_weight: Any, eval_set: Any) -> None:
        self._check_parameters()
        self.__dict__.pop("model_files_", None)
        table = tables.read(X, type(self).__name__)
        labels = self._labels(y, table.rows)
        weights = targets.weights(sample_weight, table.rows)
        weights = self._row_weights(labels, weights)

        self.n_features_in_ = table.width
        self.__dict__.pop("feature_names_in_", None)
        if table.names is not None:
            self.feature_names_in_ = np.array(table.names, dtype=object)
        features = Features.fit(table)
        taken = {*(column.name for column in features.stream_columns()), *features.parts().columns}
        label = free_name(labels.name, taken)
        weight = None if weights is None else free_name("weight", taken)
        self.features_ = features
        self.shifts_ = features.shifts()

        data = {**features.encode(table), label: labels.values}
        if weights is not None:
            data[str(weight)] = weights / weights.mean()
        evaluation = None
        if eval_set is not None:
            evaluation = self._evaluation(eval_set, label, weight)
        elif self.early_stopping:
            data, evaluation = self._split(data, table.rows)

        rows = len(data[label])
        how = self._training(rows)
        stream = [*features.stream_columns(), StreamColumn(label, labels.type)]
        stream += [] if weight is None else [StreamColumn(weight, FLOAT)]
        spec = self._spec(labels, label, weight, rows, how)
        with runs.shown(self.verbose):
            self.model_files_, self.evaluations_ = runs.train(spec, stream, data, evaluation, how)

    def _output(self, X: Any, output: str) -> Any:
        """Returns the program's predictions, as float64 [rows, values]."""
        self._check_fitted()
        table = tables.read(X, type(self).__name__)
        self._check_features(table)
        data = self.features_.encode(table)
        stream = self.features_.stream_columns()
        return runs.predict(self.model_files_, stream, data, output, self._threads())

    def _spec(
        self, labels: Labels, label: str, weight: Optional[str], rows: int, how: runs.Training
    ) -> Dict[str, Any]:
        """Returns the model file."""
        steps = how.epochs * -(-rows // how.batch_size)
        parts = self.features_.parts()
        model: Dict[str, Any] = {"type": self.model}
        if self.model != "dnn":
            rate = self.learning_rate or 0.01
            model["linear"] = {"columns": parts.linear, "optimizer": self._optimizer(rate, steps)}
        if self.model != "linear":
            rate = self.learning_rate or 0.003
            model["dnn"] = {
                "columns": parts.dnn,
                "hidden_units": self._hidden(),
                "activation": self.activation,
                "dropout": float(self.dropout),
                "l2": _L2_ROWS / rows if self.l2 is None else float(self.l2),
                "optimizer": self._optimizer(rate, steps),
            }
        inputs: Dict[str, Any] = {**parts.inputs, label: {"type": labels.type}}
        spec: Dict[str, Any] = {"inputs": inputs, "label": {"input": label, **labels.entry}}
        if weight is not None:
            inputs[weight] = {"type": FLOAT, "default": 1}
            spec["weight"] = weight
        return {**spec, "columns": parts.columns, "model": model, "head": labels.head}

    def _optimizer(self, rate: float, steps: int) -> Dict[str, Any]:
        value: Any = float(rate)
        if self.schedule == "cosine":
            value = {
                "cosine": {"initial": float(rate), "decay_steps": steps, "alpha": _LEAST_RATE}
            }
        return {self.optimizer: {"learning_rate": value}}

    def _training(self, rows: int) -> runs.Training:
        batch = self.batch_size
        if batch is None:
            batch = min(max(rows // _BATCHES, _BATCH[0]), _BATCH[1])
        epochs = self.epochs
        if epochs is None:
            steps, (least, most) = _STEPS, _EPOCHS
            if self.model == "linear":
                steps, (least, most) = _LINEAR_STEPS, _LINEAR_EPOCHS
            epochs = min(max(round(steps * batch / rows), least), most)
        patience = int(self.n_iter_no_change) if self.early_stopping else None
        return runs.Training(
            int(batch), int(epochs), int(self.seed), self._threads(), patience, not self.verbose
        )

    def _evaluation(self, given: Any, label: str, weight: Optional[str]) -> Dict[str, Any]:
        """Returns the columns of an eval_set: (X, y) or (X, y, sample_weight), or a list of one of
        them."""
        if isinstance(given, list) and len(given) == 1:
            given = given[0]
        if not isinstance(given, (tuple, list)) or len(given) not in (2, 3):
            raise ValueError("eval_set: (X, y) or (X, y, sample_weight) is wanted, or a list of one")
        table = tables.read(given[0], type(self).__name__)
        self._check_features(table)
        data = self.features_.encode(table)
        data[label] = self._more_labels(given[1], table.rows)
        weights = targets.weights(given[2] if len(given) == 3 else None, table.rows)
        if weight is not None:
            data[weight] = np.ones(table.rows) if weights is None else weights / weights.mean()
        elif weights is not None:
            raise ValueError("eval_set has a sample_weight: fit's training data needs one too")
        return data

    def _split(self, data: Dict[str, Any], rows: int) -> Tuple[Dict[str, Any], Dict[str, Any]]:
        """Splits the rows at random, by the seed, into rows to train on and rows to evaluate on."""
        held = round(rows * self.validation_fraction)
        if not 0 < held < rows:
            raise ValueError(
                f"early_stopping: validation_fraction {self.validation_fraction} of {rows} rows "
                "leaves no rows to evaluate on, or none to train on"
            )
        order = np.random.default_rng(int(self.seed)).permutation(rows)
        first, second = np.sort(order[held:]), np.sort(order[:held])
        return (
            {name: values[first] for name, values in data.items()},
            {name: values[second] for name, values in data.items()},
        )

    def _threads(self) -> int:
        if self.n_jobs is None:
            return 1
        cores = os.cpu_count() or 1
        return max(1, int(self.n_jobs) if self.n_jobs > 0 else cores + 1 + int(self.n_jobs))

    def _hidden(self) -> List[int]:
        units = [self.hidden] if isinstance(self.hidden, (int, np.integer)) else self.hidden
        return [int(size) for size in units]

    def _check_parameters(self) -> None:
        for name, allowed in (
            ("model", _MODELS),
            ("optimizer", _OPTIMIZERS),
            ("activation", _ACTIVATIONS),
            ("schedule", _SCHEDULES),
        ):
            if getattr(self, name) not in allowed:
                raise ValueError(
                    f"{name}={getattr(self, name)!r}: one of {', '.join(allowed)} is wanted"
                )
        for name in ("epochs", "batch_size", "n_iter_no_change"):
            value = getattr(self, name)
            if value is not None and (value != int(value) or value < 1):
                raise ValueError(f"{name}={value!r}: a whole number of at least 1 is wanted")
        if self.model != "linear" and not all(size > 0 for size in self._hidden()):
            raise ValueError(f"hidden={self.hidden!r}: sizes of layers are at least 1")
        if self.learning_rate is not None and not self.learning_rate > 0:
            raise ValueError(f"learning_rate={self.learning_rate!r}: it must be above 0")
        if self.l2 is not None and not self.l2 >= 0:
            raise ValueError(f"l2={self.l2!r}: it must be at least 0")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout={self.dropout!r}: it must be at least 0 and below 1")
        if self.n_jobs == 0:
            raise ValueError("n_jobs=0: None or 1 is one thread, -1 is a thread for each core")

    def _check_fitted(self) -> None:
        if "model_files_" not in self.__dict__:
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet. Call 'fit' with "
                "appropriate arguments before using this estimator."
            )

    def _check_features(self, table: Table) -> None:
        """Checks, as scikit-learn does and in its words, that X has the columns of fit's X."""
        owner = type(self).__name__
        fitted = self.__dict__.get("feature_names_in_")
        if fitted is not None and table.names is None:
            warnings.warn(
                f"X does not have valid feature names, but {owner} was fitted with feature names",
                UserWarning,
                stacklevel=4,
            )
        elif fitted is None and table.names is not None:
            warnings.warn(
                f"X has feature names, but {owner} was fitted without feature names",
                UserWarning,
                stacklevel=4,
            )
        elif fitted is not None and table.names is not None and table.names != list(fitted):
            raise ValueError(_other_names(list(fitted), table.names))
        if table.width != self.n_features_in_:
            raise ValueError(
                f"X has {table.width} features, but {owner} is expecting {self.n_features_in_} "
                "features as input."
            )

    def __sklearn_is_fitted__(self) -> bool:
        return "model_files_" in self.__dict__

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    def _more_tags(self) -> Dict[str, Any]:  # scikit-learn before 1.6
        return {"allow_nan": True, "X_types": ["2darray", "string", "categorical"]}


def _other_names(fitted: List[str], given: List[str]) -> str:
    message = "The feature names should match those that were passed during fit.\n"
    unseen = sorted(set(given) - set(fitted))
    missing = sorted(set(fitted) - set(given))
    for names, what in (
        (unseen, "Feature names unseen at fit time:\n"),
        (missing, "Feature names seen at fit time, yet now missing:\n"),
    ):
        if names:
            shown = names[:5]
            message += what + "".join(f"- {name}\n" for name in shown)
            message += "- ...\n" if len(names) > len(shown) else ""
    if not unseen and not missing:
        message += "Feature names must be in the same order as they were in fit.\n"
    return message
