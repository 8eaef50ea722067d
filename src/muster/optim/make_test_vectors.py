"""Writes testdata/updates.txt: weights and slots after steps of TensorFlow's real optimizers.

Run with tensorflow-cpu 2.15: python make_test_vectors.py [FILE]. Initial weights, gradients and ids
come from the formula of `Numbers`, which optimizer_vectors_test.cc repeats; ids of a step repeat, and
Keras sums their gradients first. Lines: `spec NAME FIELD=VALUE ...`, then for each shape of it
`case ROWS COLS` (ROWS 0: a dense variable of COLS elements), then `STEP ARRAY VALUE ...`.
"""

import pathlib
import sys

import numpy as np
import tensorflow as tf

STEPS = 100
SNAPSHOTS = (1, 100)
IDS_A_STEP = 6
SHAPES = ((0, 12), (10, 1), (10, 8))

# Field names are those of OptimizerSpec.
SPECS = {
    "ftrl": {"kind": "Ftrl", "learning_rate": 0.1},
    "ftrl_l1_l2": {"kind": "Ftrl", "learning_rate": 0.05, "initial_accumulator": 0.5, "l1": 0.3, "l2": 0.02},
    "ftrl_shrinkage_beta": {"kind": "Ftrl", "learning_rate": 0.2, "l2": 0.01, "l2_shrinkage": 0.03, "beta": 0.5},
    "ftrl_power": {"kind": "Ftrl", "learning_rate": 0.1, "l1": 0.01, "learning_rate_power": -0.7},
    "ftrl_fixed_rate": {"kind": "Ftrl", "learning_rate": 0.1, "l2": 0.1, "learning_rate_power": 0.0},
    "adagrad": {"kind": "Adagrad", "learning_rate": 0.05},
    "adagrad_epsilon": {"kind": "Adagrad", "learning_rate": 0.3, "initial_accumulator": 0.0, "epsilon": 0.01},
    "adam": {"kind": "Adam", "learning_rate": 0.01},
    "adam_betas": {"kind": "Adam", "learning_rate": 0.1, "beta1": 0.5, "beta2": 0.9, "epsilon": 1e-3},
}


class Numbers:
    """A multiplicative congruential generator whose floats are exact in 24 bits."""

    def __init__(self) -> None:
        self.state = 12345

    def next(self) -> int:
        self.state = self.state * 1664525 + 1013904223 & 0xFFFFFFFF
        return self.state >> 8

    def floats(self, *shape: int) -> np.ndarray:
        """Uniform in [-0.5, 0.5)."""
        values = [self.next() * 2.0**-24 - 0.5 for _ in range(int(np.prod(shape)))]
        return np.float32(values).reshape(shape)

    def ids(self, rows: int) -> np.ndarray:
        return np.int32([self.next() % rows for _ in range(IDS_A_STEP)])


def make_optimizer(spec: dict) -> tf.keras.optimizers.legacy.Optimizer:
    keras = tf.keras.optimizers.legacy
    rate = spec["learning_rate"]
    if spec["kind"] == "Ftrl":
        return keras.Ftrl(
            rate, learning_rate_power=spec.get("learning_rate_power", -0.5),
            initial_accumulator_value=spec.get("initial_accumulator", 0.1),
            l1_regularization_strength=spec.get("l1", 0.0),
            l2_regularization_strength=spec.get("l2", 0.0),
            l2_shrinkage_regularization_strength=spec.get("l2_shrinkage", 0.0),
            beta=spec.get("beta", 0.0))
    if spec["kind"] == "Adagrad":
        return keras.Adagrad(rate, initial_accumulator_value=spec.get("initial_accumulator", 0.1),
                             epsilon=spec.get("epsilon", 1e-7))
    return keras.Adam(rate, beta_1=spec.get("beta1", 0.9), beta_2=spec.get("beta2", 0.999),
                      epsilon=spec.get("epsilon", 1e-7))


SLOTS = {"Ftrl": ("accumulator", "linear"), "Adagrad": ("accumulator",), "Adam": ("m", "v")}


def run(spec: dict, rows: int, cols: int) -> list[str]:
    numbers = Numbers()
    optimizer = make_optimizer(spec)
    variable = tf.Variable(numbers.floats(rows, cols) if rows else numbers.floats(cols))
    lines = []
    for step in range(1, STEPS + 1):
        if rows:
            ids = numbers.ids(rows)
            gradient = tf.IndexedSlices(numbers.floats(IDS_A_STEP, cols), ids, (rows, cols))
        else:
            gradient = tf.constant(numbers.floats(cols))
        optimizer.apply_gradients([(gradient, variable)])
        if step in SNAPSHOTS:
            arrays = {"weights": variable}
            arrays |= {name: optimizer.get_slot(variable, name) for name in SLOTS[spec["kind"]]}
            for name, array in arrays.items():
                values = " ".join(f"{x:.9g}" for x in array.numpy().ravel())
                lines.append(f"{step} {name} {values}")
    return lines


def text() -> str:
    lines = []
    for name, spec in SPECS.items():
        lines.append(f"spec {name} " + " ".join(f"{key}={value}" for key, value in spec.items()))
        for rows, cols in SHAPES:
            lines.append(f"case {rows} {cols}")
            lines += run(spec, rows, cols)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    committed = pathlib.Path(__file__).parent / "testdata" / "updates.txt"
    pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else committed).write_text(text())
