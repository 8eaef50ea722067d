"""Classifier: a linear, deep or wide & deep model of classes."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np

from muster.cells import STRING
from muster.learn import targets
from muster.learn.learner import Labels, Learner
from muster.learn.scikit import ClassifierMixin


class Classifier(ClassifierMixin, Learner):  # type: ignore[misc]
    """A classifier that the muster program trains, with scikit-learn's methods.

    X is a numpy array, a list of rows, a pandas DataFrame or an Arrow table. Columns of numbers, truth
    values and times are standardised, and a missing number counts as the mean. Other columns are
    categories: up to 1,000 words become a vocabulary, more are hashed. y has two classes or more.

    Parameters
    ----------
    model : "dnn" (a network), "linear", or "wide_deep" (the sum of both).
    hidden : sizes of the network's hidden layers.
    activation : "relu", "tanh", "sigmoid" or "linear".
    dropout : the share of each hidden layer's outputs that a training step sets to 0.
    l2 : added to the loss: l2 times the sum of the squares of the network's weights. None is 5
        divided by the number of rows.
    optimizer : "adam", "adagrad", "ftrl", "rmsprop" or "sgd".
    learning_rate : None is 0.01 in the linear part and 0.003 in the network.
    schedule : "cosine" (the learning rate falls to a hundredth) or "constant".
    epochs : passes over the data. None is as many as take 1,000 steps, for a linear model
        2,500 steps, from 5 to 100 in all.
    batch_size : rows per step. None is a fiftieth of the rows, from 16 to 256.
    early_stopping : whether the training ends when its loss on the evaluation data (eval_set, else
        validation_fraction of the rows) has not become lower in n_iter_no_change epochs.
    seed : of the initial weights, the order of the rows and dropout.
    n_jobs : threads. None is 1, -1 is one for each core.
    verbose : whether progress is logged by the logger "muster", and shown on stderr if no logging is
        configured.
    class_weight : None, a dict of weights by class, or "balanced".

    Attributes
    ----------
    classes_ : the classes, in order.
    n_features_in_ : the number of columns of X.
    feature_names_in_ : the names of the columns, if X had names.
    evaluations_ : metrics of the evaluation data after each epoch, if there was any.
    model_files_ : the trained model, as files by name.
    """

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
        class_weight: targets.ClassWeight = None,
    ) -> None:
        super().__init__(
            model,
            hidden,
            activation=activation,
            dropout=dropout,
            l2=l2,
            optimizer=optimizer,
            learning_rate=learning_rate,
            schedule=schedule,
            epochs=epochs,
            batch_size=batch_size,
            early_stopping=early_stopping,
            n_iter_no_change=n_iter_no_change,
            validation_fraction=validation_fraction,
            seed=seed,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.class_weight = class_weight

    def fit(self, X: Any, y: Any, sample_weight: Any = None, eval_set: Any = None) -> Classifier:
        """Trains anew. With `eval_set`, (X, y) or (X, y, sample_weight), the model is the one after
        the epoch with the lowest loss on it."""
        self._fit(X, y, sample_weight, eval_set)
        return self

    def decision_function(self, X: Any) -> Any:
        """Returns logits: [rows] for the second of two classes, or [rows, classes]."""
        logits = self._output(X, "logits")
        return logits[:, 0] if len(self.classes_) == 2 else logits

    def predict_proba(self, X: Any) -> Any:
        """Returns probabilities [rows, classes], in the order of `classes_`."""
        logits = self.decision_function(X)
        if logits.ndim == 1:
            logits = np.stack([np.zeros_like(logits), logits], axis=1)
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    def predict_log_proba(self, X: Any) -> Any:
        """Returns the logarithms of the probabilities."""
        return np.log(self.predict_proba(X))

    def predict(self, X: Any) -> Any:
        """Returns the most probable class of each row."""
        logits = self.decision_function(X)
        places = (logits > 0).astype(int) if logits.ndim == 1 else logits.argmax(axis=1)
        return self.classes_[places]

    def _labels(self, y: Any, rows: int) -> Labels:
        array = targets.classes(y, rows, type(self).__name__)
        self.classes_, places = np.unique(array, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"Classifier needs two classes or more; y has one class: {self.classes_[0]!r}"
            )
        if any(isinstance(each, str) and not each for each in self.classes_):
            raise ValueError("y has the class '', which stands for no label: give it a name")
        self._places = places
        words = self._words()
        head: Any = "binary"
        if len(words) > 2:
            head = {"multi_class": {"classes": len(words)}}
        name = getattr(y, "name", None)
        label = name if isinstance(name, str) and name else "label"
        return Labels(np.array(words, object)[places], STRING, head, {"words": words}, label)

    def _more_labels(self, y: Any, rows: int) -> Any:
        array = targets.classes(y, rows, type(self).__name__)
        return np.array(self._words(), object)[targets.places(array, self.classes_)]

    def _row_weights(self, labels: Labels, sample_weight: Optional[Any]) -> Optional[Any]:
        places = self.__dict__.pop("_places")
        return targets.with_class_weight(self.class_weight, places, self.classes_, sample_weight)

    def _words(self) -> list[str]:
        return [
            value.decode() if isinstance(value, bytes) else str(value)
            for value in self.classes_.tolist()
        ]
