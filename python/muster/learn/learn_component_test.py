"""Classifier and Regressor with common kinds of data, and with scikit-learn's tools."""

from __future__ import annotations

import copy
import csv
import logging
import os
import pickle
import subprocess
import sys
import warnings

import muster
import numpy as np
import pandas as pd
import pyarrow
import pytest
from muster.learn import tables
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

SEED = 7
ROWS = 400
TOWNS = ["Bonn", "Köln", "Ulm"]


@pytest.fixture(scope="module")
def people():
    """Returns a DataFrame with each kind of column, with missing values, and a label that depends
    on them."""
    random = np.random.default_rng(SEED)
    town = random.choice(TOWNS, ROWS)
    age = random.integers(18, 90, ROWS)
    income = random.lognormal(8, 1, ROWS)
    since = pd.Timestamp("2020-01-01") + pd.to_timedelta(random.integers(0, 900, ROWS), "D")
    score = (town == "Ulm") * 2.0 + (age > 50) * 2 + (since.year > 2020) - 2.5
    frame = pd.DataFrame(
        {
            "town": pd.Series(town, dtype="category"),
            "age": pd.array(age, dtype="Int64"),
            "income": income,
            "since": since,
            "member": pd.array(random.random(ROWS) < 0.5, dtype="boolean"),
            "note": random.choice(["a", "b"], ROWS),
        }
    )
    for name in ("town", "age", "income", "member", "note"):
        frame.loc[random.random(ROWS) < 0.1, name] = None
    label = np.where(score + random.normal(0, 0.3, ROWS) > 0, "yes", "no")
    return frame, pd.Series(label, name="answer"), score


def test_a_frame_of_every_kind_of_column(people) -> None:
    X, y, _ = people
    model = muster.Classifier().fit(X[:300], y[:300])
    assert model.score(X[300:], y[300:]) > 0.8
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.feature_names_in_.tolist() == list(X)
    assert model.predict_proba(X).shape == (ROWS, 2)
    assert set(model.predict(X)) == {"no", "yes"}


def test_arrow_predicts_as_pandas_does(people) -> None:
    X, y, _ = people
    table = pyarrow.Table.from_pandas(X, preserve_index=False)
    by_pandas, by_arrow = muster.Classifier(epochs=2), muster.Classifier(epochs=2)
    wanted = by_pandas.fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(by_arrow.fit(table, y).predict_proba(table), wanted)
    np.testing.assert_array_equal(by_pandas.predict_proba(table), wanted)


def test_durations_are_numbers_wherever_they_come_from() -> None:
    hours = pd.Series(pd.to_timedelta([36, None, 12, 0], "h"))
    plain = [None if pd.isna(value) else value.to_pytimedelta() for value in hours]
    frames = [
        pd.DataFrame({"a": hours}),
        pd.DataFrame({"a": plain}, dtype=object),
        pyarrow.table({"a": pyarrow.array(plain, pyarrow.duration("s"))}),
        pyarrow.table({"a": pyarrow.array(plain, pyarrow.duration("ns"))}),
    ]
    for frame in frames:
        column = tables.read(frame, "Classifier").columns[0]
        np.testing.assert_array_equal(tables.as_days(column, "a"), [1.5, np.nan, 0.5, 0])


def test_durations_are_no_numbers() -> None:
    seconds = np.arange(200.0)
    durations = pd.DataFrame({"a": pd.to_timedelta(seconds, unit="s")})
    numbers = pd.DataFrame({"a": seconds})
    y = seconds > 99
    with pytest.raises(ValueError, match="column 'a' held durations when the model was fitted; now it has 0.0"):
        muster.Classifier(epochs=1).fit(durations, y).predict(numbers)
    with pytest.raises(ValueError, match="column 'a' held numbers when the model was fitted; now it has durations"):
        muster.Classifier(epochs=1).fit(numbers, y).predict(durations)
    model = muster.Classifier().fit(durations, y)
    assert model.score(durations, y) > 0.95
    assert len(model.predict(pd.DataFrame({"a": [None, None]}))) == 2


def test_missing_and_unknown_values_are_predicted(people) -> None:
    X, y, _ = people
    model = muster.Classifier(epochs=2).fit(X.dropna(), y[X.dropna().index])
    empty = X[:1].astype(object)
    empty.loc[:, :] = None
    assert np.isfinite(model.predict_proba(empty)).all()
    elsewhere = X[:1].assign(town="Rome")
    assert np.isfinite(model.predict_proba(elsewhere)).all()


def test_missing_numbers_are_told_from_the_mean() -> None:
    random = np.random.default_rng(SEED)
    X = random.normal(size=(ROWS, 1))
    y = random.random(ROWS) < 0.5
    X[y] = np.nan  # the mean carries no information then
    for given in (X, pd.DataFrame(X, columns=["a"])):
        assert muster.Classifier().fit(given, y).score(given, y) == 1


def test_many_words_are_hashed() -> None:
    words = [f"user {i}" for i in range(1500)]
    X = pd.DataFrame({"user": words * 2})
    y = np.arange(3000) % 1500 % 2
    model = muster.Classifier("linear").fit(X, y)
    assert model.features_.named[0].buckets == 4096
    assert model.score(X, y) > 0.8


def test_arrays_of_objects_and_of_words() -> None:
    y = [0, 1] * 50
    assert muster.Classifier().fit([[1, "a"], [1, "b"]] * 50, y).score([[1, "b"]], [1]) == 1
    numbers = np.array([[1, None], [3, 2.5]] * 50, dtype=object)
    assert muster.Classifier().fit(numbers, y).score(numbers, y) == 1


def test_a_word_may_be_the_one_for_missing_values() -> None:
    X = pd.DataFrame({"x": ["(missing)", None, "a", "b"] * 50})
    y = [0, 0, 1, 1] * 50
    assert muster.Classifier().fit(X, y).score(X, y) == 1


def test_large_numbers_keep_their_differences() -> None:
    X = np.array([[1e9], [1e9 + 1]] * 50)
    assert muster.Classifier().fit(X, [0, 1] * 50).score(X, [0, 1] * 50) == 1
    steps = np.arange(2000) % 600
    y = steps > 300
    for numbers in (1_700_000_000 + steps, 1e12 + steps * 1000.0, 1e9 + steps / 100):
        frame = pd.DataFrame({"at": numbers})
        model = muster.Classifier().fit(frame, y)
        assert model.score(frame, y) > 0.99
        assert model.shifts_ == {"at": pytest.approx(numbers.mean())}


def test_times_keep_their_seconds() -> None:
    second = np.arange(120) % 60
    y = second >= 30
    times = pd.Timestamp("2026-11-24 13:05") + pd.to_timedelta(second, "s")
    for given in (times, times.tz_localize("Europe/Berlin"), times.astype(object)):
        X = pd.DataFrame({"at": given})
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert muster.Classifier().fit(X, y).score(X, y) > 0.95
    array = times.to_numpy().reshape(-1, 1)
    assert muster.Classifier().fit(array, y).score(array, y) > 0.95
    with pytest.raises(ValueError, match="column 'at' held times .* row 0 has 3.0"):
        muster.Classifier(epochs=1).fit(X, y).predict(pd.DataFrame({"at": [3]}))
    with pytest.raises(ValueError, match="column 'at' held numbers .* row 0 has datetime"):
        muster.Classifier(epochs=1).fit(pd.DataFrame({"at": second}), y).predict(X)


def test_regression_of_a_frame(people) -> None:
    X, _, score = people
    model = muster.Regressor().fit(X[:300], 1e6 + 1000 * score[:300])
    assert model.score(X[300:], 1e6 + 1000 * score[300:]) > 0.7


def test_a_pickle_has_the_model_inside(people) -> None:
    X, y, _ = people
    model = muster.Classifier(epochs=1).fit(X, y)
    wanted = model.predict_proba(X)
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        np.testing.assert_array_equal(again.predict_proba(X), wanted)
    with pytest.raises(NotFittedError):
        clone(model).predict(X)


def test_the_same_seed_gives_the_same_model(people) -> None:
    X, y, _ = people
    first, again, other = (
        muster.Classifier(epochs=1, dropout=0.2, seed=seed).fit(X, y).predict_proba(X)
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_among_scikit_learns_tools(people) -> None:
    X, y, _ = people
    assert is_classifier(muster.Classifier()) and is_regressor(muster.Regressor())
    search = GridSearchCV(muster.Classifier(epochs=2), {"model": ["linear", "dnn"]}, cv=2)
    assert search.fit(X, y).best_params_["model"] in ("linear", "dnn")
    calibrated = CalibratedClassifierCV(muster.Classifier(epochs=3), cv=2).fit(X, y)
    np.testing.assert_allclose(calibrated.predict_proba(X).sum(axis=1), 1)
    numbers = np.random.default_rng(SEED).normal(size=(ROWS, 5))
    pipeline = make_pipeline(PCA(3), muster.Regressor("linear"))
    assert cross_val_score(pipeline, numbers, numbers.sum(axis=1), cv=2).min() > -1


def test_an_evaluation_set_decides_which_epoch_is_kept(people) -> None:
    X, y, _ = people
    # unrelated labels, so that there is nothing to learn
    labels = np.random.default_rng(SEED).permutation(y)
    model = muster.Classifier(epochs=30, l2=0, schedule="constant", learning_rate=0.01)
    model.set_params(early_stopping=True, n_iter_no_change=3)
    model.fit(X[:300], labels[:300], eval_set=[(X[300:], labels[300:])])
    losses = [metrics["loss"] for metrics in model.evaluations_]
    assert len(losses) < 30 and np.argmin(losses) < len(losses) - 1
    scores = model.predict_proba(X[300:])
    right = scores[np.arange(100), (labels[300:] == "yes").astype(int)]
    assert -np.log(right).mean() == pytest.approx(min(losses), rel=1e-5)


def test_early_stopping_holds_rows_out(people) -> None:
    X, y, _ = people
    model = muster.Classifier(early_stopping=True, epochs=4).fit(X, y)
    assert len(model.evaluations_) == 4


def test_weights_of_rows_and_classes() -> None:
    X = np.zeros((100, 1))
    y = np.arange(100) % 4 == 0  # a quarter
    linear = muster.Classifier("linear")
    assert linear.fit(X, y).predict_proba(X)[0, 1] == pytest.approx(0.25, abs=0.02)
    weighted = linear.fit(X, y, sample_weight=np.where(y, 3.0, 1.0))
    assert weighted.predict_proba(X)[0, 1] == pytest.approx(0.5, abs=0.02)
    for class_weight in ("balanced", {True: 3}):
        model = muster.Classifier("linear", class_weight=class_weight).fit(X, y)
        assert model.predict_proba(X)[0, 1] == pytest.approx(0.5, abs=0.02)


def test_a_saved_model_is_one_that_the_program_reads(people, muster, tmp_path) -> None:
    import muster as package

    X, y, _ = people
    X = X[["town", "age", "income", "since"]]
    X.loc[::9, "since"] = None
    assert X["age"].isna().any() and X["town"].isna().any()
    model = package.Classifier(epochs=3).fit(X, y)
    model.save(tmp_path / "model")
    X.to_csv(tmp_path / "rows.csv", index=False)
    muster.run("predict", "--model-dir", tmp_path / "model", "--data", tmp_path / "rows.csv",
               "--out", tmp_path / "out.csv")  # fmt: skip
    with open(tmp_path / "out.csv", newline="") as file:
        got = [float(row["logistic"]) for row in csv.DictReader(file)]
    np.testing.assert_allclose(got, model.predict_proba(X)[:, 1], atol=1e-6)
    with pytest.raises(FileExistsError, match="exists, .* give the name of a new folder, or remove"):
        model.save(tmp_path / "model")


@pytest.mark.parametrize(
    "change, message",
    [
        ({"model": "deep"}, "model='deep': one of linear, dnn, wide_deep is wanted"),
        ({"optimizer": "lbfgs"}, "optimizer='lbfgs': one of adam"),
        ({"epochs": 0}, "epochs=0: a whole number of at least 1"),
        ({"hidden": (8, 0)}, "sizes of layers are at least 1"),
        ({"learning_rate": -1.0}, "learning_rate=-1.0: it must be above 0"),
        ({"class_weight": {"maybe": 2}}, "class_weight: y has no class 'maybe'"),
        ({"class_weight": "even"}, "class_weight 'even': None, 'balanced' or a dict"),
        ({"early_stopping": True, "validation_fraction": 0.0}, "leaves no rows to evaluate on"),
    ],
)
def test_wrong_parameters_are_named_by_fit(people, change, message) -> None:
    X, y, _ = people
    with pytest.raises(ValueError, match=message):
        muster.Classifier(**change).fit(X, y)


def test_wrong_data_is_named(people) -> None:
    X, y, score = people
    model = muster.Classifier(epochs=1).fit(X, y)
    with pytest.raises(ValueError, match="column 'income' held numbers .* row 0 has 'much'"):
        model.predict(X.assign(income="much"))
    with pytest.raises(ValueError, match="eval_set: y has the class 'zzz'"):
        model.fit(X, y, eval_set=(X, ["zzz"] * ROWS))
    with pytest.raises(ValueError, match="columns have the same name: \\['age'\\]"):
        model.fit(X[["age", "age"]], y)
    with pytest.raises(ValueError, match="X: column 0 has no name"):
        model.fit(X[["age"]].rename(columns={"age": ""}), y)
    with pytest.raises(ValueError, match="y has the class '', which stands for no label"):
        model.fit(X, ["", "a"] * (ROWS // 2))
    with pytest.raises(ValueError, match="y of a regressor must be numbers"):
        muster.Regressor().fit(X, y)
    with pytest.raises(NotFittedError):  # the failed fit left no model
        model.predict(X)


def test_sparse_features_of_a_pipeline(people) -> None:
    X, y, _ = people
    towns = X[["town"]].astype(object).fillna("")
    with pytest.raises(TypeError, match=r"in a Pipeline, OneHotEncoder\(sparse_output=False\)"):
        make_pipeline(OneHotEncoder(), muster.Classifier(epochs=1)).fit(towns, y)
    make_pipeline(OneHotEncoder(sparse_output=False), muster.Classifier(epochs=1)).fit(towns, y)


def test_verbose_logs_progress(people, caplog) -> None:
    X, y, _ = people
    with caplog.at_level(logging.INFO, "muster"):
        muster.Classifier(epochs=1).fit(X, y)
        assert not caplog.messages
        muster.Classifier(epochs=1, verbose=True).fit(X, y)
    assert any("step" in message for message in caplog.messages)


def test_verbose_prints_if_logging_is_not_configured(repository) -> None:
    program = WITHOUT.split("model = ")[0] + "muster.Classifier(epochs=1, verbose={}).fit(X, y)"
    environment = {**os.environ, "PYTHONPATH": str(repository / "python")}
    for verbose in (True, False):
        done = subprocess.run([sys.executable, "-c", program.format(verbose)], check=True, timeout=120,
                              env=environment, capture_output=True, text=True)  # fmt: skip
        assert ("step" in done.stderr) == verbose, done.stderr


WITHOUT = """
import sys
sys.modules["sklearn"] = sys.modules["pandas"] = sys.modules["pyarrow"] = None
import pickle, muster
import numpy as np
X = np.arange(60.0).reshape(-1, 2)
y = X[:, 0] > 30
model = muster.Classifier("linear", seed=3)
assert repr(model) == "Classifier(model='linear', seed=3)", repr(model)
try:
    model.predict(X)
except ValueError as error:
    assert "not fitted" in str(error)
assert model.set_params(epochs=100).get_params()["epochs"] == 100
try:
    model.set_params(alpha=1)
except ValueError as error:
    assert "Invalid parameter 'alpha'" in str(error)
assert pickle.loads(pickle.dumps(model.fit(X, y))).score(X, y) > 0.9
assert muster.Regressor("linear", epochs=100).fit(X, X[:, 1]).score(X, X[:, 1]) > 0.9
"""


def test_without_scikit_learn_pandas_and_pyarrow(repository) -> None:
    environment = {**os.environ, "PYTHONPATH": str(repository / "python")}
    subprocess.run([sys.executable, "-c", WITHOUT], check=True, timeout=120, env=environment)
