"""The census program on TensorFlow and, with its import changed, on Muster."""

from __future__ import annotations

import csv
import difflib
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

HERE = pathlib.Path(__file__).parent
BEFORE, AFTER = HERE / "adult_before.py", HERE / "adult.py"
METRICS = (
    "accuracy", "accuracy_baseline", "auc", "auc_precision_recall", "average_loss", "global_step",
    "label/mean", "loss", "precision", "prediction/mean", "recall",
)  # fmt: skip


@pytest.fixture(scope="module")
def data(real_data, tmp_path_factory) -> tuple[pathlib.Path, pathlib.Path]:
    """The census table as the program wants it: (train, test), without a header."""
    folder = tmp_path_factory.mktemp("adult")
    with open(real_data("adult/adult.csv"), newline="") as file:
        rows = list(csv.reader(file))[1:]
    paths = folder / "adult.data", folder / "adult.test"
    for path, keep in zip(paths, (lambda i: i % 5 != 4, lambda i: i % 5 == 4)):
        with open(path, "w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(
                row for i, row in enumerate(rows) if keep(i)
            )
    return paths


def run(program: pathlib.Path, data, model_dir: pathlib.Path, *flags: object) -> dict:
    """Runs the program; what it printed: metrics by name, `predicted`, `exported`."""
    repository = HERE.parent.parent
    result = subprocess.run(
        [sys.executable, program, "--train", data[0], "--test", data[1], "--model-dir", model_dir,
         *map(str, flags)],
        env={**os.environ, "PYTHONPATH": str(repository / "python"), "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True, text=True, timeout=900, cwd=model_dir.parent,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    out: dict = {"predicted": []}
    for line in result.stdout.splitlines():
        if found := re.fullmatch(r"(\S+): (\S+)", line):
            out[found[1]] = float(found[2])
        elif line.startswith("predicted"):
            _, word, probability = line.split()
            out["predicted"].append((word, float(probability)))
        elif line.startswith("exported"):
            out["exported"] = line.split()[1]
    return out


def test_only_the_import_differs() -> None:
    difference = difflib.unified_diff(
        BEFORE.read_text().splitlines(), AFTER.read_text().splitlines(), n=0, lineterm=""
    )
    changed = [line for line in difference if not line.startswith(("---", "+++", "@@"))]
    assert changed == ["-import tensorflow as tf", "+import muster.tensorflow as tf"]


def assert_same_metrics(ours: dict, theirs: dict, tolerance: float) -> None:
    assert set(METRICS) <= set(theirs) and set(METRICS) <= set(ours)
    for name in METRICS:
        name_here = "auc_interpolated" if name == "auc" else name  # TensorFlow's is the latter
        assert ours[name_here] == pytest.approx(theirs[name], abs=tolerance), name


def test_the_wide_model_is_the_same(data, tmp_path) -> None:
    flags = ("--model-type", "wide", "--epochs", 2, "--no-shuffle", "--export-dir", tmp_path / "out")
    theirs = run(BEFORE, data, tmp_path / "theirs", *flags)
    ours = run(AFTER, data, tmp_path / "ours", *flags)
    assert_same_metrics(ours, theirs, 1e-5)
    for (word, probability), (their_word, their_probability) in zip(
        ours["predicted"], theirs["predicted"]
    ):
        assert probability == pytest.approx(their_probability, abs=1e-5)
        assert word == their_word
    for exported in (ours["exported"], theirs["exported"]):
        assert (tmp_path / exported / "saved_model.pb").is_file()


def start_as(tf_model_dir: pathlib.Path, model_dir: pathlib.Path) -> None:
    """TensorFlow's weights at step 0, with fresh slots, as a checkpoint that Muster continues from."""
    import tensorflow as tf

    initial = tf.train.load_checkpoint(str(tf_model_dir / "model.ckpt-0"))
    tensors: dict = {"global_step": np.int64(0)}
    for name in initial.get_variable_to_shape_map():
        if not name.startswith(("linear/", "dnn/")):
            continue
        value = tensors[name] = initial.get_tensor(name)
        optimizer = "Ftrl" if name.startswith("linear/") else "Adagrad"
        slots = {"accumulator": 0.1, "linear": 0} if optimizer == "Ftrl" else {"accumulator": 0.1}
        for slot, start in slots.items():
            tensors[f"training/{optimizer}/{name}/{slot}"] = np.full_like(value, start)
    model_dir.mkdir()
    names = sorted(tensors)
    tf.raw_ops.SaveV2(
        prefix=str(model_dir / "model.ckpt-0"), tensor_names=names,
        shape_and_slices=[""] * len(names), tensors=[tensors[name] for name in names],
    )  # fmt: skip
    (model_dir / "checkpoint").write_text(
        'model_checkpoint_path: "model.ckpt-0"\nall_model_checkpoint_paths: "model.ckpt-0"\n'
    )


@pytest.mark.parametrize("model_type", ["deep", "wide_deep"])
def test_from_the_same_weights_the_deep_models_are_the_same(model_type, data, tmp_path) -> None:
    flags = ("--model-type", model_type, "--epochs", 2, "--no-shuffle")
    theirs = run(BEFORE, data, tmp_path / "theirs", *flags)
    start_as(tmp_path / "theirs", tmp_path / "ours")
    ours = run(AFTER, data, tmp_path / "ours", *flags)
    assert_same_metrics(ours, theirs, 2e-3)


def test_shuffled_it_scores_as_well(data, tmp_path) -> None:
    flags = ("--model-type", "wide", "--epochs", 4)
    theirs = run(BEFORE, data, tmp_path / "theirs", *flags)
    ours = run(AFTER, data, tmp_path / "ours", *flags)
    assert ours["auc"] == pytest.approx(theirs["auc"], abs=2e-3)
    assert ours["average_loss"] == pytest.approx(theirs["average_loss"], abs=2e-3)
    assert ours["global_step"] == theirs["global_step"]


def test_predictions_have_tensorflows_keys_shapes_and_types(tmp_path) -> None:
    import tensorflow as tf

    from muster import estimator, feature_column

    def batches():
        return tf.data.Dataset.from_tensor_slices(
            ({"x": [0.5, 1.5, 2.5, 3.5]}, [0, 0, 1, 1])
        ).batch(4)

    predictions = {}
    for name, api, columns in (
        ("theirs", tf.estimator, tf.feature_column),
        ("ours", estimator, feature_column),
    ):
        model = api.LinearClassifier(
            [columns.numeric_column("x")], model_dir=str(tmp_path / name),
            label_vocabulary=None, config=api.RunConfig(tf_random_seed=1),
        )  # fmt: skip
        model.train(lambda: batches().repeat(), steps=20)
        single = list(model.predict(batches))
        (batch,) = model.predict(batches, yield_single_examples=False)
        predictions[name] = single, batch
    (their_rows, their_batch), (our_rows, our_batch) = predictions["theirs"], predictions["ours"]
    assert len(our_rows) == len(their_rows) == 4
    for ours, theirs in [*zip(our_rows, their_rows), (our_batch, their_batch)]:
        assert set(ours) == set(theirs)
        for key, value in theirs.items():
            assert (ours[key].shape, ours[key].dtype) == (value.shape, value.dtype), key
            if value.dtype == object:
                assert ours[key].tolist() == value.tolist(), key
            else:
                np.testing.assert_allclose(ours[key], value, rtol=1e-5, atol=1e-6, err_msg=key)


@pytest.mark.parametrize(
    "name",
    [
        "LinearClassifier", "LinearRegressor", "DNNClassifier", "DNNRegressor",
        "DNNLinearCombinedClassifier", "DNNLinearCombinedRegressor", "BaselineClassifier",
        "BaselineRegressor", "RunConfig", "TrainSpec", "EvalSpec", "FinalExporter",
        "LatestExporter", "BestExporter", "WarmStartSettings",
    ],
)  # fmt: skip
def test_arguments_are_tensorflows_in_its_order(name) -> None:
    import inspect

    import tensorflow as tf

    from muster import estimator

    def arguments(kind) -> list[str]:
        function = kind.__new__ if hasattr(kind, "_fields") else kind.__init__
        return list(inspect.signature(function).parameters)[1:]

    theirs = arguments(getattr(tf.estimator, name))
    assert arguments(getattr(estimator, name))[: len(theirs)] == theirs
