"""The commands that README.md, docs/*.md and the READMEs of examples/ show are run, or say why not.

testbed/documents.py has the rules. A page's commands run in a folder of their own; `PREPARE` makes what
the page expects to be there, such as data and programs of the reader."""

from __future__ import annotations

import gzip
import json
import os
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from typing import Callable

import pytest

from testbed import documents, keras_checks
from testbed.muster import Muster, data_file

Prepare = Callable[[pathlib.Path], None]

MODEL = """
inputs: {age: float, job: string, clicked: int}
label: clicked
columns:
  age: {numeric: age, mean: 44, stddev: 15}
  job: {hash: job, buckets: 100}
  job_embedding: {embedding: job, dimension: 4}
model:
  type: wide_deep
  linear: {columns: [job], optimizer: {ftrl: {learning_rate: 0.1}}}
  dnn: {columns: [age, job_embedding], hidden_units: [16], optimizer: {adagrad: {learning_rate: 0.05}}}
train: {batch_size: 32, epochs: 2}
"""
JOB = """
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: NAME}
spec:
  tfReplicaSpecs:
    Worker:
      replicas: 2
      template:
        spec:
          containers:
          - {name: tensorflow, image: example, COMMANDvolumeMounts: [{name: data, mountPath: /data}]}
          volumes: [{name: data, emptyDir: {}}]
"""


def write(path: pathlib.Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def copy_example(folder: pathlib.Path) -> None:
    """Pages that are read in the checkout name its examples."""
    (folder / "examples").symlink_to(documents.ROOT / "examples")


def people(folder: pathlib.Path) -> None:
    """data/part-*, test/part-* and model.yaml."""
    write(folder / "model.yaml", MODEL)
    draw = random.Random(1)
    for name in (*(f"data/part-{i}.csv" for i in range(5)), "test/part-0.csv"):
        rows = [f"{draw.randint(18, 70)},{draw.choice(['cook', 'nurse'])},{draw.randint(0, 1)}\n"
                for _ in range(200)]  # fmt: skip
        write(folder / name, "age,job,clicked\n" + "".join(rows))


def passengers(folder: pathlib.Path) -> None:
    """titanic.yaml with a table like its data, and images like MNIST's."""
    shutil.copy(documents.ROOT / "examples/titanic/titanic.yaml", folder)
    draw = random.Random(1)
    head = "PassengerId,Survived,Pclass,Sex,Age,SibSp,Parch,Ticket,Fare,Embarked\n"
    rows = [f"{i},{draw.randint(0, 1)},{draw.randint(1, 3)},male,{draw.randint(1, 80)},0,0,A{i},7.5,S\n"
            for i in range(50)]  # fmt: skip
    write(folder / "train.csv", head + "".join(rows))
    images = struct.pack(">4B3I", 0, 0, 8, 3, 20, 28, 28) + draw.randbytes(20 * 28 * 28)
    labels = struct.pack(">4BI", 0, 0, 8, 1, 20) + bytes(i % 10 for i in range(20))
    for kind, content in (("images-idx3", images), ("labels-idx1", labels)):
        (folder / f"t10k-{kind}-ubyte.gz").write_bytes(gzip.compress(content))


def program_of_the_guide(folder: pathlib.Path) -> None:
    """The program of docs/from-tf-estimator.md as program.py."""
    (block,) = [
        b for b in documents.blocks_of("docs/from-tf-estimator.md") if b.file == "clicks.py"
    ]
    write(folder / "program.py", block.text)


def programs_of_a_reader(folder: pathlib.Path) -> None:
    for name in ("train.py", "main.py", "src/main.py"):
        write(folder / name, "import os\nassert os.environ['MUSTER_JOB']\nprint('trained')\n")
    (folder / "shared").mkdir()
    with zipfile.ZipFile(folder / "data.zip", "w") as archive:
        archive.writestr("rows.csv", "x\n1\n")
    write(
        folder / "job.yaml",
        JOB.replace("NAME", "job").replace("COMMAND", "command: [python, train.py], "),
    )
    write(folder / "image.yaml", JOB.replace("NAME", "image").replace("COMMAND", ""))


def python_of_keras(program: str, folder: pathlib.Path) -> None:
    done = subprocess.run(
        [os.environ["MUSTER_PYTHON_TENSORFLOW"], program], cwd=folder, check=False,
        env=keras_checks.environment(), capture_output=True, text=True,
        timeout=documents.DEADLINE_SECONDS,
    )  # fmt: skip
    assert done.returncode == 0, f"{program}: {done.stderr[-4000:]}"


@pytest.fixture(scope="module")
def keras_guide(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """What the program of docs/from-keras-fit.md writes, with the lines that its reader changes."""
    folder = tmp_path_factory.mktemp("keras-guide")
    blocks = documents.blocks_of("docs/from-keras-fit.md")
    diff = next(block for block in blocks if block.language == "diff")
    write(folder / "export.py", documents.after_side(diff.text))
    python_of_keras("export.py", folder)
    return folder


def topics(folder: pathlib.Path) -> None:
    """The export of docs/keras.md, and lines of words for it."""
    (block,) = [b for b in documents.blocks_of("docs/keras.md") if b.file == "export.py"]
    write(folder / "export.py", block.text)
    python_of_keras("export.py", folder)
    draw = random.Random(1)
    for name in ("data/part-0", "data/part-1", "data/part-2", "test/part-0", "rows"):
        rows = ({"words": [draw.randrange(1, 20000) for _ in range(6)], "topic": draw.randrange(4)}
                for _ in range(64))  # fmt: skip
        write(folder / f"{name}.jsonl", "".join(json.dumps(row) + "\n" for row in rows))


def real(name: str, *wanted: str) -> Prepare:
    """Real data as `wanted` files; the page's test is skipped where MUSTER_DATA does not have it."""

    def prepare(folder: pathlib.Path) -> None:
        copy_example(folder)
        for file in wanted:
            path = data_file(f"{name}/{file}")
            if path is None:
                pytest.skip("needs MUSTER_DATA")
            shutil.copy(path, folder)

    return prepare


def tfjob(folder: pathlib.Path) -> None:
    for name in ("src", "shared"):
        (folder / name).mkdir()


PREPARE: dict[str, Prepare] = {
    "README.md": copy_example,
    "docs/data.md": passengers,
    "docs/distributed.md": people,
    "docs/from-tfjob.md": tfjob,
    "docs/keras.md": topics,
    "docs/tune.md": people,
    "docs/python.md": program_of_the_guide,
    "docs/run.md": programs_of_a_reader,
    "examples/adult/README.md": real("adult", "adult.csv"),
    "examples/clicks/README.md": copy_example,
    "examples/titanic/README.md": real("titanic", "train.csv", "test.csv"),
}
KERAS_GUIDE = ("docs/from-keras-fit.md", "docs/from-tensorflowonspark.md")
RUN = [page for page in documents.pages()
       if any(b.is_shell and not b.not_run for b in documents.blocks_of(page))]  # fmt: skip


@pytest.fixture
def environment(muster: Muster, tmp_path: pathlib.Path) -> Iterator[dict[str, str]]:
    """A shell in which muster and python are installed. Jobs that still run are stopped at the end."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "muster").symlink_to(os.path.abspath(muster.binary))
    interpreter = pathlib.Path(sys.executable).parent
    found = {
        **os.environ,
        "PATH": f"{programs}:{interpreter}:{os.environ['PATH']}",
        "PYTHONPATH": str(documents.ROOT / "python"),
        "MUSTER_BINARY": str(programs / "muster"),
        "MUSTER_HOME": str(tmp_path / "home"),
        "MUSTER_TENSORFLOW": os.environ["MUSTER_PYTHON_TENSORFLOW"],
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }
    yield found
    for job in (tmp_path / "home/jobs").glob("*"):
        muster.call("stop", job.name, env=found)


@pytest.mark.parametrize("page", RUN)
def test_the_commands_of(
    page: str, environment: dict[str, str], tmp_path: pathlib.Path, request: pytest.FixtureRequest
) -> None:
    folder = tmp_path / "here"
    if page in KERAS_GUIDE:
        shutil.copytree(request.getfixturevalue("keras_guide"), folder)
        for kind, name in (("train", "data/train/part-0.csv"), ("test", "data/test/part-0.csv")):
            write(folder / name, (folder / f"{kind}.csv").read_text())
    else:
        folder.mkdir()
        PREPARE.get(page, lambda _: None)(folder)
    assert documents.follow(page, folder, environment) > 0


def test_what_is_not_run_names_a_test_that_is_there_or_a_reason() -> None:
    for page in documents.pages():
        for block in documents.blocks_of(page):
            if block.is_shell and block.first.startswith(("# Tested", "# Not")):
                assert block.not_run, f"{block.where}: '{block.first}' is neither form"
            if block.is_shell and block.not_run and block.not_run["test"]:
                path = block.not_run["test"]
                assert (documents.ROOT / path).is_file(), f"{block.where}: {path} does not exist"


def test_each_example_has_a_page() -> None:
    for folder in (documents.ROOT / "examples").iterdir():
        if folder.is_dir() and not folder.name.startswith(("_", ".")):
            assert (folder / "README.md").is_file(), folder.name
