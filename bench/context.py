"""What every benchmark needs: where things are, how often to measure."""

import csv
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from bench.measure import run


class CannotRun(Exception):
    """Something that this benchmark needs is not there; the message says what to do."""


def python_path(folder: Path) -> str:
    """PYTHONPATH with this folder before what is there."""
    return os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))


@dataclass(frozen=True)
class Context:
    root: Path
    rounds: int

    @property
    def muster(self) -> Path:
        return self.program("muster")

    def program(self, name: str) -> Path:
        path = self.root / "build/release/src/muster" / name
        if not path.exists():
            raise CannotRun(f"{path} is not there: cmake --build --preset release")
        return path

    @property
    def scratch(self) -> Path:
        path = self.root / "build" / "bench"
        path.mkdir(parents=True, exist_ok=True)
        return path

    def fresh_folder(self, name: str) -> Path:
        path = self.scratch / name
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)
        return path

    def data(self, name: str) -> Path:
        folder = os.environ.get("MUSTER_DATA")
        if not folder or not (Path(folder) / name).exists():
            raise CannotRun(f"needs {name} of the real data: set MUSTER_DATA")
        return Path(folder) / name

    def peer_python(self, name: str) -> Path:
        """The interpreter that MUSTER_PYTHON_NAME gives, else one of an environment with
        tools/requirements-NAME.txt, made when needed."""
        if given := os.environ.get(f"MUSTER_PYTHON_{name.upper().replace('-', '_')}"):
            return Path(given)
        script = f"source tools/environment.sh && python_venv {name}"
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=self.root, stdout=subprocess.PIPE, text=True, check=True,
        )  # fmt: skip
        return Path(done.stdout.strip())

    def peer_script(self, name: str) -> Path:
        return self.root / "bench" / "peers" / name


@dataclass(frozen=True)
class Adult:
    """The census table split as in the accuracy tables: row i is a test row if i % 5 == 4."""

    spec: Path
    train_csv: Path
    test_csv: Path
    train: Path  # one TFRecord file
    test: Path


def prepare_adult(context: Context) -> Adult:
    folder = context.fresh_folder("adult")
    spec = context.root / "examples/adult/adult.yaml"
    with open(context.data("adult/adult.csv"), newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    split = {
        "train": [row for i, row in enumerate(rows) if i % 5 != 4],
        "test": [row for i, row in enumerate(rows) if i % 5 == 4],
    }
    for name, part in split.items():
        with open(folder / f"{name}.csv", "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([header, *part])
        run([context.muster, "records", "from-csv", folder / f"{name}.csv", "--spec", spec,
             "--out", folder / name, "--shards", "1"])  # fmt: skip
    return Adult(
        spec, folder / "train.csv", folder / "test.csv",
        only_file(folder / "train"), only_file(folder / "test"),
    )  # fmt: skip


def only_file(folder: Path) -> Path:
    files = sorted(folder.glob("part-*"))
    records = [file for file in files if not file.name.endswith(".index")]
    if len(records) != 1:
        raise CannotRun(f"{folder}: expected one shard, found {[f.name for f in files]}")
    return records[0]
