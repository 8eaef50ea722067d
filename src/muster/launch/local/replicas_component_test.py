"""muster train --workers: replicas as a job of this machine, deaths, and what TensorFlow reads."""

from __future__ import annotations

import json
import re
import signal

import pytest
import tensorflow as tf

from testbed.drills import Drill, break_training, interrupt_training
from testbed.trainings import Trainings


def test_replicas_train_and_tensorflow_reads_what_they_made(trainings: Trainings) -> None:
    output = trainings.ok("model", "--workers", 3, "--eval", "train.csv", "--exporter", "final")
    # 1,000 rows each in batches of 32.
    assert re.search(r"Trained at step 32, 3.?0*k? examples", output)
    assert re.search(r"Evaluated 3,?000 examples", output)
    loaded = tf.train.load_checkpoint(trainings.newest("model"))
    assert loaded.get_tensor("global_step") == 32
    kernel = loaded.get_tensor("dnn/hiddenlayer_0/kernel")
    assert kernel.shape == (6, 16) and kernel.std() > 0
    exported = next((trainings.jobs.folder / "model/export/final").iterdir())
    assert "serving_default" in tf.saved_model.load(str(exported)).signatures


def test_a_model_larger_than_the_memory_between_replicas(trainings: Trainings) -> None:
    spec = trainings.jobs.folder / "spec.yaml"
    spec.write_text(spec.read_text().replace("buckets: 50", "buckets: 200000"))
    for job in ("j", "jo", "job"):  # Names change what lies before the first frame.
        trainings.ok(job, "--workers", 2, "--job", job, "--epochs", 1)
        assert tf.train.load_checkpoint(trainings.newest(job)).get_tensor("global_step") == 47


def test_replicas_in_one_task(trainings: Trainings) -> None:
    output = trainings.ok("model", "--workers", 2, "--replicas-per-task", 3)
    # 1,500 rows in each task's batches of 3 * 32.
    assert re.search(r"Trained at step 16, 3.?0*k? examples", output)
    trainings.ok("again", "--workers", 2, "--replicas-per-task", 3)
    assert trainings.weights("again") == trainings.weights("model")
    trainings.ok("threads", "--workers", 2, "--threads", 3, "--batch-size", 96)
    assert trainings.weights("threads") != trainings.weights("model")  # BatchNorm over 96 rows


def test_the_same_job_gives_the_same_bytes(trainings: Trainings) -> None:
    for name in ("a", "b"):
        trainings.ok(name, "--workers", 2)
    assert trainings.weights("a") == trainings.weights("b")


@pytest.mark.parametrize("victims", [["worker-0"], ["chief-0"], ["worker-1", "chief-0"]])
def test_killed_replicas_change_no_byte(trainings: Trainings, victims: list[str]) -> None:
    flags = ("--workers", 3, "--epochs", 150, "--save-secs", 0)
    trainings.ok("unbroken", *flags)

    def kill_all(drill: Drill) -> None:
        for victim in victims:
            # It trains, or is about to: either is a moment to die in.
            drill.send(victim, signal.SIGKILL)

    last = f"{victims[-1]} failed: "
    code, said = break_training(trainings, (*flags, "--restarts", 5), kill_all, last)
    assert code == 0, said
    for victim in victims:
        assert f"{victim} failed: killed by SIGKILL" in said
    assert trainings.weights("broken") == trainings.weights("unbroken")


def test_an_interrupted_job_goes_on_where_it_stood(trainings: Trainings) -> None:
    flags = ("--workers", 2, "--epochs", 400, "--save-secs", 0)
    trainings.ok("unbroken", *flags)
    interrupt_training(trainings, flags)
    trainings.ok("broken", *flags)
    assert trainings.weights("broken") == trainings.weights("unbroken")


def test_a_bad_record_ends_the_job_in_the_words_of_who_read_it(trainings: Trainings) -> None:
    with (trainings.jobs.folder / "train.csv").open("a") as data:
        data.write("not a number,1,w1,0\n")
    result = trainings.run("model", "--workers", 2, "--restarts", 0)
    assert result.returncode == 1
    assert "train.csv:3002" in result.stdout + result.stderr
    assert not list((trainings.jobs.folder / "model").glob("*.tmp*"))


@pytest.mark.parametrize("servers", [(), ("--ps", 1, "--strategy", "ps-sync")], ids=["reduced", "served"])
def test_bad_records_are_counted_of_all_replicas(
    trainings: Trainings, servers: tuple[object, ...]
) -> None:
    with (trainings.jobs.folder / "train.csv").open("a") as data:
        data.write("no number,1,w1,0\n1,no number,w1,0\n")  # the worker's share ends the file
    said = trainings.ok("model", "--workers", 2, *servers, "--max-bad-records", 5)
    assert "left out   2 bad records" in said


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--workers", 2, "--steps", 5), "--max-steps"),
        (("--workers", 0), "--workers"),
        (("--restarts", 2), "--workers"),
        (("--replicas-per-task", 2, "--threads", 2), "--threads"),
    ],
)
def test_wrong_use_is_said_before_anything_starts(
    trainings: Trainings, flags: tuple[object, ...], words: str
) -> None:
    result = trainings.run("model", *flags)
    assert result.returncode in (1, 2)
    assert words in result.stderr
    assert not (trainings.jobs.folder / "model").exists()
    assert not trainings.jobs.home.exists()


def test_a_worker_without_a_key_says_how_to_make_one(trainings: Trainings) -> None:
    cluster = {"chief": ["127.0.0.1:1"], "worker": ["127.0.0.1:2"]}
    trainings.jobs.environment["TF_CONFIG"] = json.dumps(
        {"cluster": cluster, "task": {"type": "worker", "index": 0}}
    )
    trainings.jobs.environment.pop("MUSTER_KEY_FILE", None)
    result = trainings.run("model")
    assert result.returncode == 1
    assert "MUSTER_KEY_FILE" in result.stderr and "openssl rand" in result.stderr


def test_the_jobs_name_is_of_what_was_typed(trainings: Trainings) -> None:
    result = trainings.run("m", "--workers", 2, "--max-steps", 2)
    assert result.returncode == 0, result.stderr
    assert "muster: job train-spec-" in result.stderr
