"""Programs of TensorFlow that know nothing of Muster, on a real HDFS: what they read and write, by the
plugin (2.4 and newer) or by TensorFlow's own HDFS (before) with Muster's libhdfs."""

from __future__ import annotations

import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time

import pytest

from testbed import tensorboard
from testbed.hadoop.cluster import Hdfs
from testbed.muster import Muster

PROGRAMS = pathlib.Path("testbed/programs")
SPEC = """
inputs: {a: float, b: float, c: float, d: float, y: int}
label: y
columns: {a: {numeric: a}, b: {numeric: b}, c: {numeric: c}, d: {numeric: d}}
model: {type: linear, linear: {columns: [a, b, c, d]}}
"""
# The interpreters of tools/phases.sh: the TensorFlow 2.15 of this one, the newest and older ones.
PYTHONS = {
    "1.15": "MUSTER_PYTHON_TENSORFLOW_1", "2.4": "MUSTER_PYTHON_TENSORFLOW_2_4",
    "2.15": "", "2.21": "MUSTER_PYTHON_TENSORFLOW",
}  # fmt: skip


def python_of(version: str) -> str:
    variable = PYTHONS[version]
    python = os.environ.get(variable, "") if variable else sys.executable
    if not python:
        pytest.skip(f"untested: this machine has no Python for TensorFlow {version}")
    return python


@pytest.fixture
def data(folder: str, muster: Muster, tmp_path: pathlib.Path) -> str:
    """The test's folder on HDFS, with TFRecord files in data/."""
    random.seed(3)
    rows = [[round(random.uniform(-1, 1), 3) for _ in range(4)] for _ in range(3000)]
    table = "".join(f"{','.join(map(str, x))},{int(x[0] - x[1] > 0)}\n" for x in rows)
    (tmp_path / "t.csv").write_text("a,b,c,d,y\n" + table)
    (tmp_path / "model.yaml").write_text(SPEC)
    muster.run("records", "from-csv", tmp_path / "t.csv", "--spec", tmp_path / "model.yaml",
               "--out", f"{folder}/data", "--shards", 3)  # fmt: skip
    return folder


def run(muster: Muster, *command: object, **options: object) -> str:
    """What the tasks of a job print."""
    done = muster.call("run", *command, **options)
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout + done.stderr


def value_of(name: str, text: str) -> float:
    return float(re.findall(rf"^(?:.*\| )?{name} (\S+)", text, re.MULTILINE)[-1])


@pytest.mark.parametrize("version", ["2.4", "2.15", "2.21"])
def test_a_loop_of_its_own(version: str, data: str, muster: Muster) -> None:
    program = (python_of(version), PROGRAMS / "hdfs_loop.py", data)
    text = run(muster, "--", *program, 20)
    assert "starts at step 0" in text
    assert value_of("difference", text) == 0
    again = run(muster, "--", *program, 20)
    assert "starts at step 20" in again
    assert "ends at step 40 ['checkpoints', 'data', 'events', 'saved']" in again
    assert value_of("loss", again) < value_of("loss", text)


@pytest.mark.parametrize("version", ["1.15", "2.4", "2.15"])
def test_an_estimator(version: str, data: str, muster: Muster) -> None:
    text = run(muster, "--", python_of(version), PROGRAMS / "hdfs_estimator.py", data, 60)
    assert value_of("accuracy", text) > 0.9
    assert re.search(r"exported hdfs://\S+ \['saved_model.pb', 'variables'\]", text)


def test_an_estimator_of_several_processes(data: str, muster: Muster) -> None:
    """The chief, a worker, a parameter server and the evaluator share the model folder on HDFS."""
    text = run(
        muster, "--chief", "--workers", 1, "--ps", 1, "--evaluator", "--",
        sys.executable, PROGRAMS / "hdfs_estimator.py", data, 60,
    )  # fmt: skip
    assert value_of("accuracy", text) > 0.9


def test_the_model_of_an_estimator_is_read_by_muster(data: str, muster: Muster) -> None:
    run(muster, "--", sys.executable, PROGRAMS / "hdfs_estimator.py", data, 20)
    text = muster.run("inspect", f"{data}/model")
    assert "linear/linear_model/a/weights" in text


SMALL = """
import os, sys
import tensorflow as tf
path = sys.argv[1] + "/file"
with tf.io.gfile.GFile(path, "w") as file:
    file.write("one")
child = os.fork()
if child == 0:  # connections are not shared with the parent process
    os._exit(0 if tf.io.gfile.GFile(path).read() == "one" else 1)
assert os.waitpid(child, 0)[1] == 0
tf.experimental.register_filesystem_plugin(os.environ["MUSTER_TENSORFLOW_HDFS"])  # as tensorflow_io
print(tf.io.gfile.GFile(path).read())
"""


def test_forked_processes_and_other_plugins(folder: str, muster: Muster) -> None:
    assert "one" in run(muster, "--", sys.executable, "-c", SMALL, folder)


def test_the_programs_own_sitecustomize_runs(
    folder: str, muster: Muster, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.argv_at_start = 'mine ran'\n")
    program = "import sys, sitecustomize; print(sys.argv_at_start, sitecustomize.__file__)"
    text = run(muster, "--env", f"PYTHONPATH={tmp_path}", "--", sys.executable, "-c", program)
    assert f"mine ran {tmp_path}/sitecustomize.py" in text


def test_it_can_be_switched_off(folder: str, muster: Muster) -> None:
    command = ("--env", "MUSTER_TENSORFLOW_HDFS=off", "--", sys.executable, "-c", SMALL, folder)
    done = muster.call("run", *command)
    assert done.returncode == 1
    assert "File system scheme 'hdfs' not implemented" in done.stdout + done.stderr


def services() -> list[int]:
    found = subprocess.run(["pgrep", "-x", "-f", ".*/muster file-service"], capture_output=True, text=True)
    return [int(pid) for pid in found.stdout.split()]


WAITING = """
import sys, time
import tensorflow as tf
tf.io.gfile.makedirs(sys.argv[1])
print("ready", flush=True)
time.sleep(600)
"""


def test_nothing_stays_when_the_program_is_killed(folder: str, muster: Muster, tmp_path: pathlib.Path) -> None:
    """Run without a job, whose agent would end what is left: the service ends by itself, and not
    before by a Ctrl-C that the program may outlive."""
    library = pathlib.Path(muster.binary).parent / "tensorflow-hdfs"
    before = services()
    program = subprocess.Popen(
        [sys.executable, "-c", WAITING, folder], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(library)},
    )  # fmt: skip
    try:
        assert program.stdout is not None and program.stdout.readline() == "ready\n"
        (service,) = set(services()) - set(before)
        os.kill(service, signal.SIGINT)
        time.sleep(0.2)
        assert service in services()
    finally:
        program.kill()
        program.wait()
    end = time.monotonic() + 20
    while service in services():
        assert time.monotonic() < end
        time.sleep(0.05)


READING = """
import sys
import tensorflow as tf
with tf.io.gfile.GFile(sys.argv[1], "w") as file:
    for _ in range(64):
        file.write("0123456789abcdef" * (1 << 16))
rows = tf.data.FixedLengthRecordDataset(sys.argv[1], 1 << 20)
print("rows", sum(1 for row in rows if row.numpy() == b"0123456789abcdef" * (1 << 16)))
"""


def open_calls(hdfs: Hdfs) -> int:
    """How often bytes of a file were opened: the NameNode looks for their place twice, to name a
    DataNode, and when this one asks."""
    return hdfs.metric("NameNodeActivity", "GetBlockLocations") // 2


def test_a_file_that_is_read_in_order(folder: str, hdfs: Hdfs, muster: Muster) -> None:
    """In pieces that grow to 8 MiB, whatever TensorFlow's buffer is: 64 MiB."""
    before = open_calls(hdfs)
    text = run(muster, "--", sys.executable, "-c", READING, f"{folder}/large")
    assert value_of("rows", text) == 64
    assert open_calls(hdfs) - before <= 16


def test_tensorboard_by_itself(data: str, muster: Muster, monkeypatch: pytest.MonkeyPatch) -> None:
    run(muster, "--", sys.executable, PROGRAMS / "hdfs_loop.py", data, 20)
    monkeypatch.setenv("PYTHONPATH", str(pathlib.Path(muster.binary).parent / "tensorflow-hdfs"))
    with tensorboard.serve(f"{data}/events") as board:
        (tag,) = board.wait(lambda: board.get("plugin/scalars/tags").get("."))
        points = board.get("plugin/scalars/scalars", run=".", tag=tag)
    assert [point[1] for point in points] == [10, 20]
