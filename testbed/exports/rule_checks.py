"""Keras's rules for repeated ids, as docs/formats/keras_export.md describes them; and exports that
are trained by these rules for 100 steps, compared with train_on_batch."""

from __future__ import annotations

import functools
import json
import pathlib
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import muster.keras
from muster.keras.verify import Session
from testbed.exports import accepted

Rows = Any  # [rows, columns]


class Slices:
    """A gradient with one entry per id. A dense gradient has each row once."""

    def __init__(self, rows: Any, values: Any, count: int):
        self.rows, self.values, self.count = np.asarray(rows), np.asarray(values, np.float64), count

    def total(self, power: int = 1) -> Rows:
        whole = np.zeros((self.count, *self.values.shape[1:]))
        np.add.at(whole, self.rows, self.values**power)
        return whole

    def touched(self) -> Any:
        return np.isin(np.arange(self.count), self.rows)


class Rule:
    """A variable's weights and slots in numpy."""

    def __init__(self, optimizer: dict[str, Any], weights: Rows):
        self.o, self.w, self.t = optimizer, weights.astype(np.float64), 0
        self.slots: dict[str, Rows] = {}

    def slot(self, name: str, value: float = 0.0) -> Rows:
        return self.slots.setdefault(name, np.full(self.w.shape, value))

    def apply(self, g: Slices) -> None:
        o, rate = self.o, self.o["learning_rate"]
        g = self.clipped(g, **(o["clip"] or {}))
        if o["weight_decay"]:
            self.w -= self.w * o["weight_decay"]["rate"] * rate
        getattr(self, o["name"])(g, rate)
        self.t += 1

    def clipped(self, g: Slices, clipvalue: float = 0, clipnorm: float = 0) -> Slices:
        values = g.values
        if clipvalue:
            values = np.clip(values, -clipvalue, clipvalue)
        if clipnorm:
            values = values * clipnorm / max(np.sqrt((values**2).sum()), clipnorm)
        return Slices(g.rows, values, g.count)

    def SGD(self, g: Slices, rate: float) -> None:
        if not self.o["momentum"]:
            self.w -= rate * g.total()
            return
        m = self.slot("m")
        m[:] = m * self.o["momentum"] - rate * g.total()
        self.w += m * self.o["momentum"] - rate * g.total() if self.o["nesterov"] else m

    def Adagrad(self, g: Slices, rate: float) -> None:
        a = self.slot("a", self.o["initial_accumulator_value"])
        a += g.total(2)
        self.w -= rate * g.total() / np.sqrt(a + self.o["epsilon"])

    def Adam(self, g: Slices, rate: float) -> None:
        m, v, b1, b2 = self.slot("m"), self.slot("v"), self.o["beta_1"], self.o["beta_2"]
        m += (g.total() - m) * (1 - b1)
        v += (g.total(2) - v) * (1 - b2)
        rate *= np.sqrt(1 - b2 ** (self.t + 1)) / (1 - b1 ** (self.t + 1))
        self.w -= m * rate / (np.sqrt(v) + self.o["epsilon"])

    AdamW = Adam

    def RMSprop(self, g: Slices, rate: float) -> None:
        o, v = self.o, self.slot("v")
        v[:] = o["rho"] * v + (1 - o["rho"]) * g.total(2)
        below = v + o["epsilon"]
        if o["centered"]:
            mean = self.slot("mean")
            mean[:] = o["rho"] * mean + (1 - o["rho"]) * g.total()
            below = v - mean**2 + o["epsilon"]
        step = rate * g.total() / np.sqrt(below)
        if o["momentum"] > 0:
            m = self.slot("m")
            m[:] = o["momentum"] * m + step
            step = m
        self.w -= step

    def Ftrl(self, g: Slices, rate: float) -> None:
        o = self.o
        a, z = self.slot("a", o["initial_accumulator_value"]), self.slot("z")
        l1, power = o["l1_regularization_strength"], -o["learning_rate_power"]
        l2 = o["l2_regularization_strength"] + o["beta"] / (2 * rate)
        new = a + g.total(2)
        used = g.total() + 2 * o["l2_shrinkage_regularization_strength"] * self.w
        z += used - (new**power - a**power) / rate * self.w
        self.w = (np.clip(z, -l1, l1) - z) / (new**power / rate + 2 * l2)
        a[:] = new


O = keras.optimizers
RULES = {
    "sgd": lambda: O.SGD(0.1),
    "sgd_clipped_by_value": lambda: O.SGD(0.1, clipvalue=0.3),
    "sgd_clipped_by_norm": lambda: O.SGD(0.1, clipnorm=0.5),
    "momentum": lambda: O.SGD(0.1, momentum=0.9),
    "nesterov": lambda: O.SGD(0.1, momentum=0.9, nesterov=True),
    "adagrad": lambda: O.Adagrad(0.1),
    "adam": lambda: O.Adam(0.05),
    "adamw": lambda: O.AdamW(0.05, weight_decay=0.1),
    "rmsprop": lambda: O.RMSprop(0.05),
    "rmsprop_centered": lambda: O.RMSprop(0.05, momentum=0.5, centered=True),
    "ftrl": lambda: O.Ftrl(0.1, l1_regularization_strength=0.01, l2_regularization_strength=0.1,
                           l2_shrinkage_regularization_strength=0.05, beta=0.1),
}  # fmt: skip


def _rule(name: str, folder: pathlib.Path) -> None:
    """Checks IndexedSlices whose rows repeat, and rows that no batch names."""
    from muster.keras.optimizers import Optimizer
    from muster.keras.variables import Variables

    model = keras.Sequential([keras.layers.Input((1,)), keras.layers.Embedding(6, 3)])
    random = np.random.default_rng(11)
    table = model.trainable_variables[0]
    table.assign(random.normal(size=(6, 3)))
    update = Optimizer(RULES[name]())
    rule = Rule(update.manifest(Variables(model)), table.numpy())
    optimizer = update.fresh()
    optimizer.build([table])
    for _ in range(5):
        rows = random.integers(0, 4, 7)
        values = random.normal(size=(7, 3)).astype(np.float32)
        optimizer.apply([tf.IndexedSlices(values, rows, tf.constant([6, 3]))], [table])
        rule.apply(Slices(rows, values, 6))
    assert len(set(rows)) < len(rows), "rows repeat"
    assert np.abs(rule.w - table.numpy()).max() < 2e-6, np.abs(rule.w - table.numpy()).max()


def _hundred_steps(name: str, folder: pathlib.Path) -> None:
    """Compares the exported function and the rule with Keras."""
    case = accepted.wide_deep(TRAINED[name]())
    model, options = case.model, case.options
    muster.keras.export(model, case.optimizer, case.loss, folder / "out", **options)
    manifest = json.loads((folder / "out/model.json").read_text())
    reader = tf.train.load_checkpoint(str(folder / "out/weights"))
    entries = manifest["variables"]
    values = [np.atleast_2d(reader.get_tensor(v["name"])) for v in entries]
    rules = [Rule(manifest["optimizer"], value) for value in values]
    model.compile(TRAINED[name](), case.loss)
    random = np.random.default_rng(12)
    worst = 0.0
    with Session(str(folder / "out")) as session:
        for _ in range(100):
            ids = random.integers(0, 12, (40, 4))
            label = random.integers(0, 2, 40).astype(np.float32)
            arguments = {"input_ids": ids, "label_clicked": label, "denominator": 0.0}
            for i, (rule, v) in enumerate(zip(rules, entries)):
                arguments[f"var_{i:03d}"] = rule.w.reshape(v["shape"])
            results = session.run("step_whole", arguments)
            for i, rule in enumerate(rules):
                gradient = np.atleast_2d(results[f"grad_{i:03d}"])
                rows = results.get(f"rows_{i:03d}", np.arange(len(gradient)))
                rule.apply(Slices(rows, gradient, len(rule.w)))
            loss = model.train_on_batch(ids, label)
            worst = max(worst, abs(float(loss) - float(results["loss"])))
    assert worst < 1e-6, f"losses differ by {worst}"
    variables = [*model.trainable_variables, *model.non_trainable_variables]
    for rule, variable in zip(rules, variables):
        difference = np.abs(rule.w.reshape(variable.shape) - variable.numpy()).max()
        assert difference < 1e-6, f"{variable.path}: {difference}"
    assert sum(v["kind"] == "table" for v in entries) == 8


TRAINED = {
    "adagrad": lambda: O.Adagrad(0.05),
    "adam": lambda: O.Adam(0.001),
    "ftrl": lambda: O.Ftrl(0.05),
    "momentum": lambda: O.SGD(0.05, momentum=0.9),
    "rmsprop": lambda: O.RMSprop(0.001),
}
CHECKS = {
    **{f"rule_of_{name}": functools.partial(_rule, name) for name in RULES},
    **{f"trains_by_{name}": functools.partial(_hundred_steps, name) for name in TRAINED},
}
