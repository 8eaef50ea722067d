"""With default parameters Classifier and Regressor predict as well as scikit-learn's models."""

from __future__ import annotations

import warnings

import muster
import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_diabetes, load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import roc_auc_score, root_mean_squared_error
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

AUC = 0.01
RMSE = 1.05
KINDS = ("linear", "dnn", "wide_deep")


def auc(model, X, y) -> float:
    scores = model.predict_proba(X)
    return roc_auc_score(y, scores if scores.shape[1] > 2 else scores[:, 1], multi_class="ovr")


def fitted(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)


@pytest.fixture(scope="module")
def adult(real_data):
    rows = pd.read_csv(real_data("adult/adult.csv"))
    return train_test_split(rows, rows.pop("income-per-year"), random_state=0)


@pytest.fixture(scope="module")
def adult_reference(adult) -> float:
    train, test, y, wanted = adult
    words = list(train.select_dtypes(object))
    encoder = make_column_transformer(
        (StandardScaler(), [name for name in train if name not in words]),
        (OneHotEncoder(handle_unknown="ignore"), words),
    )
    model = make_pipeline(encoder, LogisticRegression(max_iter=1000))
    return auc(model.fit(train, y), test, wanted)


@pytest.mark.parametrize("kind", KINDS)
def test_adult(adult, adult_reference, kind) -> None:
    train, test, y, wanted = adult
    got = auc(muster.Classifier(kind).fit(train, y), test, wanted)
    assert got > adult_reference - AUC, (got, adult_reference)


@pytest.mark.parametrize("kind", KINDS)
def test_digits(kind) -> None:
    train, test, y, wanted = train_test_split(*load_digits(return_X_y=True), random_state=0)
    reference = LogisticRegression(max_iter=1000) if kind == "linear" else MLPClassifier((64, 32))
    reference = make_pipeline(StandardScaler(), reference.set_params(random_state=0))
    reference = auc(fitted(reference, train, y), test, wanted)
    got = auc(muster.Classifier(kind).fit(train, y), test, wanted)
    assert got > reference - AUC, (got, reference)


@pytest.mark.parametrize("kind", KINDS)
def test_diabetes(kind) -> None:
    """On three splits, since 111 rows are few."""
    got, wanted = [], []
    for seed in range(3):
        train, test, y, labels = train_test_split(
            *load_diabetes(return_X_y=True), random_state=seed
        )
        reference = LinearRegression()
        if kind != "linear":
            reference = make_pipeline(StandardScaler(), MLPRegressor(max_iter=1000, random_state=0))
        wanted.append(
            root_mean_squared_error(labels, fitted(reference, train, y).predict(test))
        )
        model = muster.Regressor(kind).fit(train, y)
        got.append(root_mean_squared_error(labels, model.predict(test)))
    assert np.mean(got) < RMSE * np.mean(wanted), (got, wanted)
