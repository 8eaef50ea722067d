"""Writes testdata/keras_updates.txt: what Keras 3's optimizers make of gradients in which ids repeat.

Run with the TensorFlow of tools/requirements-tensorflow.txt: python make_keras_vectors.py [FILE].
Numbers and lines are those of make_test_vectors.py; a table's gradient is given as it is, with an
entry for each id.
"""

from __future__ import annotations

import pathlib
import runpy
import sys
from typing import Any

import keras
import tensorflow as tf

FOLDER = pathlib.Path(__file__).parent
SHARED = runpy.run_path(str(FOLDER / "make_test_vectors.py"))

# Field names are those of OptimizerSpec.
SPECS: dict[str, dict[str, Any]] = {
    "sgd": {"kind": "SGD", "learning_rate": 0.1},
    "sgd_squares": {"kind": "SGD", "learning_rate": 0.1, "squares": 1},
    "sgd_momentum": {"kind": "SGD", "learning_rate": 0.05, "momentum": 0.9},
    "sgd_momentum_squares": {"kind": "SGD", "learning_rate": 0.05, "momentum": 0.9, "squares": 1},
    "sgd_nesterov": {"kind": "SGD", "learning_rate": 0.05, "momentum": 0.8, "nesterov": 1},
    "sgd_weight_decay": {"kind": "SGD", "learning_rate": 0.1, "weight_decay": 0.05},
    "sgd_nesterov_decay": {"kind": "SGD", "learning_rate": 0.05, "momentum": 0.8, "nesterov": 1,
                           "weight_decay": 0.1},
    "adagrad": {"kind": "Adagrad", "learning_rate": 0.05},
    "adagrad_epsilon": {"kind": "Adagrad", "learning_rate": 0.3, "initial_accumulator": 0.0,
                        "epsilon": 0.01},
    "adagrad_schedule": {"kind": "Adagrad", "learning_rate": 0.2, "schedule": "polynomial",
                         "decay_steps": 80, "end": 0.01, "power": 2},
    "adagrad_weight_decay": {"kind": "Adagrad", "learning_rate": 0.05, "weight_decay": 0.1},
    "adam": {"kind": "Adam", "learning_rate": 0.01},
    "adam_betas": {"kind": "Adam", "learning_rate": 0.1, "beta1": 0.5, "beta2": 0.9,
                   "epsilon": 1e-3},
    "adam_schedule": {"kind": "Adam", "learning_rate": 0.05, "schedule": "cosine",
                      "decay_steps": 70, "alpha": 0.1, "warm_up_steps": 20},
    "adamw": {"kind": "Adam", "learning_rate": 0.01, "weight_decay": 0.2},
    "rmsprop": {"kind": "RMSprop", "learning_rate": 0.01},
    "rmsprop_momentum": {"kind": "RMSprop", "learning_rate": 0.01, "momentum": 0.7},
    "rmsprop_centered": {"kind": "RMSprop", "learning_rate": 0.01, "rho": 0.8, "centered": 1,
                         "epsilon": 1e-3},
    "rmsprop_centered_momentum": {"kind": "RMSprop", "learning_rate": 0.01, "centered": 1,
                                  "momentum": 0.5, "epsilon": 1e-3},
    "rmsprop_weight_decay": {"kind": "RMSprop", "learning_rate": 0.01, "weight_decay": 0.1},
    "ftrl": {"kind": "Ftrl", "learning_rate": 0.1},
    "ftrl_l1_l2": {"kind": "Ftrl", "learning_rate": 0.05, "initial_accumulator": 0.5, "l1": 0.3,
                   "l2": 0.02},
    "ftrl_shrinkage_beta": {"kind": "Ftrl", "learning_rate": 0.2, "l2": 0.01, "l2_shrinkage": 0.03,
                            "beta": 0.5},
    "ftrl_power": {"kind": "Ftrl", "learning_rate": 0.1, "l1": 0.01, "learning_rate_power": -0.7},
    "ftrl_power_shrinkage": {"kind": "Ftrl", "learning_rate": 0.05, "initial_accumulator": 0.3,
                             "l2_shrinkage": 0.02, "learning_rate_power": -1.0},
    "ftrl_fixed_rate": {"kind": "Ftrl", "learning_rate": 0.1, "l2": 0.1,
                        "learning_rate_power": 0.0},
    "ftrl_schedule": {"kind": "Ftrl", "learning_rate": 0.2, "beta": 0.3, "schedule": "exponential",
                      "decay_steps": 30, "decay_rate": 0.5},
    "ftrl_weight_decay": {"kind": "Ftrl", "learning_rate": 0.1, "l1": 0.05, "weight_decay": 0.1},
}  # fmt: skip

# Keras's arguments by field, and the attributes that have the slots, by kind.
ARGUMENTS = {
    "momentum": "momentum", "nesterov": "nesterov", "centered": "centered", "rho": "rho",
    "epsilon": "epsilon", "beta1": "beta_1", "beta2": "beta_2", "beta": "beta",
    "initial_accumulator": "initial_accumulator_value", "weight_decay": "weight_decay",
    "learning_rate_power": "learning_rate_power", "l1": "l1_regularization_strength",
    "l2": "l2_regularization_strength", "l2_shrinkage": "l2_shrinkage_regularization_strength",
}  # fmt: skip
SLOTS = {
    "SGD": {"momentum": "momentums"},
    "Adagrad": {"accumulator": "_accumulators"},
    "Adam": {"momentum": "_momentums", "velocity": "_velocities"},
    "RMSprop": {"velocity": "_velocities", "momentum": "_momentums",
                "average_gradient": "_average_gradients"},
    "Ftrl": {"accumulator": "_accumulators", "linear": "_linears"},
}  # fmt: skip


def make_optimizer(spec: dict[str, Any]) -> keras.optimizers.Optimizer:
    arguments = {ARGUMENTS[name]: value for name, value in spec.items() if name in ARGUMENTS}
    for name in ("nesterov", "centered"):
        if name in arguments:
            arguments[name] = bool(arguments[name])
    rate = SHARED["make_schedule"](spec) if "schedule" in spec else spec["learning_rate"]
    return getattr(keras.optimizers, spec["kind"])(rate, **arguments)


def run(spec: dict[str, Any], rows: int, cols: int) -> list[str]:
    numbers = SHARED["Numbers"]()
    optimizer = make_optimizer(spec)
    variable = keras.Variable(numbers.floats(rows, cols) if rows else numbers.floats(cols))
    optimizer.build([variable])
    lines = []
    repeated = False
    for step in range(1, SHARED["STEPS"] + 1):
        if rows:
            ids = numbers.ids(rows)
            repeated = repeated or len(set(ids)) < len(ids)
            values = numbers.floats(len(ids), cols)
            gradient = tf.IndexedSlices(values, ids, tf.constant([rows, cols]))
        else:
            gradient = tf.constant(numbers.floats(cols))
        optimizer.apply([gradient], [variable])
        if step in SHARED["SNAPSHOTS"]:
            arrays = {"weights": variable}
            for name, attribute in SLOTS[spec["kind"]].items():
                if slots := getattr(optimizer, attribute):
                    arrays[name] = slots[0]
            for name, array in arrays.items():
                values = " ".join(f"{x:.9g}" for x in array.numpy().ravel())
                lines.append(f"{step} {name} {values}")
    assert repeated or not rows
    return lines


def updates() -> str:
    lines = []
    for name, spec in SPECS.items():
        lines.append(SHARED["spec_line"](name, {"rule": "keras", **spec}))
        for rows, cols in SHARED["SHAPES"]:
            lines.append(f"case {rows} {cols}")
            lines += run(spec, rows, cols)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    default = FOLDER / "testdata/keras_updates.txt"
    (pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default).write_text(updates())
