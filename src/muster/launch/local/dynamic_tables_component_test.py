"""Tables that grow on parameter servers, which are killed; what has grown, loaded by TensorFlow."""

from __future__ import annotations

import json
import signal

import numpy as np
import pytest
import tensorflow as tf

from testbed.drills import kill_in_training
from testbed.jobs import Jobs
from testbed.trainings import Trainings, write_rows

# An id comes once an epoch: by shuffling often enough, now and then, to have a row and keep it.
SPEC = """
inputs: {id: int, x: float, z: float, word: string, y: int}
label: y
columns:
  x: {numeric: x}
  z: {numeric: z}
  user: {keys: id, admit_after: 2, expire_after: 40}
  word: {keys: word}
  user_embedding: {embedding: user, dimension: 4}
  word_embedding: {embedding: word, dimension: 4}
model:
  type: wide_deep
  linear: {columns: [word]}
  dnn: {columns: [x, z, user_embedding, word_embedding], hidden_units: [16, 8], dropout: 0.1}
train: {batch_size: 32, epochs: 1, seed: 3}
"""
USERS = "dnn/input_from_feature_columns/input_layer/user_embedding/embedding_weights"
SERVED = ("--workers", 2, "--ps", 2, "--strategy", "ps-sync")


@pytest.fixture
def trainings(jobs: Jobs) -> Trainings:
    trainings = Trainings(jobs)
    write_rows(jobs.folder / "train.csv", 3000, with_id=True)
    (jobs.folder / "spec.yaml").write_text(SPEC)
    return trainings


def tensors(trainings: Trainings, model_dir: str) -> dict[str, np.ndarray]:
    loaded = tf.train.load_checkpoint(trainings.newest(model_dir))
    names = loaded.get_variable_to_shape_map()
    return {name: loaded.get_tensor(name) for name in names if not name.startswith("muster/")}


def assert_export_predicts_scores(jobs: Jobs) -> None:
    scores = [json.loads(line) for line in (jobs.folder / "scores.jsonl").read_text().splitlines()]
    rows = [line.split(",") for line in (jobs.folder / "train.csv").read_text().splitlines()[1:]]
    serve = tf.saved_model.load(str(jobs.folder / "saved")).signatures["serving_default"]
    outputs = serve(
        id=tf.constant([int(row[0]) for row in rows], tf.int64),
        x=tf.constant([float(row[1]) for row in rows]),
        z=tf.constant([float(row[2]) for row in rows]),
        word=tf.constant([row[3] for row in rows]),
    )
    expected = np.array([score["logistic"] for score in scores])
    np.testing.assert_allclose(outputs["logistic"].numpy(), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("victim", ["ps-0", "ps-1", "worker-0"])
def test_killed_tasks_change_no_byte(trainings: Trainings, victim: str) -> None:
    flags = (*SERVED, "--epochs", 200, "--save-steps", 500)
    trainings.ok("unbroken", *flags)
    said = kill_in_training(trainings, flags, victim, step=500, how=signal.SIGKILL)
    assert f"{victim} failed: killed by SIGKILL" in said
    unbroken, broken = tensors(trainings, "unbroken"), tensors(trainings, "broken")
    assert 0 < len(unbroken[f"{USERS}/keys"]) < 3000
    assert len(unbroken[f"{USERS}/waiting_keys"]) > 0
    assert unbroken.keys() == broken.keys()
    for name, value in unbroken.items():
        assert np.array_equal(broken[name], value), name


def test_other_servers_and_one_process_go_on_and_tensorflow_loads_what_grew(
    trainings: Trainings,
) -> None:
    trainings.ok("model", *SERVED, "--max-steps", 60)
    trainings.ok("model", "--workers", 2, "--ps", 3, "--strategy", "ps-sync", "--max-steps", 120)
    trainings.ok("model", "--fresh-data", "--max-steps", 180)
    grown = tensors(trainings, "model")
    users = grown[f"{USERS}/keys"]
    assert grown["global_step"] == 180 and 0 < len(users) < 3000
    assert grown[USERS].shape == (len(users), 4)
    assert len(grown["linear/linear_model/word/weights/keys"]) == 47

    jobs = trainings.jobs
    jobs.ok("export", "--model-dir", "model", "--out", "saved")
    jobs.ok("predict", "--model-dir", "model", "--data", "train.csv", "--out", "scores.jsonl")
    assert_export_predicts_scores(jobs)


def test_a_table_without_keys_is_exported(trainings: Trainings) -> None:
    jobs = trainings.jobs
    (jobs.folder / "spec.yaml").write_text(SPEC.replace("admit_after: 2", "admit_after: 100000"))
    trainings.ok("model", *SERVED, "--max-steps", 20)
    assert len(tensors(trainings, "model")[f"{USERS}/keys"]) == 0
    jobs.ok("export", "--model-dir", "model", "--out", "saved")
    jobs.ok("predict", "--model-dir", "model", "--data", "train.csv", "--out", "scores.jsonl")
    assert_export_predicts_scores(jobs)


def test_all_reduce_is_refused_before_anything_starts(trainings: Trainings) -> None:
    result = trainings.run("model", "--workers", 2)
    assert result.returncode == 1
    assert "columns of 'keys'" in result.stderr and "--ps" in result.stderr
    assert not (trainings.jobs.folder / "model").exists()
