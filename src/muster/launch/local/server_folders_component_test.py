"""Parameter servers that cannot save their rows into the chief's model folder."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator

import pytest

from testbed.jobs import DEADLINE, Jobs
from testbed.ports import free_address

# The embedding is a large table: the servers save it where they can.
SPEC = """
inputs: {id: int, y: int}
label: y
columns:
  id: {identity: id, buckets: 20000}
  e: {embedding: id, dimension: 16}
model: {type: dnn, dnn: {columns: [e], hidden_units: [8], optimizer: {adagrad: {learning_rate: 0.05}}}}
train: {batch_size: 50, epochs: 4, seed: 5}
"""
TASKS = ("chief-0", "worker-0", "ps-0", "ps-1")
FLAGS = ("--strategy", "ps-sync", "--save-steps", "20", "--keep-checkpoints", "1")


class ServedTrainings:
    """In a folder that another user may read."""

    def __init__(self, jobs: Jobs, folder: pathlib.Path) -> None:
        self.jobs, self.folder = jobs, folder
        folder.chmod(0o755)
        self.binary = shutil.copy(jobs.binary, folder)
        (self.folder / "table.yaml").write_text(SPEC)
        rows = "\n".join(f"{i * 7 % 20000},{i % 3 // 2}" for i in range(4000))
        (self.folder / "table.csv").write_text(f"id,y\n{rows}\n")
        self.cluster: dict[str, list[str]] = {}
        for task in TASKS:
            self.cluster.setdefault(task.split("-")[0], []).append(free_address())

    def train(self, model: str, *before_ps_1: str) -> str:
        """Returns what the chief said. The words come before the command of ps-1."""
        processes = {}
        for task in TASKS:
            kind, index = task.split("-")
            key = self.folder / f"key-of-{task}"
            key.write_text("0123456789abcdef" * 4)
            key.chmod(0o600)
            before = before_ps_1 if task == "ps-1" else ()
            if before and before[0] == "setpriv":
                os.chown(key, 65534, -1)
            config = {"cluster": self.cluster, "task": {"type": kind, "index": int(index)}}
            processes[task] = subprocess.Popen(
                [*before, self.binary, "worker", self.folder / "table.yaml", "--train",
                 self.folder / "table.csv", "--model-dir", model, *FLAGS],
                env={**self.jobs.environment, "TF_CONFIG": json.dumps(config), "MUSTER_KEY_FILE": str(key)},
                cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            )  # fmt: skip
        said = {task: process.communicate(timeout=DEADLINE)[1] for task, process in processes.items()}
        assert all(process.returncode == 0 for process in processes.values()), said
        return said["chief-0"]


@pytest.fixture
def served(jobs: Jobs) -> Iterator[ServedTrainings]:
    with tempfile.TemporaryDirectory() as folder:
        yield ServedTrainings(jobs, pathlib.Path(folder))


@pytest.mark.parametrize("why", ["it has another folder", "it may not write"])
def test_the_chief_saves_for_them_and_names_one(served: ServedTrainings, why: str) -> None:
    assert "warning" not in served.train("all")
    files = sorted(path.name for path in (served.folder / "all").glob("model.ckpt-*.data-*"))
    assert [name[-14:] for name in files] == [f"0000{i}-of-00003" for i in range(3)], files
    if why == "it has another folder":
        (served.folder / "other").mkdir()
        before = ("env", "-C", str(served.folder / "other"))
    else:
        if os.geteuid() != 0:
            pytest.skip("only root can start a server as another user")
        before = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    said = served.train("some", *before)
    assert "warning: ps-1 does not have the model folder some, or cannot write files there" in said
    assert len(list((served.folder / "some").glob("model.ckpt-*.data-*"))) == 1
    assert not list((served.folder / "some").glob(".*tmp-*"))
