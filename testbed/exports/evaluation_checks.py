"""An exported model's evaluation gives the losses and metrics that Keras gives, with the same
names."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import muster.keras
from muster.keras.verify import Session
from testbed.exports import own_losses
from testbed.exports.function_checks import Export, near


def check_metrics_add_up_to_keras(folder: pathlib.Path) -> None:
    export = Export("ids_as_inputs", folder)
    random = np.random.default_rng(4)
    count = 40
    inputs = {
        "item": random.integers(0, 30, count), "words": random.integers(0, 60, (count, 3)),
        "age": random.normal(size=(count, 1)),
    }  # fmt: skip
    label = random.integers(0, 2, count).astype(np.float32)
    model = export.case.model
    model.compile(export.case.optimizer, export.case.loss, metrics=["accuracy", "AUC"])
    want = model.evaluate(inputs, label, batch_size=count, verbose=0, return_dict=True)
    lookups = {x["argument"]: x["source"]["input"] for x in export.manifest["lookups"]}
    sums: dict[str, Any] = {}
    for begin in range(0, count, 16):
        rows = slice(begin, begin + 16)
        arguments = {f"input_{name}": value[rows] for name, value in inputs.items()}
        arguments.update({k: inputs[v][rows].astype(np.int32) for k, v in lookups.items()})
        results = export.run("evaluate", {**arguments, "label_label": label[rows]})
        for name, value in results.items():
            if name.startswith(("metric_", "loss_")):
                sums[name] = sums.get(name, 0) + value.astype(np.float64)
    assert near(sums["loss_sum"] / count, want["loss"], 1e-5)
    for metric in export.manifest["metrics"]:
        states = {state["name"]: sums[state["name"]] for state in metric["states"]}
        value = export.run(metric["result"], states)["value"]
        assert near(value, want[metric["name"]], 1e-5)
    assert [m["name"] for m in export.manifest["metrics"]] == ["accuracy", "AUC"]


def _weights(manifest: dict[str, Any], count: int) -> Any:
    """Returns weights for `count` rows; None if the model takes none."""
    about = manifest["sample_weight"]
    random = np.random.default_rng(15)
    return about and random.uniform(0.5, 1.5, (count, *about["shape"])).astype(np.float32)


def _evaluated(export: Export, inputs: Any, labels: Any, count: int, batch: int) -> dict[str, float]:
    """Returns the sums of `evaluate` over batches, and `loss`, as a trainer adds them up."""
    named = inputs if isinstance(inputs, dict) else {export.manifest["inputs"][0]["name"]: inputs}
    given = {f"input_{name}": value for name, value in named.items()}
    if export.manifest["labels"]:
        names = [port["name"] for port in export.manifest["labels"]]
        by_name = labels if isinstance(labels, dict) else {names[0]: labels}
        given.update({f"label_{name}": by_name[name] for name in names})
    if export.manifest["sample_weight"]:
        given["sample_weight"] = _weights(export.manifest, count)
    for lookup in export.manifest["lookups"]:
        ((kind, of),) = lookup["source"].items()
        given[lookup["argument"]] = given[f"{kind}_{of}"].astype(np.int32)
    whole = {name.replace("var_", "whole_"): value for name, value in export.values.items()}
    sums: dict[str, Any] = {}
    for begin in range(0, count, batch):
        rows = {name: value[begin : begin + batch] for name, value in given.items()}
        for name, value in export.run("evaluate", {**whole, **rows}).items():
            if name.startswith(("metric_", "loss_")):
                sums[name] = sums.get(name, 0) + np.asarray(value, np.float64)
    return {**sums, "loss": float(sums["loss_sum"] / count)}


def check_the_loss_of_an_evaluation_is_kerass(folder: pathlib.Path) -> None:
    """Including what regularizers, layers and the model itself add. If the loss depends on the rows
    of a batch, which the manifest says, batches of the same size are compared."""
    by_batch, exports = {}, {}
    for name in ("regularized_embedding", "retrieval", "in_batch_softmax", "summed_softmax",
                 "part_of_a_loss", "only_added_losses", "weighted_steps"):  # fmt: skip
        export = Export(name, folder / name)
        case = export.case
        inputs, labels = own_losses.rows_of(case)
        case.model.compile(case.optimizer, case.loss, run_eagerly=True)
        weights = _weights(export.manifest, own_losses.ROWS)
        rows = (inputs, labels) if weights is None else (inputs, labels, weights)
        data = tf.data.Dataset.from_tensor_slices(rows).batch(6)
        want = case.model.evaluate(data, verbose=0, return_dict=True)["loss"]
        have = _evaluated(export, inputs, labels, own_losses.ROWS, 6)["loss"]
        assert near(have, want, 1e-5), f"{name}: {have}, {want} by Keras"
        by_batch[name] = export.manifest["evaluates_by_batch"]
        exports[name] = export
    alone = {name for name, by in by_batch.items() if not by}
    assert alone == {"regularized_embedding", "only_added_losses"}, "compute_loss may do anything"
    separable = {name: one.manifest["loss"]["separable"] for name, one in exports.items()}
    assert {name for name, of_rows in separable.items() if not of_rows} == {
        "in_batch_softmax", "summed_softmax", "weighted_steps", "part_of_a_loss"
    }, separable  # fmt: skip


def check_a_regularized_table_has_a_gradient_in_each_row(folder: pathlib.Path) -> None:
    export = Export("regularized_embedding", folder)
    kinds = {v["name"]: v["kind"] for v in export.manifest["variables"]}
    assert set(kinds.values()) == {"dense"}, "no row is left out of a step"
    given = {"input_user": np.array([1, 1]), "input_item": np.array([2, 3])}
    results = export.run("step", {**given, "label_label": np.ones(2, np.float32)})
    users = export.indices[next(n for n in export.indices if n.startswith("users"))]
    expected = 0.02 * export.values[f"var_{users:03d}"]
    assert near(np.delete(results[f"grad_{users:03d}"], 1, 0), np.delete(expected, 1, 0))


def check_a_metric_a_batch_is_averaged_over_batches(folder: pathlib.Path) -> None:
    def off(y: Any, z: Any) -> Any:
        return tf.sqrt(tf.reduce_mean((tf.reshape(y, tf.shape(z)) - z) ** 2))

    model = keras.Sequential([keras.layers.Input((2,), name="x"), keras.layers.Dense(1)])
    metrics = ["mae", off, keras.losses.mean_squared_error, keras.metrics.AUC(from_logits=True)]
    muster.keras.export(model, "sgd", "mse", folder / "out", metrics=metrics)
    manifest = json.loads((folder / "out/model.json").read_text())
    assert manifest["evaluates_by_batch"]
    random = np.random.default_rng(9)
    x = random.normal(size=(10, 2)).astype(np.float32)
    y = random.integers(0, 2, 10).astype(np.float32)
    model.compile("sgd", "mse", metrics=metrics, run_eagerly=True)
    want = model.evaluate(x, y, batch_size=4, verbose=0, return_dict=True)
    assert {"loss", *(m["name"] for m in manifest["metrics"])} == set(want)
    given = {"var_000": model.layers[0].kernel.numpy(), "var_001": np.zeros(1), "denominator": 0.0}
    sums: dict[str, Any] = {}
    with Session(str(folder / "out")) as session:
        for rows in (slice(0, 4), slice(4, 8), slice(8, 10)):
            parts = {"input_x": x[rows], "label_label": y[rows]}
            for name, value in session.run("evaluate", {**given, **parts}).items():
                sums[name] = sums.get(name, 0) + value if name.startswith("metric_") else 0
        for metric in manifest["metrics"]:
            value = session.run(metric["result"], sums)["value"]
            assert near(value, want[metric["name"]], 1e-5), metric["name"]


def check_a_metric_that_breaks_ties_by_its_own_seed_is_repeatable(folder: pathlib.Path) -> None:
    """Metrics of rankings take any of the items that tie, a different one at each draw."""

    class AnyItem(keras.metrics.Mean):
        def __init__(self) -> None:
            super().__init__(name="any")
            self.seed_generator = keras.random.SeedGenerator(3)

        def update_state(self, y: Any, z: Any, sample_weight: Any = None) -> None:
            order = keras.random.shuffle(keras.ops.arange(64), seed=self.seed_generator)
            super().update_state(keras.ops.take(z, order, axis=1)[:, 0])

    model = keras.Sequential([keras.layers.Input((2,), name="x"), keras.layers.Dense(64)])
    metric = AnyItem()
    before = np.array(metric.seed_generator.state)
    muster.keras.export(model, "sgd", "mse", folder / "out", metrics=[metric])
    assert (np.array(metric.seed_generator.state) == before).all(), "it stays as it was"
    manifest = json.loads((folder / "out/model.json").read_text())
    assert [m["name"] for m in manifest["metrics"]] == ["any"]
    given = {"var_000": np.stack([np.arange(64)] * 2), "var_001": np.zeros(64), "denominator": 0.0,
             "input_x": np.ones((3, 2)), "label_label": np.ones((3, 64))}  # fmt: skip
    with Session(str(folder / "out")) as session:
        one, two = (session.run("evaluate", given) for _ in range(2))
    metric.update_state(given["label_label"], given["input_x"] @ given["var_000"])
    assert one["metric_0_0"] == two["metric_0_0"] == 3 * float(metric.result()), "as Keras at first"


def check_a_metric_of_an_output_has_kerass_name(folder: pathlib.Path) -> None:
    x = keras.layers.Input((2,), name="x")
    outputs = [keras.layers.Dense(1, name=name)(x) for name in ("low", "high")]
    label = [muster.keras.Field(name, "float32") for name in ("a", "b")]
    muster.keras.export(keras.Model(x, outputs), "sgd", ["mse", "mse"], folder / "out", label=label,
                        metrics=[["mae"], ["mse"]])  # fmt: skip
    manifest = json.loads((folder / "out/model.json").read_text())
    assert [m["name"] for m in manifest["metrics"]] == ["low_mae", "high_mse"]


def check_metrics_have_kerass_names_however_they_are_given(folder: pathlib.Path) -> None:
    L, random = keras.layers, np.random.default_rng(10)
    x, y = L.Input((2,), name="x"), random.integers(0, 2, (8, 1)).astype(np.float32)
    one = keras.Model(x, L.Dense(1, activation="sigmoid", name="low")(x))
    both = [L.Dense(1, activation="sigmoid", name=name)(x) for name in ("low", "high")]
    listed, named = keras.Model(x, both), keras.Model(x, {"p": both[0], "q": both[1]})
    fields = [muster.keras.Field(name, "float32", [1]) for name in ("a", "b")]
    by_name = dict(zip(("low", "high"), fields))
    words = ["mae", "MSE", "AUC", "acc", "RootMeanSquaredError", "binary_accuracy", "Precision"]
    cases = [
        (one, fields[0], y, words),
        (one, fields[0], y, {"low": ["mae"]}),
        (one, fields[0], y, [keras.metrics.AUC(name="pr", curve="PR"), lambda a, b: (a - b) ** 2]),
        (listed, fields, [y, y], [["mae", "mse"], ["mae"]]),
        (listed, fields, [y, y], ["mae", "AUC"]),
        (listed, fields, [y, y], {"high": ["mae"]}),
        (listed, by_name, {"low": y, "high": y}, {"low": "acc", "high": ["mae", "mse"]}),
        (named, dict(zip("pq", fields)), {"p": y, "q": y}, {"q": ["mae", "AUC"]}),
    ]  # fmt: skip
    for number, (model, label, values, metrics) in enumerate(cases):
        loss = keras.tree.map_structure(lambda _: "mse", label)
        muster.keras.export(model, "sgd", loss, folder / str(number), label=label, metrics=metrics)
        manifest = json.loads((folder / str(number) / "model.json").read_text())
        model.compile("sgd", loss, metrics=metrics)
        rows = random.normal(size=(8, 2)).astype(np.float32)
        shown = model.evaluate(rows, values, verbose=0, return_dict=True)
        want = sorted(name for name in shown if not name.endswith("loss"))
        assert sorted(m["name"] for m in manifest["metrics"]) == want, number


def check_a_label_alone_is_compared_with_each_output(folder: pathlib.Path) -> None:
    """The model's compute_loss has the only label, as in recommenders for two tasks."""

    class Both(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.rate = keras.layers.Dense(1)

        def call(self, x: Any) -> Any:
            return {"query": x, "rating": self.rate(x)}

        def compute_loss(self, x: Any, y: Any, y_pred: Any, sample_weight: Any) -> Any:
            return keras.ops.mean((keras.ops.expand_dims(y, -1) - y_pred["rating"]) ** 2)

    model = Both()
    model(np.zeros((2, 3), np.float32))
    muster.keras.export(model, "sgd", None, folder / "out", metrics={"rating": ["mae"]},
                        inputs=muster.keras.Field("x", "float32", [3]),
                        label=muster.keras.Field("rating", "float32"))  # fmt: skip
    manifest = json.loads((folder / "out/model.json").read_text())
    assert [m["name"] for m in manifest["metrics"]] == ["rating_mae"]
    random = np.random.default_rng(6)
    x, y = random.normal(size=(5, 3)).astype(np.float32), random.normal(size=5).astype(np.float32)
    given = {"var_000": model.rate.kernel.numpy(), "var_001": np.zeros(1), "denominator": 0.0}
    with Session(str(folder / "out")) as session:
        sums = session.run("evaluate", {**given, "input_x": x, "label_rating": y})
    want = np.abs(model(x)["rating"].numpy()[:, 0] - y).sum()
    assert near(sums["metric_0_0"], want, 1e-5), (sums, want)
