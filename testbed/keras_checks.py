"""Checks of muster.keras, which run under the TensorFlow of today (testbed/exports/runner.py)."""

from __future__ import annotations

import ast
import json
import os
import pathlib
import subprocess

FOLDER = pathlib.Path(__file__).parent / "exports"
ROOT = FOLDER.parent.parent
DEADLINE = 1500.0  # of all checks of a file, on a machine that has other work too


def names(file: str) -> list[str]:
    """Of the functions check_NAME, without running the file."""
    tree = ast.parse((FOLDER / file).read_text())
    functions = (node.name for node in tree.body if isinstance(node, ast.FunctionDef))
    return [name[len("check_") :] for name in functions if name.startswith("check_")]


def keys(file: str, table: str) -> list[str]:
    """Of the dict `table` in the file: its constants, or the functions that it is made of."""
    tree = ast.parse((FOLDER / file).read_text())
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == table:
            if isinstance(node.value, ast.Dict):
                return [key.value for key in node.value.keys if isinstance(key, ast.Constant)]
            assert isinstance(node.value, ast.DictComp)
            functions = node.value.generators[0].iter
            assert isinstance(functions, ast.Tuple)
            return [one.id for one in functions.elts if isinstance(one, ast.Name)]
    raise AssertionError(f"{file} has no dict {table}")


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'python'}", "CUDA_VISIBLE_DEVICES": ""}


def make(
    program: str, folder: pathlib.Path, *names: str, by: str = "MUSTER_PYTHON_TENSORFLOW"
) -> pathlib.Path:
    """`folder` with what testbed/programs/PROGRAM makes in it, run by the interpreter in `by`."""
    path = ROOT / "testbed/programs" / program
    python = os.environ[by]
    done = subprocess.run([python, str(path), str(folder), *names], env=environment(),
                          capture_output=True, text=True, timeout=DEADLINE)  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    return folder


def make_trainings(folder: pathlib.Path, *names: str, **options: str) -> pathlib.Path:
    return make("keras_trainings.py", folder, *names, **options)


class Checks:
    """All checks of a file, run once in one process."""

    def __init__(self, file: str, folder: pathlib.Path):
        self.results: dict[str, str] = {}
        python = os.environ["MUSTER_PYTHON_TENSORFLOW"]
        done = subprocess.run(
            [python, str(FOLDER / "runner.py"), str(FOLDER / file), str(folder)],
            env=environment(), capture_output=True, text=True, timeout=DEADLINE,
        )  # fmt: skip
        for line in done.stdout.splitlines():
            if line.startswith("{"):
                result = json.loads(line)
                self.results[result["name"]] = result["error"]
        self.end = f"exit code {done.returncode}\n{done.stderr[-4000:]}"

    def check(self, name: str) -> None:
        assert name in self.results, f"{name} did not run: {self.end}"
        assert not self.results[name], self.results[name]
