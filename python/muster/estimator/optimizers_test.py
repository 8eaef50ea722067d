"""Optimizers become entries of the model file."""

from __future__ import annotations

import pytest

from muster.estimator import optimizers
from muster.estimator.optimizers import SGD, Adagrad, Adam, AdamW, Ftrl, RMSprop


def test_names_take_the_models_learning_rate_or_kerass() -> None:
    assert optimizers.entry("Ftrl", 0.2)["ftrl"]["learning_rate"] == 0.2
    assert optimizers.entry("Adagrad", None)["adagrad"]["learning_rate"] == 0.001
    assert optimizers.entry("SGD", None)["sgd"]["learning_rate"] == 0.01
    with pytest.raises(ValueError, match="Unsupported optimizer name: Adamax"):
        optimizers.entry("Adamax", 0.1)


@pytest.mark.parametrize(
    "given, entry",
    [
        (
            Ftrl(0.1, l1_regularization_strength=0.5),
            {"ftrl": {"learning_rate": 0.1, "learning_rate_power": -0.5, "initial_accumulator": 0.1,
                      "l1": 0.5, "l2": 0, "l2_shrinkage": 0, "beta": 0}},
        ),
        (Adagrad(0.05), {"adagrad": {"learning_rate": 0.05, "initial_accumulator": 0.1,
                                     "epsilon": 1e-7}}),
        (lambda: Adam(0.01, 0.8), {"adam": {"learning_rate": 0.01, "beta1": 0.8, "beta2": 0.999,
                                            "epsilon": 1e-7}}),
        (RMSprop(centered=True), {"rmsprop": {"learning_rate": 0.001, "rho": 0.9, "momentum": 0,
                                              "epsilon": 1e-7, "centered": True}}),
        (SGD({"constant": 0.1}, 0.9, True), {"sgd": {"learning_rate": {"constant": 0.1},
                                                     "momentum": 0.9, "nesterov": True}}),
        (AdamW(0.01), {"adam": {"learning_rate": 0.01, "beta1": 0.9, "beta2": 0.999,
                                "epsilon": 1e-7, "weight_decay": 0.004}}),
        (SGD(0.1, weight_decay=0.5), {"sgd": {"learning_rate": 0.1, "momentum": 0,
                                              "nesterov": False, "weight_decay": 0.5}}),
    ],
)  # fmt: skip
def test_entries(given, entry) -> None:
    assert optimizers.entry(given, 5.0) == entry


def test_what_muster_does_not_have() -> None:
    with pytest.raises(ValueError, match="does not know amsgrad"):
        optimizers.entry(Adam(amsgrad=True), None)
    with pytest.raises(ValueError, match="say l2_regularization_strength"):
        optimizers.entry(Ftrl(weight_decay=0.1), None)
    with pytest.raises(ValueError, match="not an Optimizer instance"):
        optimizers.entry(5, None)


def test_clipping_is_of_the_whole_model() -> None:
    assert optimizers.clipping("Ftrl", Adam()) is None
    assert optimizers.clipping(Adam(clipnorm=2)) == {"norm": 2}
    assert optimizers.clipping(Adam(global_clipnorm=2)) == {"global_norm": 2}
    assert optimizers.clipping(Ftrl(clipvalue=1), Adam(clipvalue=1)) == {"value": 1}
    for given in (
        ("Ftrl", Adam(clipnorm=2)),
        (Ftrl(global_clipnorm=1), Adam(global_clipnorm=1)),
        (Adam(clipnorm=1, clipvalue=1),),
    ):
        with pytest.raises(ValueError, match="clip"):
            optimizers.clipping(*given)
