"""Checkpoints in both directions: TensorFlow reads what muster saves, and the other way."""

from __future__ import annotations

import pathlib
import random
import subprocess
import time

import numpy as np
import pytest

SPEC = """
inputs: {age: {type: int, default: -1}, pay: float, job: string, y: int}
label: y
columns:
  age: {bucketized: age, boundaries: [30, 50]}
  pay: {numeric: pay}
  job: {hash: job, buckets: 10}
  e: {embedding: job, dimension: 4}
model:
  type: wide_deep
  linear: {columns: [age, job]}
  dnn: {columns: [pay, e], hidden_units: [8], optimizer: {adam: {learning_rate: 0.01}}}
train: {batch_size: 4}
"""
ROWS = "age,pay,job,y\n" + "".join(f"{20 + i},{i}.5,job{i % 3},{i % 2}\n" for i in range(40))
STEPS = 30
KEPT = ["model.ckpt-10", "model.ckpt-20", "model.ckpt-30"]


@pytest.fixture(scope="module")
def model_dir(muster, tmp_path_factory) -> pathlib.Path:
    """A model trained to step 30 and saved at 10, 20 and 30."""
    folder = tmp_path_factory.mktemp("checkpoint")
    (folder / "spec.yaml").write_text(SPEC)
    (folder / "rows.csv").write_text(ROWS)
    muster.run("train", folder / "spec.yaml", "--train", folder / "rows.csv",
               "--model-dir", folder / "model", "--max-steps", STEPS, "--save-steps", 10,
               "--keep-checkpoints", len(KEPT), "--summary-steps", 10, "--quiet")
    return folder / "model"


def test_tensorflow_finds_the_newest(model_dir):
    import tensorflow as tf

    assert tf.train.latest_checkpoint(str(model_dir)) == str(model_dir / KEPT[-1])
    state = tf.train.get_checkpoint_state(str(model_dir))
    found = [pathlib.Path(p).name for p in state.all_model_checkpoint_paths]
    assert found == KEPT == sorted(p.stem for p in model_dir.glob("*.index"))


def test_the_state_file_carries_times_as_tensorflows_manager_writes_them(model_dir, tmp_path):
    import shutil

    import tensorflow as tf

    state = tf.train.get_checkpoint_state(str(model_dir))
    times = list(state.all_model_checkpoint_timestamps)
    assert len(times) == len(KEPT) and times == sorted(times)
    assert time.time() - 3600 < state.last_preserved_timestamp <= times[0] <= times[-1] < time.time()
    # A CheckpointManager takes the folder over, and ours what it leaves.
    copy = tmp_path / "model"
    shutil.copytree(model_dir, copy)
    manager = tf.train.CheckpointManager(
        tf.train.Checkpoint(v=tf.Variable(1.0)), str(copy), max_to_keep=3, checkpoint_name="model.ckpt"
    )
    assert [pathlib.Path(p).name for p in manager.checkpoints] == KEPT
    manager.save(checkpoint_number=40)
    assert [pathlib.Path(p).name for p in manager.checkpoints] == [*KEPT[1:], "model.ckpt-40"]


def schedules() -> list[tuple[int, float, list[float], list[int]]]:
    rows = []
    for line in (pathlib.Path(__file__).parent / "testdata/kept.txt").read_text().splitlines():
        if line.startswith("#"):
            continue
        how, hours, kept = (part.split() for part in line.split("|"))
        rows.append((int(how[0]), float(how[1]), list(map(float, hours)), list(map(int, kept))))
    return rows


@pytest.mark.parametrize("keep_max,every_n_hours,hours,kept", schedules())
def test_tensorflows_saver_keeps_what_our_table_says(
    tmp_path, monkeypatch, keep_max, every_n_hours, hours, kept
):
    """saver_test.cc holds ours against the same table."""
    import tensorflow as tf

    start = now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        variable = tf.compat.v1.get_variable("v", initializer=1.0)
        session.run(variable.initializer)
        saver = tf.compat.v1.train.Saver(
            max_to_keep=keep_max, keep_checkpoint_every_n_hours=every_n_hours
        )
        for step, hour in enumerate(hours):
            now = start + hour * 3600
            saver.save(session, str(tmp_path / "model.ckpt"), global_step=step,
                       write_meta_graph=False)  # fmt: skip
    found = sorted(int(p.stem.split("-")[1]) for p in tmp_path.glob("*.index"))
    assert found == kept


def test_tensorflow_reads_every_tensor(model_dir, muster):
    import tensorflow as tf

    reader = tf.train.load_checkpoint(str(model_dir))
    shapes = reader.get_variable_to_shape_map()
    types = reader.get_variable_to_dtype_map()
    *inspected, verified = muster.json("inspect", model_dir, "--verify")
    assert verified == {"event": "verified", "sound": len(shapes), "skipped": 0}
    inspected = {o["name"]: o for o in inspected}
    assert set(inspected) == set(shapes)
    for name, shape in shapes.items():
        value = reader.get_tensor(name)  # TensorFlow checks the CRC
        assert inspected[name]["shape"] == list(shape), name
        assert inspected[name]["type"] == types[name].name, name
        if types[name] != tf.string:
            assert inspected[name]["bytes"] == np.prod(shape) * types[name].size, name
        if types[name] == tf.float32:
            assert np.isfinite(value).all(), name
    assert reader.get_tensor("global_step") == STEPS


def test_every_trained_variable_has_its_slots(model_dir):
    import tensorflow as tf

    shapes = tf.train.load_checkpoint(str(model_dir)).get_variable_to_shape_map()
    slots = {"linear": ("Ftrl", ("accumulator", "linear")), "dnn": ("Adam", ("m", "v"))}
    variables = [name for name in shapes if name.split("/")[0] in slots]
    assert len(variables) > 6
    for name in variables:
        optimizer, names = slots[name.split("/")[0]]
        for slot in names:
            assert shapes[f"training/{optimizer}/{name}/{slot}"] == shapes[name]


def test_tensorflows_saver_reads_back_what_muster_saved(model_dir):
    """Through the Saver of tf.compat.v1, as an Estimator restores."""
    import tensorflow as tf

    name = "dnn/hiddenlayer_0/kernel"
    reader = tf.train.load_checkpoint(str(model_dir))
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        variable = tf.compat.v1.get_variable(
            name, reader.get_variable_to_shape_map()[name], use_resource=True
        )
        saver = tf.compat.v1.train.Saver([variable])
        saver.restore(session, tf.train.latest_checkpoint(str(model_dir)))
        np.testing.assert_array_equal(session.run(variable), reader.get_tensor(name))


def test_muster_lists_what_tensorflow_saved(muster, tmp_path):
    import tensorflow as tf

    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        get = tf.compat.v1.get_variable
        expected = {}
        for i in range(300):
            get(f"many/{'x' * (i % 90)}_{i}", initializer=tf.constant(float(i), shape=[i % 3, 2]))
            expected[f"many/{'x' * (i % 90)}_{i}"] = ("float32", [i % 3, 2])
        get("words", initializer=tf.constant([["a", ""], ["ccc", "\u00e4"]]))
        get("step", initializer=tf.constant(7, tf.int64))
        get("wide", initializer=tf.constant([1.5], tf.float64))
        get("parts", [10, 4], partitioner=tf.compat.v1.fixed_size_partitioner(2))
        expected |= {"words": ("string", [2, 2]), "step": ("int64", []),
                     "wide": ("float64", [1]), "parts": ("float32", [10, 4])}
        session.run(tf.compat.v1.global_variables_initializer())
        saver = tf.compat.v1.train.Saver(sharded=True)
        prefix = saver.save(session, str(tmp_path / "model.ckpt"), global_step=3)
    listed = {o["name"]: (o["type"], o["shape"]) for o in muster.json("inspect", prefix)}
    assert listed == expected
    assert {o["name"] for o in muster.json("inspect", tmp_path)} == set(expected)


def test_muster_reads_the_weights_that_tensorflow_saved(model_dir, muster, tmp_path):
    """A whole checkpoint rewritten by TensorFlow, one weight changed, changes the evaluation."""
    import shutil

    import tensorflow as tf

    copy = tmp_path / "model"
    shutil.copytree(model_dir, copy)
    rows = ("--data", model_dir.parent / "rows.csv", "--model-dir", copy)
    before = muster.json("evaluate", *rows)[-1]
    prefix = tf.train.latest_checkpoint(str(copy))
    reader = tf.train.load_checkpoint(prefix)
    tensors = {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}

    def rewrite(partitioned: bool = False) -> dict:
        names, slices, values = [], [], []
        for name in sorted(tensors, reverse=True):
            value = tensors[name]
            count = value.shape[0] if partitioned and isinstance(value, np.ndarray) and value.ndim else 1
            for i in range(count):  # each row is a slice of its own
                names.append(name)
                shape = " ".join(map(str, value.shape)) if count > 1 else ""
                slices.append(shape + f" {i},1" + ":-" * (value.ndim - 1) if count > 1 else "")
                values.append(tf.constant(value[i : i + 1] if count > 1 else value))
        tf.raw_ops.SaveV2(prefix=prefix, tensor_names=names, shape_and_slices=slices, tensors=values)
        return muster.json("evaluate", *rows)[-1]

    assert rewrite()["prediction/mean"] == before["prediction/mean"]
    assert rewrite(partitioned=True)["prediction/mean"] == before["prediction/mean"]
    tensors["linear/linear_model/bias_weights"] += np.float32(100)
    assert rewrite()["prediction/mean"] > 0.999999


def test_a_flipped_bit_is_told_and_the_older_checkpoint_taken(model_dir, muster, tmp_path):
    import shutil

    copy = tmp_path / "model"
    shutil.copytree(model_dir, copy)
    data = copy / f"{KEPT[-1]}.data-00000-of-00001"
    broken = bytearray(data.read_bytes())
    broken[2] ^= 1  # of the first weight; evaluation does not look at slots
    data.write_bytes(broken)
    message = muster.fail("inspect", copy, "--verify")
    assert "1 of" in message and data.name in message and "checksum" in message
    rows = ("--data", model_dir.parent / "rows.csv", "--model-dir", copy)
    result = muster.call("evaluate", *rows, "--json")
    assert result.returncode == 0, result.stderr
    assert f'"global_step":{STEPS}' not in result.stdout  # of the weights one is broken
    trained = muster.call("train", model_dir.parent / "spec.yaml", "--train",
                          model_dir.parent / "rows.csv", "--model-dir", copy, "--max-steps", STEPS)
    assert trained.returncode == 0, trained.stderr
    assert f"passed over for {copy}/{KEPT[-2]}" in trained.stderr and data.name in trained.stderr
    assert "resumed at 20" in trained.stdout
    muster.run("inspect", copy, "--verify")  # trained again, it is whole
    index = copy / f"{KEPT[-1]}.index"
    index.rename(copy / "elsewhere")
    assert f"{index} is missing" in muster.fail("inspect", copy, "--verify")
    assert f"{index} is missing" in muster.fail("predict", *rows, "--out", copy.parent / "rows.out.csv")
    (copy / "elsewhere").rename(index)
    muster.run("inspect", copy, "--verify")


def test_a_training_killed_at_any_moment_leaves_a_whole_checkpoint(muster, tmp_path):
    import tensorflow as tf

    (tmp_path / "spec.yaml").write_text(SPEC)
    (tmp_path / "rows.csv").write_text(ROWS)
    model = tmp_path / "model"
    command = [muster.binary, "train", "spec.yaml", "--train", "rows.csv", "--model-dir", "model",
               "--max-steps", "1000000", "--save-steps", "1", "--keep-checkpoints", "2", "--quiet"]
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    moments = random.Random(seed)
    last_step = 0
    for _ in range(12):
        process = subprocess.Popen(command, cwd=tmp_path)
        while not list(model.glob("*.index")):
            assert process.poll() is None
            time.sleep(0.01)
        time.sleep(moments.uniform(0, 0.2))
        process.kill()
        process.wait()
        reader = tf.train.load_checkpoint(str(model))
        for name in reader.get_variable_to_shape_map():
            reader.get_tensor(name)
        steps = [o for o in muster.json("inspect", model) if o["name"] == "global_step"]
        assert len(steps) == 1
        assert reader.get_tensor("global_step") >= last_step
        last_step = reader.get_tensor("global_step")
    assert last_step > 12
