"""scikit-learn's own checks of estimators, on Classifier and Regressor."""

from __future__ import annotations

import muster
from sklearn.utils.estimator_checks import parametrize_with_checks

# Checks that do not apply, with the reason.
NOT_THESE = {
    "check_sample_weight_equivalence_on_dense_data": "a row of weight 2 is in one batch, two rows are "
    "in two: training by random batches differs, as scikit-learn's SGD and MLP do",
}


@parametrize_with_checks(
    [
        muster.Classifier(),
        muster.Classifier("linear"),
        muster.Regressor(),
        muster.Regressor("wide_deep"),
    ],
    expected_failed_checks=lambda estimator: NOT_THESE,
)
def test_passes_the_check(estimator, check) -> None:
    check(estimator)
