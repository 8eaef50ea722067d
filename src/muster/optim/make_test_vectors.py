"""Writes testdata/: what TensorFlow's real optimizers and learning rate schedules compute.

updates.txt: weights and slots after steps; schedules.txt: rates at steps. Run with tensorflow-cpu 2.15: python make_test_vectors.py. Initial weights, gradients and ids
come from the formula of `Numbers`, which optimizer_vectors_test.cc repeats; ids of a step repeat, and
Keras sums their gradients first. Lines: `spec NAME FIELD=VALUE ...`, then for each shape of it
`case ROWS COLS` (ROWS 0: a dense variable of COLS elements), then `STEP ARRAY VALUE ...`. In schedules.txt a `spec` line is followed by `STEP RATE` lines.
"""

from __future__ import annotations

import pathlib

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
    "ftrl_power_small": {"kind": "Ftrl", "learning_rate": 0.3, "l1": 0.02, "l2": 0.01, "learning_rate_power": -0.2},
    "ftrl_power_one": {"kind": "Ftrl", "learning_rate": 0.05, "initial_accumulator": 0.3, "l2_shrinkage": 0.02,
                       "learning_rate_power": -1.0},
    "ftrl_power_steep": {"kind": "Ftrl", "learning_rate": 0.2, "beta": 0.4, "learning_rate_power": -1.6},
    "ftrl_fixed_rate": {"kind": "Ftrl", "learning_rate": 0.1, "l2": 0.1, "learning_rate_power": 0.0},
    "adagrad": {"kind": "Adagrad", "learning_rate": 0.05},
    "adagrad_epsilon": {"kind": "Adagrad", "learning_rate": 0.3, "initial_accumulator": 0.0, "epsilon": 0.01},
    "adam": {"kind": "Adam", "learning_rate": 0.01},
    "rmsprop": {"kind": "RMSprop", "learning_rate": 0.01},
    "rmsprop_momentum": {"kind": "RMSprop", "learning_rate": 0.01, "momentum": 0.7},
    "rmsprop_centered": {"kind": "RMSprop", "learning_rate": 0.01, "rho": 0.8, "centered": 1, "epsilon": 1e-3},
    "rmsprop_centered_momentum": {"kind": "RMSprop", "learning_rate": 0.01, "centered": 1, "momentum": 0.5,
                                  "epsilon": 1e-3},
    "sgd": {"kind": "SGD", "learning_rate": 0.1},
    "sgd_momentum": {"kind": "SGD", "learning_rate": 0.05, "momentum": 0.9},
    "sgd_nesterov": {"kind": "SGD", "learning_rate": 0.05, "momentum": 0.8, "nesterov": 1},
    "ftrl_schedule": {"kind": "Ftrl", "learning_rate": 0.2, "beta": 0.3, "schedule": "exponential",
                      "decay_steps": 30, "decay_rate": 0.5},
    "adagrad_schedule": {"kind": "Adagrad", "learning_rate": 0.2, "schedule": "polynomial", "decay_steps": 80,
                         "end": 0.01, "power": 2},
    "adam_schedule": {"kind": "Adam", "learning_rate": 0.05, "schedule": "cosine", "decay_steps": 70, "alpha": 0.1,
                      "warm_up_steps": 20},
    "adam_weight_decay": {"kind": "Adam", "learning_rate": 0.01, "weight_decay": 0.2},
    "adam_weight_decay_schedule": {"kind": "Adam", "learning_rate": 0.05, "weight_decay": 0.3,
                                   "schedule": "polynomial", "decay_steps": 80, "end": 0.01, "power": 2},
    "adagrad_weight_decay": {"kind": "Adagrad", "learning_rate": 0.05, "weight_decay": 0.1},
    "rmsprop_weight_decay": {"kind": "RMSprop", "learning_rate": 0.01, "weight_decay": 0.1},
    "sgd_weight_decay": {"kind": "SGD", "learning_rate": 0.1, "weight_decay": 0.05},
    "sgd_momentum_weight_decay": {"kind": "SGD", "learning_rate": 0.05, "momentum": 0.9, "weight_decay": 0.1},
    "adam_betas": {"kind": "Adam", "learning_rate": 0.1, "beta1": 0.5, "beta2": 0.9, "epsilon": 1e-3},
}

# No step where a period of cosine_restarts begins: there float logarithms decide.
SCHEDULE_STEPS = (0, 1, 2, 9, 10, 11, 33, 99, 100, 101, 150, 199, 201, 299, 301, 450, 1000, 1234, 100000)
SCHEDULES = {
    "exponential": {"learning_rate": 0.1, "schedule": "exponential", "decay_steps": 100, "decay_rate": 0.96},
    "exponential_staircase": {"learning_rate": 0.1, "schedule": "exponential", "decay_steps": 100,
                              "decay_rate": 0.96, "staircase": 1},
    "inverse_time": {"learning_rate": 0.3, "schedule": "inverse_time", "decay_steps": 10, "decay_rate": 0.5},
    "inverse_time_staircase": {"learning_rate": 0.3, "schedule": "inverse_time", "decay_steps": 10,
                               "decay_rate": 0.5, "staircase": 1},
    "polynomial": {"learning_rate": 0.1, "schedule": "polynomial", "decay_steps": 200},
    "polynomial_root": {"learning_rate": 0.1, "schedule": "polynomial", "decay_steps": 1000, "end": 0.01, "power": 0.5},
    "polynomial_cycle": {"learning_rate": 0.1, "schedule": "polynomial", "decay_steps": 150, "end": 0.02, "power": 2,
                         "cycle": 1},
    "cosine": {"learning_rate": 0.1, "schedule": "cosine", "decay_steps": 300},
    "cosine_warm_up": {"learning_rate": 0.1, "schedule": "cosine", "decay_steps": 300, "alpha": 0.05,
                       "warm_up_steps": 100, "warm_up_from": 0.01},
    "cosine_restarts": {"learning_rate": 0.1, "schedule": "cosine_restarts", "decay_steps": 60},
    "cosine_restarts_even": {"learning_rate": 0.1, "schedule": "cosine_restarts", "decay_steps": 60, "t_mul": 1,
                             "m_mul": 0.9, "alpha": 0.1},
    "cosine_restarts_slow": {"learning_rate": 0.1, "schedule": "cosine_restarts", "decay_steps": 60, "t_mul": 1.5,
                             "m_mul": 0.8},
    "piecewise": {"learning_rate": 0.5, "schedule": "piecewise", "boundaries": (10, 100, 300),
                  "values": (0.5, 0.2, 0.1, 0.05)},
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


def make_schedule(spec: dict) -> tf.keras.optimizers.schedules.LearningRateSchedule:
    rate = spec["learning_rate"]
    schedules = tf.keras.optimizers.schedules
    steps = spec.get("decay_steps")
    match spec["schedule"]:
        case "exponential":
            return schedules.ExponentialDecay(rate, steps, spec["decay_rate"], bool(spec.get("staircase")))
        case "inverse_time":
            return schedules.InverseTimeDecay(rate, steps, spec["decay_rate"], bool(spec.get("staircase")))
        case "polynomial":
            return schedules.PolynomialDecay(rate, steps, spec.get("end", 0.0001), spec.get("power", 1.0),
                                             bool(spec.get("cycle")))
        case "cosine" if "warm_up_steps" in spec:
            return schedules.CosineDecay(spec.get("warm_up_from", 0.0), steps, spec.get("alpha", 0.0),
                                         warmup_target=rate, warmup_steps=spec["warm_up_steps"])
        case "cosine":
            return schedules.CosineDecay(rate, steps, spec.get("alpha", 0.0))
        case "cosine_restarts":
            return schedules.CosineDecayRestarts(rate, steps, spec.get("t_mul", 2.0), spec.get("m_mul", 1.0),
                                                 spec.get("alpha", 0.0))
        case "piecewise":
            return schedules.PiecewiseConstantDecay(list(spec["boundaries"]), list(spec["values"]))
    raise ValueError(spec["schedule"])


def make_optimizer(spec: dict) -> tf.keras.optimizers.legacy.Optimizer:
    keras = tf.keras.optimizers.legacy
    rate = make_schedule(spec) if "schedule" in spec else spec["learning_rate"]
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
    if spec["kind"] == "RMSprop":
        return keras.RMSprop(rate, rho=spec.get("rho", 0.9), momentum=spec.get("momentum", 0.0),
                             epsilon=spec.get("epsilon", 1e-7), centered=bool(spec.get("centered")))
    if spec["kind"] == "SGD":
        return keras.SGD(rate, momentum=spec.get("momentum", 0.0), nesterov=bool(spec.get("nesterov")))
    return keras.Adam(rate, beta_1=spec.get("beta1", 0.9), beta_2=spec.get("beta2", 0.999),
                      epsilon=spec.get("epsilon", 1e-7))


def make_decay(spec: dict, variable: tf.Variable) -> tf.keras.optimizers.Optimizer:
    """The optimizer of Keras since TensorFlow 2.11 whose weight decay is taken, and nothing else."""
    rate = make_schedule(spec) if "schedule" in spec else spec["learning_rate"]
    optimizer = tf.keras.optimizers.SGD(rate, weight_decay=spec.get("weight_decay"), jit_compile=False)
    optimizer.build([variable])
    return optimizer


def decay(optimizer: tf.keras.optimizers.Optimizer, variable: tf.Variable) -> None:
    """As its apply_gradients does before an update."""
    optimizer._compute_current_learning_rate()
    optimizer._apply_weight_decay([variable])
    optimizer.iterations.assign_add(1)


def slots_of(spec: dict) -> tuple[str, ...]:
    momentum = ("momentum",) if spec.get("momentum") else ()
    mean = ("mg",) if spec.get("centered") else ()
    return {"Ftrl": ("accumulator", "linear"), "Adagrad": ("accumulator",), "Adam": ("m", "v"),
            "RMSprop": ("rms", *momentum, *mean), "SGD": momentum}[spec["kind"]]


def run(spec: dict, rows: int, cols: int) -> list[str]:
    numbers = Numbers()
    optimizer = make_optimizer(spec)
    variable = tf.Variable(numbers.floats(rows, cols) if rows else numbers.floats(cols))
    decaying = make_decay(spec, variable)
    lines = []
    for step in range(1, STEPS + 1):
        if rows:
            ids = numbers.ids(rows)
            gradient = tf.IndexedSlices(numbers.floats(IDS_A_STEP, cols), ids, (rows, cols))
        else:
            gradient = tf.constant(numbers.floats(cols))
        decay(decaying, variable)
        optimizer.apply_gradients([(gradient, variable)])
        if step in SNAPSHOTS:
            arrays = {"weights": variable}
            arrays |= {name: optimizer.get_slot(variable, name) for name in slots_of(spec)}
            for name, array in arrays.items():
                values = " ".join(f"{x:.9g}" for x in array.numpy().ravel())
                lines.append(f"{step} {name} {values}")
    return lines


def spec_line(name: str, spec: dict) -> str:
    def word(value: object) -> str:
        return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return f"spec {name} " + " ".join(f"{key}={word(value)}" for key, value in spec.items())


def updates() -> str:
    lines = []
    for name, spec in SPECS.items():
        lines.append(spec_line(name, spec))
        for rows, cols in SHAPES:
            lines.append(f"case {rows} {cols}")
            lines += run(spec, rows, cols)
    return "\n".join(lines) + "\n"


def schedules() -> str:
    lines = []
    for name, spec in SCHEDULES.items():
        lines.append(spec_line(name, spec))
        schedule = make_schedule(spec)
        lines += [f"{step} {float(schedule(tf.constant(step, tf.int64))):.9g}" for step in SCHEDULE_STEPS]
    return "\n".join(lines) + "\n"


FILES = {"updates.txt": updates, "schedules.txt": schedules}

if __name__ == "__main__":
    for file_name, make in FILES.items():
        (pathlib.Path(__file__).parent / "testdata" / file_name).write_text(make())
