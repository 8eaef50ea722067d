"""What the exported functions compute: denominators, seeds, ids, predictions, images; and what is
reported about models that are exported but are not what they seem."""

from __future__ import annotations

import json
import pathlib
import warnings
from typing import Any, Callable
from unittest import mock

import keras
import numpy as np
import tensorflow as tf

import muster.keras
from muster.keras import gradients
from muster.keras.verify import Session
from testbed.exports import accepted


class Export:
    """An exported case, with its initial values as arguments."""

    def __init__(self, name: str, folder: pathlib.Path):
        self.case = accepted.CASES[name]()
        case = self.case
        muster.keras.export(case.model, case.optimizer, case.loss, folder / "out", **case.options)
        self.folder = folder / "out"
        self.manifest = json.loads((self.folder / "model.json").read_text())
        reader = tf.train.load_checkpoint(str(self.folder / "weights"))
        self.values = {
            f"var_{i:03d}": reader.get_tensor(v["name"])
            for i, v in enumerate(self.manifest["variables"])
        }
        self.indices = {v["name"]: i for i, v in enumerate(self.manifest["variables"])}

    def run(self, signature: str, arguments: dict[str, Any]) -> dict[str, Any]:
        with Session(str(self.folder)) as session:
            return session.run(
                signature, {**self.values, "denominator": np.float32(0), **arguments}
            )


def near(a: Any, b: Any, tolerance: float = 1e-6) -> bool:
    return bool(np.allclose(a, b, rtol=tolerance, atol=tolerance))


def check_parts_of_a_batch_add_up(folder: pathlib.Path) -> None:
    export = Export("text_conv", folder)
    random = np.random.default_rng(1)
    ids = random.integers(0, 50, (8, 12)).astype(np.int32)
    label = random.integers(0, 2, 8).astype(np.float32)

    def step(rows: slice, denominator: float) -> dict[str, Any]:
        arguments = {"ids_0": ids[rows], "label_label": label[rows]}
        return export.run("step", {**arguments, "denominator": np.float32(denominator)})

    whole, own = step(slice(0, 8), 8), step(slice(0, 8), 0)
    parts = step(slice(0, 3), 8), step(slice(3, 8), 8)
    table = export.indices[next(n for n in export.indices if "embedding" in n)]
    for name, value in whole.items():
        assert near(value, own[name]), name
        if name.startswith("rows"):
            assert (np.concatenate([p[name] for p in parts]) == value).all()
        elif name == f"grad_{table:03d}":
            assert near(np.concatenate([p[name] for p in parts]), value)
        else:
            assert near(sum(p[name] for p in parts), value), name


def check_a_block_of_rows_is_a_table(folder: pathlib.Path) -> None:
    """Takes the same step with only the touched rows, in another order."""
    export = Export("ids_as_inputs", folder)
    random = np.random.default_rng(2)
    item, words = random.integers(0, 30, 6), random.integers(0, 60, (6, 4))
    arguments = {
        "ids_1": item.astype(np.int32), "ids_0": words.astype(np.int32),
        "input_words": words.astype(np.int32), "input_age": random.normal(size=(6, 1)),
        "label_label": np.ones(6, np.float32),
    }  # fmt: skip
    lookups = {x["argument"]: x for x in export.manifest["lookups"]}
    sources = {name: x["source"]["input"] for name, x in lookups.items()}
    arguments.update(
        {k: {"item": item, "words": words}[v].astype(np.int32) for k, v in sources.items()}
    )
    whole = export.run("step", arguments)
    blocks = dict(arguments)
    order = {}
    for name, lookup in lookups.items():
        table = lookup["table"]
        rows = np.unique(arguments[name])[::-1]
        blocks[f"var_{table:03d}"] = export.values[f"var_{table:03d}"][rows]
        blocks[name] = (len(rows) - 1 - np.searchsorted(rows[::-1], arguments[name])).astype(
            np.int32
        )
        order[f"rows_{table:03d}"] = rows
    part = export.run("step", blocks)
    assert len(order) == 2
    for name, value in whole.items():
        have = order[name][part[name]] if name in order else part[name]
        assert near(have, value), name


def check_the_same_seed_gives_the_same_dropout(folder: pathlib.Path) -> None:
    export = Export("cnn", folder)
    (seed,) = (i for i, v in enumerate(export.manifest["variables"]) if v["kind"] == "seed")
    x = np.random.default_rng(3).normal(size=(4, 14, 14, 1)).astype(np.float32)
    arguments = {"input_x": x, "label_label": np.arange(4), "sample_weight": np.ones(4, np.float32)}
    (name,) = (p["name"] for p in export.manifest["inputs"])
    arguments[f"input_{name}"] = x
    losses = [
        float(export.run("step", {**arguments, f"var_{seed:03d}": np.array([s, 0])})["loss"])
        for s in (1, 1, 2)
    ]
    assert losses[0] == losses[1] != losses[2], losses


def check_states_are_the_batchs(folder: pathlib.Path) -> None:
    """BatchNorm's new moving statistics, by its formula."""
    export = Export("cnn", folder)
    states = [v["name"] for v in export.manifest["variables"] if v["kind"] == "state"]
    assert [name.rpartition("/")[2] for name in states] == ["moving_mean", "moving_variance"]
    (name,) = (p["name"] for p in export.manifest["inputs"])
    arguments = {
        f"input_{name}": np.zeros((2, 14, 14, 1), np.float32),
        "label_label": np.arange(2),
        "sample_weight": np.ones(2, np.float32),
    }
    new = export.run("step", arguments)
    assert near(new[f"new_{export.indices[states[1]]:03d}"], 0.99), "0.99 * 1 + 0.01 * 0"


def check_ids_are_computed_from_words(folder: pathlib.Path) -> None:
    export = Export("lookup_layers", folder)
    ids = export.run("ids", {"input_word": np.array([b"b", b"x", b"a"], object)})
    (lookup,) = (x for x in export.manifest["lookups"] if "string_lookup" in _node(export, x))
    assert ids[lookup["argument"]].tolist() == [2, 0, 1]
    assert ids[lookup["argument"]].dtype == np.int64
    step = export.manifest["signatures"]["step"]["inputs"]
    assert "input_word" not in step and "input_number" in step, step


def _node(export: Export, lookup: dict[str, Any]) -> str:
    return str(export.manifest["signatures"]["ids"]["outputs"][lookup["argument"]])


def check_an_image_is_decoded(folder: pathlib.Path) -> None:
    export = Export("image_from_bytes", folder)
    image = np.random.default_rng(5).integers(0, 256, (6, 6, 3)).astype(np.uint8)
    png = tf.io.encode_png(image).numpy()
    assert (export.run("decode_image", {"bytes": png})["value"] == image).all()
    served = tf.saved_model.load(str(export.folder / "before_training")).signatures
    raw = served["serving_default"](image=tf.constant(image[None]))
    feature = tf.train.Feature(bytes_list=tf.train.BytesList(value=[png]))
    record = tf.train.Example(features=tf.train.Features(feature={"jpg": feature}))
    parsed = served["parse_examples"](examples=tf.constant([record.SerializeToString()]))
    for name, value in raw.items():
        assert near(value, parsed[name])


def check_own_schedules_are_a_function_of_the_step(folder: pathlib.Path) -> None:
    export = Export("own_schedule", folder)
    assert export.manifest["optimizer"]["learning_rate"] == {"signature": "learning_rate"}
    assert export.manifest["optimizer"]["clip"] == {"clipvalue": 0.01}
    rate = export.run("learning_rate", {"step": np.int64(3)})["learning_rate"]
    assert near(rate, 0.05)


def check_named_schedules_have_their_arguments(folder: pathlib.Path) -> None:
    optimizer = Export("cnn", folder).manifest["optimizer"]
    rate = {"schedule": "ExponentialDecay", "initial_learning_rate": 0.01, "decay_steps": 100}
    assert optimizer["learning_rate"] == {**rate, "decay_rate": 0.9, "staircase": False}
    assert optimizer["name"] == "Adam" and optimizer["beta_1"] == 0.9
    assert optimizer["clip"] is None and optimizer["weight_decay"] is None


def check_what_the_loss_does_not_need_is_not_trained(folder: pathlib.Path) -> None:
    export = Export("unused_weight", folder)
    trained = {v["name"]: v["trainable"] for v in export.manifest["variables"]}
    assert sorted(trained.values()) == [False, False, True, True], trained
    assert len(export.manifest["signatures"]["step"]["outputs"]) == 4


def check_masked_losses_are_no_mean_over_rows(folder: pathlib.Path) -> None:
    export = Export("sequence_labels", folder / "a")
    assert export.manifest["loss"]["separable"] is False
    assert export.manifest["labels"][0]["shape"] == [None], "as long as its words"
    assert Export("text_lstm", folder / "b").manifest["loss"]["separable"] is True


def check_steps_hold_no_variables_and_little_else(folder: pathlib.Path) -> None:
    export = Export("wide_deep", folder)
    loaded = tf.saved_model.load(str(export.folder / "step"))
    step = loaded.signatures["step"]
    operations = [operation.type for operation in step.graph.get_operations()]
    assert not [o for o in operations if "Variable" in o or "VarHandle" in o], operations
    nodes = {n.name for n in loaded.graph.as_graph_def().node if n.name.startswith("step/")}
    assert len(nodes) < 320, len(nodes)


def check_keras_computes_mse_as_said(folder: pathlib.Path) -> None:
    """Compares loss and gradient of a linear model with a computation by hand."""
    model = keras.Sequential([keras.layers.Input((2,), name="x"), keras.layers.Dense(1)])
    model.layers[0].set_weights([np.array([[1.0], [2.0]]), np.array([0.5])])
    muster.keras.export(model, "sgd", "mse", folder / "out", sample_weight="w")
    arguments = {
        "var_000": np.array([[1.0], [2.0]]), "var_001": np.array([0.5]),
        "input_x": np.array([[1.0, 1.0], [0.0, 1.0]]), "label_label": np.array([3.0, 0.5]),
        "sample_weight": np.array([1.0, 3.0]), "denominator": 0.0,
    }  # fmt: skip
    with Session(str(folder / "out")) as session:
        results = session.run("step", arguments)
    assert near(results["loss"], (0.5**2 + 3 * 2.0**2) / 2)
    assert near(results["grad_000"], [[0.5], [0.5 + 3 * 2.0]])
    assert near(results["grad_001"], [0.5 + 3 * 2.0])


def check_another_backend_is_refused(folder: pathlib.Path) -> None:
    case = accepted.CASES["custom_loss"]()
    with mock.patch.object(keras.backend, "backend", lambda: "jax"):
        try:
            muster.keras.export(case.model, case.optimizer, case.loss, folder / "out")
        except ValueError as error:
            assert "Keras runs on jax: a model is exported from TensorFlow" in str(error), error
        else:
            raise AssertionError("it was exported")


def check_nothing_is_written_over(folder: pathlib.Path) -> None:
    case = accepted.CASES["custom_loss"]()
    (folder / "out").write_text("mine")
    try:
        muster.keras.export(case.model, case.optimizer, case.loss, folder / "out")
    except FileExistsError as error:
        assert "give the export another name" in str(error), error
    assert (folder / "out").read_text() == "mine"


def check_a_wrong_function_is_not_written(folder: pathlib.Path) -> None:
    """The comparison notices a gradient that is off by a hundredth, and nothing is left."""
    case = accepted.CASES["custom_loss"]()
    with _gradients_times(1.01):
        try:
            muster.keras.export(case.model, case.optimizer, case.loss, folder / "out")
        except ValueError as error:
            assert "differs from Keras's by" in str(error), error
        else:
            raise AssertionError("it was exported")
    assert not list(folder.iterdir())


def check_gradients_added_up_in_another_order_are_accepted(folder: pathlib.Path) -> None:
    """A bias that begins at 0 shows a difference that a processor with many cores makes."""
    case = accepted.CASES["custom_loss"]()
    with _gradients_times(1 + 2e-5):
        muster.keras.export(case.model, keras.optimizers.SGD(0.1), case.loss, folder / "out")
    assert (folder / "out" / "model.json").exists()


def _gradients_times(factor: float) -> Any:
    real = gradients.of_variable

    def other(entry: Any, gradient: Any, loss_scale: float) -> Any:
        return real(entry, gradient * factor, loss_scale)

    return mock.patch.object(gradients, "of_variable", other)


def _said(export: Callable[[], None]) -> str:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        export()
    return "\n".join(str(one.message) for one in said if one.filename == __file__)


def check_rows_that_change_each_others_predictions_are_said(folder: pathlib.Path) -> None:
    """A score is summed over the whole batch, as in one of Keras's examples for recommenders."""

    class Scores(keras.Model):
        def __init__(self, axes: int) -> None:
            super().__init__()
            self.table, self.axes = keras.layers.Embedding(9, 4), axes

        def call(self, ids: Any) -> Any:
            users, items = self.table(ids[:, 0]), self.table(ids[:, 1])
            if self.axes == 2:
                return keras.ops.tensordot(users, items, 2) + users[:, :1]
            return keras.ops.sum(users * items, axis=1, keepdims=True)

    for axes in (1, 2):
        model = Scores(axes)
        model.table.build()
        model.table.embeddings.assign(np.random.default_rng(4).normal(size=(9, 4)))
        model(np.zeros((2, 2), np.int32))
        options = {"inputs": muster.keras.Field("ids", "int64", [2])}
        example = np.arange(16).reshape(8, 2) % 9, np.ones((8,))
        said = _said(lambda: muster.keras.export(model, "sgd", "mse", folder / f"of_{axes}",
                                                 example=example, **options))  # fmt: skip
        assert ("something else of a row" in said) == (axes == 2), said
    assert "give `muster predict` the --batch-size" in said


def check_what_a_model_does_around_its_training_is_said(folder: pathlib.Path) -> None:
    class Own(keras.Sequential):
        def evaluate(self, *given: Any, **options: Any) -> Any:
            return super().evaluate(*given, **options)

    model = Own([keras.layers.Input((3,), name="x"), keras.layers.Dense(1)])
    said = _said(lambda: muster.keras.export(model, "sgd", "mse", folder / "out"))
    assert "has its own evaluate, which Muster does not call" in said, said
    assert (folder / "out/model.json").exists()
