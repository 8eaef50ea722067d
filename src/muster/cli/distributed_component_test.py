"""muster train --workers: replicas as a job of this machine, deaths, and what TensorFlow reads."""

from __future__ import annotations

import json
import os
import pathlib
import re
import signal
import subprocess
import time

import pytest
import tensorflow as tf

SPEC = """
inputs: {x: float, z: float, word: string, y: int}
label: y
columns:
  x: {numeric: x}
  z: {numeric: z}
  hashed: {hash: word, buckets: 50}
  e: {embedding: hashed, dimension: 4}
model:
  type: wide_deep
  linear: {columns: [hashed]}
  dnn: {columns: [x, z, e], hidden_units: [16, 8], dropout: 0.1, batch_norm: true}
train: {batch_size: 32, epochs: 1, seed: 3}
"""


def write_data(place: pathlib.Path, rows: int) -> None:
    lines = ["x,z,word,y"]
    for i in range(rows):
        x, z, word = (i * 37 % 101) / 50 - 1, (i * 53 % 89) / 44 - 1, i * 31 % 47
        lines.append(f"{x:.3f},{z:.3f},w{word},{int(x + z * 0.5 + (word % 3) * 0.4 > 0.3)}")
    (place / "train.csv").write_text("\n".join(lines) + "\n")
    (place / "spec.yaml").write_text(SPEC)


@pytest.fixture
def place(tmp_path: pathlib.Path) -> pathlib.Path:
    write_data(tmp_path, 3000)
    return tmp_path


class Trainings:
    """Trainings of one folder, in the foreground or watched while they run."""

    def __init__(self, binary: str, place: pathlib.Path) -> None:
        self.binary, self.place = binary, place
        self.env = os.environ | {"MUSTER_HOME": str(place / "home")}

    def command(self, model_dir: str, *flags: object) -> list[str]:
        return [
            str(word)
            for word in (
                *(self.binary, "train", "spec.yaml", "--train", "train.csv"),
                *("--model-dir", model_dir, *flags),
            )
        ]

    def run(self, model_dir: str, *flags: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(model_dir, *flags),
            **dict(cwd=self.place, env=self.env, text=True, capture_output=True, timeout=120),
        )

    def start(self, model_dir: str, *flags: object) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command(model_dir, *flags),
            **dict(cwd=self.place, env=self.env, text=True),
            **dict(stdout=subprocess.PIPE, stderr=subprocess.STDOUT),
        )

    def pid(self, job: str, task: str) -> int:
        """Of a task's process, once the job runs it."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            status = subprocess.run(
                [self.binary, "status", job, "--json"],
                **dict(cwd=self.place, env=self.env, text=True, capture_output=True),
            )
            if status.returncode == 0:
                for each in json.loads(status.stdout)["tasks"]:
                    if each["task"] == task and each.get("pid", 0) > 0:
                        return each["pid"]
            time.sleep(0.02)
        raise AssertionError(f"{task} of {job} does not run")

    def newest(self, model_dir: str) -> pathlib.Path:
        text = (self.place / model_dir / "checkpoint").read_text()
        name = re.match(r'model_checkpoint_path: "(.*)"', text)[1]
        return self.place / model_dir / name

    def weights(self, model_dir: str) -> bytes:
        return self.newest(model_dir).with_suffix(
            self.newest(model_dir).suffix + ".data-00000-of-00001"
        ).read_bytes()


@pytest.fixture
def trainings(muster, place: pathlib.Path) -> Trainings:
    return Trainings(muster.binary, place)


def test_replicas_train_and_tensorflow_reads_what_they_made(trainings: Trainings) -> None:
    result = trainings.run("model", "--workers", 3, "--eval", "train.csv", "--exporter", "final")
    assert result.returncode == 0, result.stdout + result.stderr
    # 1,000 rows each in batches of 32.
    assert "Trained at step 32, 3k examples" in result.stdout
    assert "Evaluated 3000 examples" in result.stdout
    loaded = tf.train.load_checkpoint(str(trainings.newest("model")))
    assert loaded.get_tensor("global_step") == 32
    kernel = loaded.get_tensor("dnn/hiddenlayer_0/kernel")
    assert kernel.shape == (6, 16) and kernel.std() > 0
    exported = next((trainings.place / "model/export/final").iterdir())
    assert "serving_default" in tf.saved_model.load(str(exported)).signatures


def test_the_same_job_gives_the_same_bytes(trainings: Trainings) -> None:
    for name in ("a", "b"):
        assert trainings.run(name, "--workers", 2).returncode == 0
    assert trainings.weights("a") == trainings.weights("b")


@pytest.mark.parametrize("victims", [["worker-0"], ["chief-0"], ["worker-1", "chief-0"]])
def test_killed_replicas_change_no_byte(trainings: Trainings, victims: list[str]) -> None:
    flags = ("--workers", 3, "--epochs", 150, "--save-secs", 0)
    assert trainings.run("unbroken", *flags).returncode == 0
    job = trainings.start("broken", *flags, "--job", "broken", "--restarts", 5)
    for victim in victims:
        pid = trainings.pid("broken", victim)
        # It trains, or is about to: either is a moment to die in.
        os.kill(pid, signal.SIGKILL)
    output, _ = job.communicate(timeout=120)
    assert job.returncode == 0, output
    for victim in victims:
        assert f"{victim} failed: killed by SIGKILL" in output
    assert trainings.weights("broken") == trainings.weights("unbroken")


def test_an_interrupted_job_goes_on_where_it_stood(trainings: Trainings) -> None:
    flags = ("--workers", 2, "--epochs", 400, "--save-secs", 0)
    assert trainings.run("unbroken", *flags).returncode == 0
    job = trainings.start("broken", *flags, "--job", "broken")
    trainings.pid("broken", "worker-0")
    job.send_signal(signal.SIGINT)
    output, _ = job.communicate(timeout=120)
    assert job.returncode == 1, output
    assert trainings.run("broken", *flags).returncode == 0
    assert trainings.weights("broken") == trainings.weights("unbroken")


def test_a_bad_record_ends_the_job_in_the_words_of_who_read_it(trainings: Trainings) -> None:
    with (trainings.place / "train.csv").open("a") as data:
        data.write("not a number,1,w1,0\n")
    result = trainings.run("model", "--workers", 2, "--restarts", 0)
    assert result.returncode == 1
    assert "train.csv:3002" in result.stdout + result.stderr
    assert not list((trainings.place / "model").glob("*.tmp*"))


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--workers", 2, "--steps", 5), "--max-steps"),
        (("--workers", 0), "--workers"),
        (("--restarts", 2), "--workers"),
    ],
)
def test_wrong_use_is_said_before_anything_starts(
    trainings: Trainings, flags: tuple[object, ...], words: str
) -> None:
    result = trainings.run("model", *flags)
    assert result.returncode in (1, 2)
    assert words in result.stderr
    assert not (trainings.place / "model").exists()
    assert not (trainings.place / "home").exists()


def test_a_worker_without_a_key_says_how_to_make_one(trainings: Trainings) -> None:
    cluster = {"chief": ["127.0.0.1:1"], "worker": ["127.0.0.1:2"]}
    trainings.env["TF_CONFIG"] = json.dumps(
        {"cluster": cluster, "task": {"type": "worker", "index": 0}}
    )
    trainings.env.pop("MUSTER_KEY_FILE", None)
    result = trainings.run("model")
    assert result.returncode == 1
    assert "MUSTER_KEY_FILE" in result.stderr and "openssl rand" in result.stderr
