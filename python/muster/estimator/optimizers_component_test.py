"""Keras's optimizers and schedules become entries of the model file."""

from __future__ import annotations

import json
import os

import pytest

from muster.estimator import optimizers
from testbed import keras_checks


def make(name: str, *arguments, **options):
    import tensorflow as tf

    return getattr(tf.keras.optimizers.legacy, name)(*arguments, **options)


@pytest.mark.parametrize(
    "name, options",
    [
        ("Ftrl", {"learning_rate": 0.05, "l1_regularization_strength": 0.001}),
        ("Adagrad", {"learning_rate": 0.05}),
        ("Adam", {"learning_rate": 0.003, "beta_1": 0.8}),
        ("RMSprop", {"rho": 0.8, "centered": True}),
        ("SGD", {"learning_rate": 0.1, "momentum": 0.9, "nesterov": True}),
    ],
)
def test_keras_and_our_classes_say_the_same(name, options) -> None:
    ours = getattr(optimizers, name)(**options)
    assert optimizers.entry(make(name, **options), None) == optimizers.entry(ours, None)


def test_weight_decay_of_keras() -> None:
    import tensorflow as tf

    keras = tf.keras.optimizers
    for name in ("AdamW", "SGD", "Adagrad", "RMSprop"):
        theirs = getattr(keras, name)(0.01, weight_decay=0.05)
        (options,) = optimizers.entry(theirs, None).values()
        assert options["weight_decay"] == 0.05, name
    assert "adam" in optimizers.entry(keras.AdamW(0.01), None)
    partly = keras.AdamW(0.01)
    partly.exclude_from_weight_decay(var_names=["bias"])
    with pytest.raises(ValueError, match="whole part's weights"):
        optimizers.entry(partly, None)


def test_clipping_of_keras() -> None:
    assert optimizers.clipping(make("Adam", clipnorm=2.0)) == {"norm": 2}


@pytest.mark.parametrize(
    "name, options, entry",
    [
        ("ExponentialDecay", (0.1, 100, 0.9, True),
         {"exponential": {"initial": 0.1, "decay_steps": 100, "decay_rate": 0.9,
                          "staircase": True}}),
        ("InverseTimeDecay", (0.1, 100, 0.9),
         {"inverse_time": {"initial": 0.1, "decay_steps": 100, "decay_rate": 0.9,
                           "staircase": False}}),
        ("PolynomialDecay", (0.1, 100, 0.01, 2.0, True),
         {"polynomial": {"initial": 0.1, "decay_steps": 100, "end": 0.01, "power": 2,
                         "cycle": True}}),
        ("CosineDecay", (0.1, 100, 0.2),
         {"cosine": {"initial": 0.1, "decay_steps": 100, "alpha": 0.2}}),
        ("CosineDecayRestarts", (0.1, 100, 3.0, 0.5, 0.2),
         {"cosine_restarts": {"initial": 0.1, "decay_steps": 100, "t_mul": 3, "m_mul": 0.5,
                              "alpha": 0.2}}),
        ("PiecewiseConstantDecay", ([10, 20], [1.0, 0.5, 0.1]),
         {"piecewise": {"boundaries": [10, 20], "values": [1.0, 0.5, 0.1]}}),
    ],
)  # fmt: skip
def test_schedules(name, options, entry) -> None:
    import tensorflow as tf

    rate = getattr(tf.keras.optimizers.schedules, name)(*options)
    found = optimizers.entry(make("Adam", learning_rate=rate), None)
    assert found["adam"]["learning_rate"] == entry


NEWEST = """
import json
import tensorflow as tf
from muster.estimator import optimizers

keras = tf.keras.optimizers
made = {}
for name in ("Adagrad", "Adam", "AdamW", "Ftrl", "RMSprop", "SGD"):
    theirs, ours = getattr(keras, name)(0.05), getattr(optimizers, name)(0.05)
    made[name] = [optimizers.entry(theirs, None), optimizers.entry(ours, None)]
refused = []
for given in (
    keras.Adam(gradient_accumulation_steps=4),
    keras.Adam(loss_scale_factor=2.0),
    keras.SGD(use_ema=True),
):
    try:
        optimizers.entry(given, None)
    except ValueError as error:
        refused.append(str(error))
print(json.dumps({"keras": tf.keras.__version__, "made": made, "refused": refused}))
"""


def test_optimizers_of_the_newest_keras() -> None:
    done = keras_checks.run(os.environ["MUSTER_PYTHON_TENSORFLOW"], "-c", NEWEST)
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["keras"].startswith("3.")
    for name, (theirs, ours) in found["made"].items():
        assert theirs == ours, name
    steps, scale, ema = found["refused"]
    assert "gradient_accumulation_steps=4: leave it out, and make batches" in steps
    assert "loss_scale_factor=2.0: leave it out, since Muster computes" in scale
    assert "use_ema=True: leave it out" in ema
