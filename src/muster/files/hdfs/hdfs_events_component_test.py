"""TensorBoard on a model folder of HDFS, and its checkpoints in TensorFlow."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

from testbed.muster import Muster
from testbed.tensorboard import FLAGS, started

MODEL = """
inputs: {x: float, y: int}
label: y
columns: {x: {numeric: x}}
model: {type: dnn, dnn: {columns: [x], hidden_units: [4]}}
train: {batch_size: 4}
"""


def train(muster: Muster, here: pathlib.Path, folder: str, steps: int) -> str:
    (here / "model.yaml").write_text(MODEL)
    (here / "rows.csv").write_text("x,y\n" + "1,1\n0,0\n" * 2000)
    muster.run("train", here / "model.yaml", f"{folder}/model", "--train", here / "rows.csv",
               "--epochs", 10, "--max-steps", steps, "--summary-steps", 100)  # fmt: skip
    return f"{folder}/model"


def copies() -> set[pathlib.Path]:
    return set(pathlib.Path(tempfile.gettempdir()).glob("muster-tensorboard-*"))


def test_tensorboard_follows_a_model_folder(folder: str, muster: Muster, tmp_path: pathlib.Path) -> None:
    model = train(muster, tmp_path, folder, 500)
    command = [muster.binary, "tensorboard", model, "--python", sys.executable, "--", *FLAGS]
    with started(command) as board:

        def get_steps() -> list[int]:
            runs = board.get("plugin/scalars/tags")
            tags = [tag for tag in runs.get(".", {}) if tag == "loss"]
            return [step for tag in tags for _, step, _ in board.get("plugin/scalars/scalars", run=".", tag=tag)]

        board.wait(lambda: get_steps() == [100, 200, 300, 400, 500])
        train(muster, tmp_path, folder, 700)
        board.wait(lambda: get_steps()[-2:] == [600, 700])


def test_tensorboard_ends_with_muster_and_leaves_no_copy(folder, muster, tmp_path) -> None:
    model, before = train(muster, tmp_path, folder, 100), copies()
    process = subprocess.Popen(
        [muster.binary, "tensorboard", model, "--python", sys.executable, "--", *FLAGS],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    end = time.monotonic() + 60
    while not (made := copies() - before):
        assert process.poll() is None and time.monotonic() < end
        time.sleep(0.1)
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 0
    assert not any(path.exists() for path in made)


def test_a_folder_that_is_not_there_is_an_error(folder, muster) -> None:
    said = muster.fail("tensorboard", f"{folder}/nothing", "--python", sys.executable)
    assert "does not exist" in said and len(said.splitlines()) == 1


def test_tensorflow_loads_what_comes_down(folder, muster, tmp_path) -> None:
    model = train(muster, tmp_path, folder, 300)
    muster.run("fs", "get", model, tmp_path / "down")
    code = "import sys, tensorflow as tf; print(tf.train.latest_checkpoint(sys.argv[1])); " \
           "print(sorted(name for name, _ in tf.train.list_variables(sys.argv[1])))"  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "down"], capture_output=True, text=True,
                          env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"})  # fmt: skip
    assert "model.ckpt-300" in done.stdout and "dnn/hiddenlayer_0/kernel" in done.stdout, done.stderr
