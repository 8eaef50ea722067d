"""Trainings of native models on a small random table, with one process and with several."""

from __future__ import annotations

import pathlib
import re
import subprocess

from testbed.jobs import Jobs

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


def write_rows(path: pathlib.Path, rows: int, with_id: bool = False) -> None:
    lines = ["id,x,z,word,y" if with_id else "x,z,word,y"]
    for i in range(rows):
        x, z, word = (i * 37 % 101) / 50 - 1, (i * 53 % 89) / 44 - 1, i * 31 % 47
        y = int(x + z * 0.5 + (word % 3) * 0.4 > 0.3)
        lines.append(f"{f'{i},' if with_id else ''}{x:.3f},{z:.3f},w{word},{y}")
    path.write_text("\n".join(lines) + "\n")


def last_checkpoint(model: pathlib.Path) -> tuple[str, bytes]:
    """The name and the bytes of the newest checkpoint."""
    name = (model / "checkpoint").read_text().splitlines()[0].split('"')[1]
    (data,) = model.glob(f"{name}.data-*")
    return name, data.read_bytes()


class Trainings:
    """Trainings on the same data, each into a separate folder."""

    spec = "spec.yaml"
    data = "train.csv"

    def __init__(self, jobs: Jobs) -> None:
        self.jobs = jobs
        self.make()

    def make(self) -> None:
        write_rows(self.jobs.folder / self.data, 3000)
        (self.jobs.folder / self.spec).write_text(SPEC)

    def flags(self, model_dir: str, *flags: object) -> list[object]:
        return ["train", self.spec, "--train", self.data, "--model-dir", model_dir, *flags]

    def run(self, model_dir: str, *flags: object) -> subprocess.CompletedProcess[str]:
        return self.jobs.call(*self.flags(model_dir, *flags))

    def ok(self, model_dir: str, *flags: object) -> str:
        return self.jobs.ok(*self.flags(model_dir, *flags))

    def step(self, model_dir: str) -> int:
        """Returns the step of the newest checkpoint, -1 if there is none yet."""
        state = self.jobs.folder / model_dir / "checkpoint"
        found = re.search(r"ckpt-(\d+)", state.read_text()) if state.exists() else None
        return int(found[1]) if found else -1

    def newest(self, model_dir: str) -> str:
        text = (self.jobs.folder / model_dir / "checkpoint").read_text()
        found = re.match(r'model_checkpoint_path: "(.*)"', text)
        assert found
        return str(self.jobs.folder / model_dir / found[1])

    def weights(self, model_dir: str) -> bytes:
        return pathlib.Path(self.newest(model_dir) + ".data-00000-of-00001").read_bytes()


class KerasTrainings(Trainings):
    """Trains an exported Keras model in FOLDER/export on its data in two files."""

    def __init__(self, jobs: Jobs, folder: pathlib.Path) -> None:
        self.spec, self.data = str(folder / "export"), str(folder / "half-*.tfrecord")
        super().__init__(jobs)

    def make(self) -> None:
        """Does nothing: the files exist already."""
