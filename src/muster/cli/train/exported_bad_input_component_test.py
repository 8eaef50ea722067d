"""Exported Keras models that cannot be trained: one clear error each, and nothing left running."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import shutil
from typing import Any, Callable

import numpy as np
import pytest

from testbed import keras_checks
from testbed.muster import Muster


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return keras_checks.make_trainings(tmp_path_factory.mktemp("keras"), "adagrad", "words", "pictures")


@pytest.fixture
def muster(monkeypatch: pytest.MonkeyPatch) -> Muster:
    monkeypatch.setenv("MUSTER_TENSORFLOW", os.environ["MUSTER_PYTHON_TENSORFLOW"])
    return Muster()


def write(path: pathlib.Path, rows: list[dict[str, Any]]) -> pathlib.Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def started_with(mark: str) -> list[str]:
    """The processes whose environment has it: other tests run beside this one."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if path.parent.name != str(os.getpid()) and mark.encode() in path.read_bytes():
                found.append(path.parent.name)
    return found


class Training:
    """What `muster train` says of a model and data that it refuses."""

    def __init__(self, muster: Muster, folder: pathlib.Path, mark: str) -> None:
        self.muster, self.folder, self.mark = muster, folder, mark

    def error(self, export: pathlib.Path, data: object, *flags: object) -> str:
        said = self.muster.fail("train", export, "--train", data, "--model-dir",
                                self.folder / "model", "--quiet", *flags)  # fmt: skip
        assert not started_with(self.mark), "a process is left"
        assert said.count("\n") == 1, said
        assert not list(self.folder.rglob("*.tmp*")), "a half-written file is left"
        return said


@pytest.fixture
def training(
    muster: Muster, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> Training:
    mark = f"MUSTER_TEST_MARK={tmp_path}"
    monkeypatch.setenv(*mark.split("=", 1))
    return Training(muster, tmp_path, mark)


@pytest.fixture
def copy(models: pathlib.Path, tmp_path: pathlib.Path) -> pathlib.Path:
    return pathlib.Path(shutil.copytree(models / "adagrad/export", tmp_path / "copy"))


def cut(path: pathlib.Path, size: int) -> None:
    with path.open("r+b") as file:
        file.truncate(size)


def replace(path: pathlib.Path, old: bytes, new: bytes) -> None:
    content = path.read_bytes()
    assert old in content
    path.write_bytes(content.replace(old, new))


BROKEN: dict[str, tuple[Callable[[pathlib.Path], None], str]] = {
    "newer": (
        lambda e: replace(e / "model.json", b'"version": 1', b'"version": 9'),
        "it has version 9, but this muster knows 1",
    ),
    "cut_manifest": (lambda e: cut(e / "model.json", 500), "model.json"),
    "cut_graph": (
        lambda e: cut(e / "step/saved_model.pb", 5000),
        "step/saved_model.pb is cut or changed: export the model again",
    ),
    "cut_weights": (
        lambda e: cut(e / "weights.data-00000-of-00001", 100),
        "reaches beyond",
    ),
    "no_weights": (lambda e: (e / "weights.index").unlink(), "weights.index"),
    "unknown_operation": (
        lambda e: replace(e / "step/saved_model.pb", b"\x12\x06MatMul", b"\x12\x06MatMuX"),
        r"Op type not registered 'MatMuX'.*The model was exported with TensorFlow 2\.\d+\.\d+: "
        "compute it with that version or a newer one",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_export(
    name: str, copy: pathlib.Path, models: pathlib.Path, training: Training
) -> None:
    harm, sign = BROKEN[name]
    harm(copy)
    assert re.search(sign, training.error(copy, models / "adagrad/data.tfrecord"))


def test_a_saved_model_without_a_step(models: pathlib.Path, training: Training) -> None:
    said = training.error(models / "adagrad/export/before_training", models / "adagrad/data.tfrecord")
    assert "has no function for a training step" in said
    assert "muster.keras.export(model, optimizer, loss, path)" in said


GOOD = {"ids": [1, 2, 3, 4], "label": 1}
ROWS = {
    "shape": ({"ids": [1, 2, 3], "label": 1}, "field 'ids' has 3 values, the model takes int64 [4]"),
    "missing": ({"label": 1}, "field 'ids' is missing or empty"),
    "type": ({"ids": [1, 2, 3, "x"], "label": 1}, "ids"),
    "label": ({"ids": [1, 2, 3, 4], "label": "yes"}, "label"),
    "large_id": ({"ids": [1, 2, 3, 50], "label": 1}, "id 50 is outside table"),
    "negative_id": ({"ids": [-1, 2, 3, 4], "label": 1}, "id -1 is outside table"),
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_that_do_not_fit(
    name: str, models: pathlib.Path, training: Training, tmp_path: pathlib.Path
) -> None:
    row, sign = ROWS[name]
    data = write(tmp_path / "rows.jsonl", [GOOD, row, GOOD])
    assert sign in training.error(models / "adagrad/export", data)


def test_rows_that_do_not_fit_may_be_left_out(
    models: pathlib.Path, muster: Muster, tmp_path: pathlib.Path
) -> None:
    data = write(tmp_path / "rows.jsonl", [GOOD, ROWS["shape"][0], GOOD])
    muster.run("train", models / "adagrad/export", "--train", data, "--model-dir",
               tmp_path / "model", "--quiet", "--max-bad-records", 1)  # fmt: skip


def write_pictures(path: pathlib.Path, good: pathlib.Path, bad: dict[int, bytes]) -> pathlib.Path:
    """The records of `good`, some with other bytes as their image."""
    import tensorflow as tf

    with tf.io.TFRecordWriter(str(path)) as writer:
        for row, record in enumerate(tf.data.TFRecordDataset(str(good)).as_numpy_iterator()):
            example = tf.train.Example.FromString(record)
            if row in bad:
                example.features.feature["file"].bytes_list.value[0] = bad[row]
            writer.write(example.SerializeToString())
    return path


def test_pictures_that_are_broken_are_left_out_as_other_rows_are(
    models: pathlib.Path, training: Training, muster: Muster, tmp_path: pathlib.Path
) -> None:
    """Of each way to break one, Keras's own decoder refuses what is left out here."""
    import tensorflow as tf

    model = models / "pictures"
    image = tf.zeros([6, 5, 3], tf.uint8)
    png, jpeg = tf.io.encode_png(image).numpy(), tf.io.encode_jpeg(image).numpy()
    bad = {3: png[:-1], 50: png[:40] + b"?" + png[41:], 51: b"no image", 700: jpeg[:-2], 999: b""}
    for content in bad.values():
        with pytest.raises(tf.errors.InvalidArgumentError):
            tf.io.decode_png(content)
    turned = tf.io.encode_png(tf.zeros([5, 6, 3], tf.uint8)).numpy()
    data = write_pictures(tmp_path / "bad", model / "data.tfrecord", {**bad, 60: turned, 61: jpeg})
    said = training.error(model / "export", data, "--max-bad-records", len(bad))
    assert f"{data}: record at byte" in said and "field 'file' (image of the model)" in said

    flags = ("train", model / "export", "--train", data, "--batch-size", 40, "--max-bad-records", 6)
    trained = muster.event("trained", *flags, "--model-dir", tmp_path / "trained")
    rows = len(np.load(model / "predicted.npy"))
    assert (trained["examples"], trained["bad_records"]) == (rows - 6, 6)


def test_a_loss_that_is_no_number(
    models: pathlib.Path, training: Training, tmp_path: pathlib.Path
) -> None:
    import tensorflow as tf

    data = tmp_path / "rows.tfrecord"
    with tf.io.TFRecordWriter(str(data)) as writer:
        ids = tf.train.Feature(int64_list=tf.train.Int64List(value=[1]))
        size = tf.train.Feature(float_list=tf.train.FloatList(value=[float("nan")]))
        features = tf.train.Features(feature={"words": ids, "size": size, "label": ids})
        writer.write(tf.train.Example(features=features).SerializeToString())
    assert "loss is NaN at step 1" in training.error(models / "words/export", data)


def test_tensorflow_is_looked_for_before_anything_is_made(
    models: pathlib.Path, training: Training, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, data = models / "adagrad/export", models / "adagrad/data.tfrecord"
    said = training.error(model, data, "--tensorflow", training.folder, "--workers", 2)
    assert "no libtensorflow_cc.so.2 there" in said
    monkeypatch.delenv("MUSTER_TENSORFLOW")
    monkeypatch.setenv("PATH", "/nothing")
    said = training.error(model, data)
    assert "pip install tensorflow-cpu" in said
    assert not (training.folder / "model").exists()


def test_what_is_for_model_files_is_refused(models: pathlib.Path, training: Training) -> None:
    model, data = models / "adagrad/export", models / "adagrad/data.tfrecord"
    assert "mixed_bfloat16" in training.error(model, data, "--precision", "bf16")
    assert "--workers" in training.error(model, data, "--replicas-per-task", 2)


def test_a_folder_of_another_model(
    models: pathlib.Path, training: Training, muster: Muster
) -> None:
    data = models / "adagrad/data.tfrecord"
    muster.run("train", models / "adagrad/export", "--train", data, "--model-dir",
               training.folder / "model", "--quiet", "--max-steps", 1)  # fmt: skip
    said = training.error(models / "words/export", models / "words/data.tfrecord")
    assert "holds a model of another spec" in said
