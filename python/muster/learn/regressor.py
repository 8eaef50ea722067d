"""Regressor: a linear, deep or wide & deep model of a number."""

from __future__ import annotations

from typing import Any

import numpy as np

from muster.cells import FLOAT
from muster.learn import targets
from muster.learn.learner import Labels, Learner
from muster.learn.scikit import RegressorMixin


class Regressor(RegressorMixin, Learner):  # type: ignore[misc]
    """A regressor that the muster program trains, with scikit-learn's methods.

    X is a numpy array, a list of rows, a pandas DataFrame or an Arrow table. Columns of numbers, truth
    values and times are standardised, and a missing number counts as the mean. Other columns are
    categories: up to 1,000 words become a vocabulary, more are hashed. y has one number per row; the
    model learns y minus its mean, divided by its standard deviation.

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

    Attributes
    ----------
    n_features_in_ : the number of columns of X.
    feature_names_in_ : the names of the columns, if X had names.
    y_mean_, y_stddev_ : mean and standard deviation of y in training; the model in model_files_
        predicts (y - mean) / stddev.
    evaluations_ : metrics of the evaluation data after each epoch, if there was any.
    model_files_ : the trained model, as files by name.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None, eval_set: Any = None) -> Regressor:
        """Trains anew. With `eval_set`, (X, y) or (X, y, sample_weight), the model is the one after
        the epoch with the lowest loss on it."""
        self._fit(X, y, sample_weight, eval_set)
        return self

    def predict(self, X: Any) -> Any:
        """Returns the predicted number of each row."""
        return self._output(X, "predictions")[:, 0] * self.y_stddev_ + self.y_mean_

    def _labels(self, y: Any, rows: int) -> Labels:
        values = targets.numbers(y, rows, type(self).__name__)
        self.y_mean_ = float(values.mean())
        self.y_stddev_ = float(values.std()) or 1.0
        name = getattr(y, "name", None)
        label = name if isinstance(name, str) and name else "label"
        return Labels(self._scaled(values), FLOAT, "regression", {}, label)

    def _more_labels(self, y: Any, rows: int) -> Any:
        return self._scaled(targets.numbers(y, rows, type(self).__name__))

    def _scaled(self, values: Any) -> Any:
        return ((values - self.y_mean_) / self.y_stddev_).astype(np.float32)
