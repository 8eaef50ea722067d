"""Every public name of tf.estimator exists, or is refused with what to use instead."""

from __future__ import annotations

import re

import pytest

import muster.estimator.v1
from muster import estimator, tensorflow


@pytest.mark.parametrize("module", ["", "experimental", "export"])
def test_a_name_is_there_or_says_what_to_use(module) -> None:
    import tensorflow as tf

    theirs = getattr(tf.estimator, module) if module else tf.estimator
    ours = getattr(estimator, module) if module else estimator
    names = [name for name in dir(theirs) if not name.startswith("_")]
    assert names
    for name in names:
        try:
            getattr(ours, name)
        except AttributeError as error:
            assert re.search(f"has no {name}: .{{10,}}", str(error)), error
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        ours.Nothing


def test_what_older_versions_have_says_what_to_use() -> None:
    for name in ("BoostedTreesClassifier", "BoostedTreesRegressor", "BoostedTreesEstimator"):
        for module in (estimator, estimator.v1, tensorflow.estimator, tensorflow.compat.v1.estimator):
            with pytest.raises(AttributeError, match=f"has no {name}: .* use xgboost or LightGBM"):
                getattr(module, name)
    with pytest.raises(AttributeError, match="has no KMeans: .* use KMeans of scikit-learn"):
        estimator.experimental.KMeans


@pytest.mark.parametrize("every", [{"every_steps": 3}, {"every_secs": 5.0}])
def test_a_timer_triggers_as_tensorflows(every, monkeypatch) -> None:
    import tensorflow as tf

    now = [1000.0]
    monkeypatch.setattr("time.time", lambda: now[0])
    ours, theirs = estimator.SecondOrStepTimer(**every), tf.estimator.SecondOrStepTimer(**every)
    triggered = []
    for step in [0, 0, 1, 2, 3, 4, 7, 7, 8, 9]:
        due = theirs.should_trigger_for_step(step)
        assert ours.should_trigger_for_step(step) == due
        if due:
            triggered.append(step)
            since = theirs.update_last_triggered_step(step)
            assert ours.update_last_triggered_step(step) == since
        assert ours.last_triggered_step() == theirs.last_triggered_step()
        now[0] += 2
    assert len(triggered) > 2
    for wrong in ({}, {"every_secs": 1, "every_steps": 1}):
        with pytest.raises(ValueError) as caught:
            tf.estimator.SecondOrStepTimer(**wrong)
        with pytest.raises(ValueError, match=re.escape(str(caught.value))):
            estimator.SecondOrStepTimer(**wrong)
