"""Warm start from TensorFlow's checkpoints: what tf.train.warm_start makes of them, to the bit."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

SPEC = """
inputs: {{id: int, x: float, color: string, y: int}}
label: y
columns:
  x: {{numeric: x}}
  color: {{vocabulary: color, words: [{words}], oov_buckets: 1}}
  e: {{embedding: color, dimension: 3}}
model:
  type: wide_deep
  linear: {{columns: [color]}}
  dnn: {{columns: [x, e], hidden_units: [4]}}
train: {{batch_size: 2, epochs: 1, seed: 3}}
"""
ROWS = "id,x,color,y\n1,0.5,red,1\n2,-1,green,0\n"
OLD, NEW = ["red", "green", "blue", "white"], ["white", "black", "red"]
EMBEDDING = "dnn/input_from_feature_columns/input_layer/e/embedding_weights"
COLOR = "linear/linear_model/color/weights"


def shapes(rows: int) -> dict[str, tuple[int, ...]]:
    return {
        EMBEDDING: (rows, 3),
        COLOR: (rows, 1),
        "linear/linear_model/bias_weights": (1,),
        "dnn/hiddenlayer_0/kernel": (4, 4),
        "dnn/hiddenlayer_0/bias": (4,),
        "dnn/logits/kernel": (4, 1),
        "dnn/logits/bias": (1,),
    }


@pytest.fixture(scope="module")
def old_checkpoint(tmp_path_factory) -> pathlib.Path:
    """Random values under our names, saved by TensorFlow."""
    import tensorflow.compat.v1 as tf

    folder = tmp_path_factory.mktemp("old")
    rng = np.random.default_rng(5)
    with tf.Graph().as_default(), tf.Session() as session:
        for name, shape in shapes(len(OLD) + 1).items():
            value = rng.normal(size=shape).astype(np.float32)
            tf.get_variable(name, initializer=value, use_resource=True)
        session.run(tf.global_variables_initializer())
        return pathlib.Path(tf.train.Saver().save(session, str(folder / "model.ckpt"), 77))


def warm_started_by_tensorflow(checkpoint, folder, patterns, vocabularies):
    import tensorflow.compat.v1 as tf

    (folder / "old.txt").write_text("\n".join(OLD) + "\n")
    (folder / "new.txt").write_text("\n".join(NEW) + "\n")
    info = tf.train.VocabInfo(
        new_vocab=str(folder / "new.txt"), new_vocab_size=len(NEW), num_oov_buckets=1,
        old_vocab=str(folder / "old.txt"), old_vocab_size=-1) if vocabularies else None  # fmt: skip
    rows = (len(NEW) if vocabularies else len(OLD)) + 1
    with tf.Graph().as_default(), tf.Session() as session:
        variables = {
            name: tf.get_variable(name, shape, initializer=tf.constant_initializer(9.0))
            for name, shape in shapes(rows).items()
        }
        tf.train.warm_start(str(checkpoint), patterns,
                            {name: info for name in vocabularies})  # fmt: skip
        session.run(tf.global_variables_initializer())
        return session.run(variables)


def begin(muster, folder: pathlib.Path, words: list[str], warm_start: str) -> dict[str, np.ndarray]:
    """The weights of step 0: a training saves a checkpoint before its first step."""
    import tensorflow as tf

    (folder / "spec.yaml").write_text(SPEC.format(words=", ".join(words)))
    (folder / "rows.csv").write_text(ROWS)
    muster.run("train", folder / "spec.yaml", "--train", folder / "rows.csv", "--model-dir",
               folder / "model", "--warm-start", warm_start, "--quiet")  # fmt: skip
    reader = tf.train.load_checkpoint(str(folder / "model" / "model.ckpt-0"))
    return {name: reader.get_tensor(name) for name in shapes(0)}


def test_all_variables(muster, old_checkpoint, tmp_path):
    expected = warm_started_by_tensorflow(old_checkpoint, tmp_path, ".*", [])
    ours = begin(muster, tmp_path, OLD, str(old_checkpoint))
    for name, value in expected.items():
        np.testing.assert_array_equal(ours[name], value, err_msg=name)


def test_by_pattern(muster, old_checkpoint, tmp_path):
    pattern = "dnn/(hidden|logits)"
    expected = warm_started_by_tensorflow(old_checkpoint, tmp_path, pattern, [])
    ours = begin(muster, tmp_path, OLD, f"{old_checkpoint.parent}:{pattern}")
    for name, value in expected.items():
        if (value == 9.0).all():
            assert name in (EMBEDDING, COLOR, "linear/linear_model/bias_weights")
        else:
            np.testing.assert_array_equal(ours[name], value, err_msg=name)
    assert (ours[COLOR] == 0).all(), "linear weights begin at 0"


def test_vocabularies(muster, old_checkpoint, tmp_path):
    """From a model folder of ours that holds TensorFlow's checkpoint: its words say the old rows."""
    expected = warm_started_by_tensorflow(
        old_checkpoint, tmp_path, ".*", [EMBEDDING, COLOR]
    )
    old_model = tmp_path / "old_model"
    old_model.mkdir()
    for file in old_checkpoint.parent.iterdir():
        (old_model / file.name).write_bytes(file.read_bytes())
    state = (old_model / "checkpoint").read_text().replace(f"{old_checkpoint.parent}/", "")
    (old_model / "checkpoint").write_text(state)
    (old_model / "model.yaml").write_text(SPEC.format(words=", ".join(OLD)))
    ours = begin(muster, tmp_path, NEW, str(old_model))
    for name, value in expected.items():
        if name not in (EMBEDDING, COLOR):
            np.testing.assert_array_equal(ours[name], value, err_msg=name)
    known = [i for i, word in enumerate(NEW) if word in OLD]
    for name in (EMBEDDING, COLOR):
        np.testing.assert_array_equal(ours[name][known], expected[name][known], err_msg=name)
        new_rows = [i for i in range(len(NEW) + 1) if i not in known]
        # TensorFlow's are zero; ours begin as in a fresh model.
        assert (expected[name][new_rows] == 0).all()
    assert (ours[EMBEDDING][1] != 0).any()


def test_errors_name_what_is_wrong(muster, old_checkpoint, tmp_path):
    (tmp_path / "spec.yaml").write_text(SPEC.format(words="red, green"))
    (tmp_path / "rows.csv").write_text(ROWS)
    command = ("train", tmp_path / "spec.yaml", "--train", tmp_path / "rows.csv", "--model-dir",
               tmp_path / "model", "--warm-start")  # fmt: skip
    shape = muster.fail(*command, old_checkpoint)
    assert f"'{EMBEDDING}'" in shape and "is [5, 3], the model has [3, 3]" in shape
    assert "is neither a checkpoint" in muster.fail(*command, tmp_path / "nothing")
    assert "is not a regular expression" in muster.fail(*command, f"{old_checkpoint}:((")
    assert not list((tmp_path / "model").glob("*.index"))
