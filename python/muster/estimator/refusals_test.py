"""Tests what estimators refuse, with the program that MUSTER_BINARY names; without TensorFlow."""

from __future__ import annotations

import pytest

from muster import MusterError, estimator
from muster.estimator.core_test import batches, columns, make, temporary

__all__ = ["temporary"]  # a fixture


def test_a_model_of_other_columns_is_refused_by_the_program(tmp_path, temporary) -> None:
    make(tmp_path / "model").train(batches)
    wide, _ = columns()
    other = estimator.LinearClassifier(wide, model_dir=tmp_path / "model")
    says = "holds a model of another spec.* give another model_dir and warm_start_from"
    with pytest.raises(MusterError, match=says):
        other.train(batches)


def test_what_was_not_trained_cannot_be_used(tmp_path, temporary) -> None:
    model = make(tmp_path / "model")
    for use in (model.evaluate, lambda fn: next(model.predict(fn))):
        with pytest.raises(ValueError, match="Could not find trained model in model_dir"):
            use(batches)
    receiver = estimator.export.build_raw_serving_input_receiver_fn({"age": 0, "job": 0})
    with pytest.raises(ValueError, match="Couldn't find trained model"):
        model.export_saved_model(tmp_path, receiver)


@pytest.mark.parametrize(
    "change, says",
    [
        (lambda f, y: (f, [label + 1 for label in y]), r"Labels must be in \[0, n_classes\)"),
        (lambda f, y: (f, None), "You must provide a labels Tensor"),
        (lambda f, y: (f, y[1:]), "rows, others have"),
        (lambda f, y: ({"age": f["age"]}, y), "Feature job is not in features"),
        (lambda f, y: ({**f, "age": f["job"]}, y), "'age'.*columns want float, the data is string"),
        (lambda f, y: (f["age"], y), "features should be a dictionary"),
    ],
)
def test_batches_that_do_not_fit(change, says, tmp_path, temporary) -> None:
    with pytest.raises(ValueError, match=says):
        make(tmp_path / "model").train(lambda: [change(f, y) for f, y in batches()])
