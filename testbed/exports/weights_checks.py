"""Weights are put into a served model by their keys, and back into Keras by their names."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import muster.keras
from testbed.exports import accepted

GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"


def _export(name: str, folder: pathlib.Path) -> accepted.Case:
    case = accepted.CASES[name]()
    muster.keras.export(case.model, case.optimizer, case.loss, folder / "out", **case.options)
    return case


def _variables(model: Any) -> list[Any]:
    return [*model.trainable_variables, *model.non_trainable_variables]


def _train(case: accepted.Case, inputs: Any, label: Any) -> list[Any]:
    """Returns the weights after some steps of Keras, which stands for a trainer elsewhere."""
    case.model.compile(case.optimizer, case.loss)
    for _ in range(3):
        case.model.train_on_batch(inputs, label)
    return [variable.numpy() for variable in _variables(case.model)]


def _write_bundle(prefix: pathlib.Path, tensors: dict[str, Any]) -> None:
    prefix.parent.mkdir(parents=True, exist_ok=True)
    names = sorted(tensors)
    tf.raw_ops.SaveV2(
        prefix=str(prefix), tensor_names=names, shape_and_slices=[""] * len(names),
        tensors=[tf.constant(tensors[name]) for name in names],
    )  # fmt: skip


def _serve(folder: pathlib.Path, values: list[Any]) -> pathlib.Path:
    """Writes the template with these values, as a program without Keras would."""
    template, served = folder / "out/before_training", folder / "served"
    graph = tf.train.load_checkpoint(str(template / "variables/variables")).get_tensor(GRAPH)
    shutil.copytree(template, served)
    shutil.rmtree(served / "variables")
    keys = {f"vars/{i}/.ATTRIBUTES/VARIABLE_VALUE": value for i, value in enumerate(values)}
    _write_bundle(served / "variables/variables", {**keys, GRAPH: graph})
    return served


def check_python_predicts_with_weights_written_by_key(folder: pathlib.Path) -> None:
    case = _export("wide_deep_normalized", folder)
    random = np.random.default_rng(1)
    ids, label = random.integers(0, 50, (16, 4)), random.integers(0, 2, (16, 1))
    untrained = case.model.predict(ids, verbose=0)
    served = _serve(folder, _train(case, ids, label))
    want = case.model.predict(ids, verbose=0)
    assert np.abs(want - untrained).max() > 1e-3, "it was trained"
    signatures = tf.saved_model.load(str(served)).signatures
    (have,) = signatures["serving_default"](ids=tf.constant(ids)).values()
    assert np.abs(have - want).max() < 1e-6
    records = [
        tf.train.Example(
            features=tf.train.Features(
                feature={"ids": tf.train.Feature(int64_list=tf.train.Int64List(value=row))}
            )
        ).SerializeToString()
        for row in ids
    ]
    (parsed,) = signatures["parse_examples"](examples=tf.constant(records)).values()
    assert np.abs(parsed - want).max() < 1e-6
    layer = keras.layers.TFSMLayer(str(served), call_endpoint="serving_default")
    (of_layer,) = layer(tf.constant(ids)).values()
    assert np.abs(of_layer - want).max() < 1e-6


def check_lookup_tables_are_served(folder: pathlib.Path) -> None:
    case = _export("lookup_layers", folder)
    served = _serve(folder, [v.numpy() * 2 for v in _variables(case.model)])
    for variable in case.model.trainable_variables:
        variable.assign(variable.numpy() * 2)
    inputs = {
        "word": tf.constant(["a", "zz"]),
        "number": tf.constant([5, 9], tf.int64),
        "value": tf.constant([[0.5], [2.0]]),
    }
    (have,) = tf.saved_model.load(str(served)).signatures["serving_default"](**inputs).values()
    assert np.abs(have - case.model(list(inputs.values()))).max() < 1e-6
    features = {
        "word": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"zz"])),
        "number": tf.train.Feature(int64_list=tf.train.Int64List(value=[9])),
        "value": tf.train.Feature(float_list=tf.train.FloatList(value=[2.0])),
    }
    record = tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()
    parse = tf.saved_model.load(str(served)).signatures["parse_examples"]
    (parsed,) = parse(examples=tf.constant([record])).values()
    assert np.abs(parsed[0] - have[1]).max() < 1e-6


def check_a_served_model_is_loaded_back(folder: pathlib.Path) -> None:
    case = _export("cnn", folder)
    trained = [v.numpy() + np.asarray(1, v.numpy().dtype) for v in _variables(case.model)]
    served = _serve(folder, trained)
    muster.keras.load(served, case.model)
    for variable, value in zip(_variables(case.model), trained):
        assert (variable.numpy() == value).all(), variable.path


def _checkpoint(folder: pathlib.Path, add: float) -> pathlib.Path:
    """Writes a model folder as Muster does, with the exported weights plus `add`, without seeds."""
    manifest = json.loads((folder / "out/model.json").read_text())
    reader = tf.train.load_checkpoint(str(folder / "out/weights"))
    tensors = {
        v["name"]: reader.get_tensor(v["name"]) + np.asarray(add, v["dtype"])
        for v in manifest["variables"]
        if v["kind"] != "seed"
    }
    _write_bundle(folder / "model/model.ckpt-7", {**tensors, "global_step": np.int64(7)})
    (folder / "model/checkpoint").write_text(
        'model_checkpoint_path: "model.ckpt-7"\nall_model_checkpoint_paths: "model.ckpt-7"\n'
    )
    return folder / "model"


def check_a_checkpoint_is_loaded_by_name(folder: pathlib.Path) -> None:
    case = _export("cnn", folder)
    before = [v.numpy() for v in case.model.trainable_variables]
    model = _checkpoint(folder, 2.0)
    muster.keras.load(model, case.model)
    for variable, value in zip(case.model.trainable_variables, before):
        assert (variable.numpy() == value + 2).all(), variable.path
    muster.keras.load(folder / "out", case.model)
    for variable, value in zip(case.model.trainable_variables, before):
        assert (variable.numpy() == value).all(), "the export's own"
    muster.keras.load(model / "model.ckpt-7", case.model)
    assert (case.model.trainable_variables[0].numpy() == before[0] + 2).all()


def check_another_model_of_the_same_kind_needs_the_manifest(folder: pathlib.Path) -> None:
    """Keras numbers unnamed layers, so the second model has other names."""
    _export("cnn", folder)
    checkpoint = _checkpoint(folder, 1.0)
    other = accepted.CASES["cnn"]().model
    try:
        muster.keras.load(checkpoint, other)
    except ValueError as error:
        assert "has no 'sequential_1/" in str(error) or "has no 'conv2d_1/" in str(error), error
        assert "manifest=" in str(error)
    else:
        raise AssertionError("it was loaded")
    muster.keras.load(checkpoint, other, manifest=folder / "out")
    want = tf.train.load_checkpoint(str(checkpoint)).get_variable_to_shape_map()
    assert "global_step" in want
    name = json.loads((folder / "out/model.json").read_text())["variables"][0]["name"]
    value = tf.train.load_checkpoint(str(checkpoint)).get_tensor(name)
    assert (other.trainable_variables[0].numpy() == value).all()


def _refusal(path: Any, model: Any) -> str:
    before = [variable.numpy() for variable in model.variables]
    try:
        muster.keras.load(path, model)
    except ValueError as error:
        for variable, value in zip(model.variables, before):
            assert (variable.numpy() == value).all(), "something was changed"
        return str(error)
    raise AssertionError("it was loaded")


def check_wrong_weights_are_refused(folder: pathlib.Path) -> None:
    case = _export("custom_loss", folder)
    layers = keras.layers
    wide = keras.Sequential([layers.Input((3,), name="x"), layers.Dense(5), layers.Dense(1)])
    deep = keras.Sequential([layers.Input((3,), name="x"), layers.Dense(1)])
    assert "[3, 4]" in _refusal(folder / "out", wide) and "[3, 5]" in _refusal(folder / "out", wide)
    assert "4 variables" in _refusal(folder / "out/before_training", deep)
    assert "no SavedModel" in _refusal(folder / "nothing", case.model)
    assert "holds no checkpoint" in _refusal(folder, case.model)
    assert "not built" in _refusal(folder / "out", keras.Sequential([layers.Dense(1)]))
    index = folder / "out/weights.index"
    index.write_bytes(index.read_bytes()[:-20])
    assert "cannot be read" in _refusal(folder / "out", case.model)
    (folder / "out/model.json").write_text("{}")
    assert "not a model that" in _refusal(folder / "out", case.model)
    tf.saved_model.save(tf.Module(), str(folder / "other"))
    assert "none that Muster" in _refusal(folder / "other", case.model)


def check_what_is_frozen_comes_from_the_export(folder: pathlib.Path) -> None:
    """A checkpoint has the trained variables; statistics of an adapted layer, frozen weights and
    tables are in the export that the model folder has, or in the manifest's folder."""
    case = _export("frozen_embedding", folder)
    model = folder / "model"
    manifest = json.loads((folder / "out/model.json").read_text())
    reader = tf.train.load_checkpoint(str(folder / "out/weights"))
    trained = {v["name"]: reader.get_tensor(v["name"]) + 1 for v in manifest["variables"]
               if v["trainable"]}  # fmt: skip
    _write_bundle(model / "model.ckpt-7", trained)
    (model / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-7"\n')
    want = [variable.numpy() for variable in case.model.non_trainable_variables]
    assert want, "something is frozen"
    for variable in case.model.variables:
        variable.assign(variable.numpy() * 0)
    assert "in the model folder's 'exported'" in _refusal(model, case.model)
    muster.keras.load(model, case.model, manifest=folder / "out")
    for variable, value in zip(case.model.non_trainable_variables, want):
        assert (variable.numpy() == value).all(), variable.path
        variable.assign(value * 0)
    shutil.copytree(folder / "out", model / "exported")
    for path in (model, model / "model.ckpt-7"):
        muster.keras.load(path, case.model)
        for variable, value in zip(case.model.non_trainable_variables, want):
            assert (variable.numpy() == value).all(), variable.path
    for variable in case.model.trainable_variables:
        assert (variable.numpy() == trained[variable.path]).all(), variable.path


def _muster(*arguments: Any) -> None:
    environment = {**os.environ, "MUSTER_TENSORFLOW": sys.executable}
    done = subprocess.run([os.environ["MUSTER_BINARY"], *map(str, arguments)], env=environment,
                          capture_output=True, text=True, timeout=300)  # fmt: skip
    assert done.returncode == 0, done.stderr


def check_what_muster_trained_is_loaded_back(folder: pathlib.Path) -> None:
    """A model with adapted columns and frozen layers is loaded from its model folder, from a
    checkpoint and from its export for serving."""
    case = _export("feature_space", folder)
    rows = [{"age": 10.0 + i, "city": "ab"[i % 2], "kind": i % 3, "label": i % 2} for i in range(64)]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    data = folder / "rows.jsonl"
    _muster("train", folder / "out", "--train", data, "--model-dir", folder / "m", "--quiet")
    _muster("export", "--model-dir", folder / "m", "--out", folder / "served")
    _muster("predict", "--model-dir", folder / "m", "--data", data, "--out", folder / "p.jsonl")
    predicted = [json.loads(line) for line in (folder / "p.jsonl").read_text().splitlines()]
    want = np.array([list(row.values())[1] for row in predicted])
    inputs = {name: tf.constant([[row[name]] for row in rows]) for name in ("age", "city", "kind")}
    assert np.abs(case.model.predict(inputs, verbose=0) - want).max() > 1e-4, "it was trained"
    newest = tf.train.latest_checkpoint(str(folder / "m"))
    other = accepted.CASES["feature_space"]().model  # as another process would make it
    places: list[tuple[Any, Any, dict[str, Any]]] = [
        (case.model, folder / "m", {}), (case.model, newest, {}), (case.model, folder / "served", {}),
        (other, folder / "m", {"manifest": folder / "m/exported"}),
    ]  # fmt: skip
    for model, place, options in places:
        for variable in model.variables:
            if variable.dtype == "float32":
                variable.assign(variable.numpy() * 0)
        muster.keras.load(place, model, **options)
        assert np.abs(model.predict(inputs, verbose=0) - want).max() < 1e-5, place
